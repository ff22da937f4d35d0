"""Keeps the files and snapshots of a table few, which doesn't matter for what it holds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import obstore

from floodmark.sinks.delta.compaction import rewritten
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.vectors import Rows
from floodmark.sinks.iceberg.catalogues.files import size_of
from floodmark.sinks.iceberg.changes import Changes, files_of
from floodmark.sinks.iceberg.data_files import FOLDER, IcebergFiles
from floodmark.sinks.iceberg.protocols import CatalogTable, Gone
from floodmark.sinks.iceberg.state import KEY, Snapshot

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot as PySnapshot

_TARGET_SIZE, _TARGET_BYTES = "write.target-file-size-bytes", 1 << 29
"""The property with the size of files that are written, and what it is by default."""
_SMALL = 0.75
"""A file below so much of the target size is small."""
_GROUP_BYTES = 1 << 27
"""About so much is read at a time to be written again."""
_REMOVED_AT_ONCE = 1000
_NONE: Rows = np.empty(0, np.uint64)


class ChangedTable(CatalogTable, Protocol):
    """A table whose files change by commits that are no micro-batches, too."""

    def change(self, base: Snapshot, changes: Changes) -> bool:
        """Change the table's files; return whether that was done, since readers saw ``base`` before."""


def compact(table: ChangedTable, files: IcebergFiles, least_files: int, below_bytes: int | None) -> None:
    """Write small files of a table again as larger ones.

    Args:
        files: its data files.
        least_files: how many small ones there must be.
        below_bytes: the size from which on files are left alone; None: as the table's properties say.
    """
    state = table.state("")
    if state is None or state.head is None:
        raise Gone
    files.layout = table.form().layout
    target = int(state.properties.get(_TARGET_SIZE, _TARGET_BYTES))
    below = min(target * _SMALL, below_bytes or target)
    small = [one for one in files_of(table.files(state.head), files, files.layout).values() if size_of(one) < below]
    if len(small) < least_files:
        return
    key = [name for name in state.properties.get(KEY, "").split(",") if name]
    for group in _groups(small, min(_GROUP_BYTES, target)):
        made = rewritten(files, [(file, _NONE) for file in group], key)
        added = [] if made.add is None else [DataFile.from_json(made.add)]
        if state is None or state.head is None or not table.change(state.head, Changes(added, group)):
            return
        state = table.state("")


def expire(table: Table, files: IcebergFiles, age: dt.timedelta) -> None:
    """Remove old snapshots of a table, and the files that only they need; of the data files those in its folder.

    Args:
        table: as pyiceberg has it.
        files: its data files.
        age: how old snapshots must be. The newest stays.
    """
    earlier = {one.snapshot_id: one for one in table.metadata.snapshots}
    table.maintenance.expire_snapshots().older_than(dt.datetime.now(dt.UTC) - age).commit()
    kept = {one.snapshot_id for one in table.metadata.snapshots}
    gone = [one for number, one in earlier.items() if number not in kept]
    if gone:
        _remove_files(table, files, gone)


def _remove_files(table: Table, files: IcebergFiles, gone: Sequence[PySnapshot]) -> None:
    io = table.io
    known = {one.manifest_path: one for kept in table.metadata.snapshots for one in kept.manifests(io)}
    every = {one.manifest_path: one for old in gone for one in old.manifests(io)}
    only = {path: one for path, one in every.items() if path not in known}
    needed = {entry.data_file.file_path for one in known.values() for entry in one.fetch_manifest_entry(io)}
    named = {
        entry.data_file.file_path
        for one in only.values()
        for entry in one.fetch_manifest_entry(io, discard_deleted=False)
    }
    paths = sorted(path for one in named - needed if (path := files.path(one)).startswith(FOLDER))
    for first in range(0, len(paths), _REMOVED_AT_ONCE):
        obstore.delete(files.store, paths[first : first + _REMOVED_AT_ONCE])
    for path in (*only, *(one.manifest_list for one in gone)):
        io.delete(path)


def _groups(files: Iterable[DataFile], most: int) -> list[list[DataFile]]:
    """Return files in groups of about so many bytes; a last one alone isn't written again."""
    groups: list[list[DataFile]] = []
    room = 0
    for file in files:
        if room <= 0:
            groups.append([])
            room = most
        groups[-1].append(file)
        room -= size_of(file)
    return [group for group in groups if len(group) > 1]
