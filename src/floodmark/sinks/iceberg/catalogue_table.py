"""An Iceberg table that is committed to its catalogue through pyiceberg.

Interface: ``Transaction``, ``UpdateSchema`` and the snapshot producers of pyiceberg 0.12, which writes format version 2
without delete files.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import obstore
import pyarrow as pa

from floodmark.errors import TargetError, TargetUnfitError
from floodmark.sinks.delta.compaction import rewritten
from floodmark.sinks.delta.format.data_files import with_position
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.vectors import Rows
from floodmark.sinks.folders import table_name
from floodmark.sinks.iceberg.catalogues import Catalogue, CatalogueError
from floodmark.sinks.iceberg.changes import Changes, files_of, rows_in
from floodmark.sinks.iceberg.columns import RENAMED, prove_names
from floodmark.sinks.iceberg.data_files import FOLDER, IcebergFiles
from floodmark.sinks.iceberg.layout import Layout, stored
from floodmark.sinks.iceberg.protocols import Form, Gone
from floodmark.sinks.iceberg.state import KEY, Done, Snapshot, TableState, done_property

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile as PyDataFile
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.snapshots import Snapshot as PySnapshot

_MAIN = "main"
_VERSION = 2
"""The version of Iceberg's format that pyiceberg writes with copies of files."""
_TARGET_SIZE, _TARGET_BYTES = "write.target-file-size-bytes", 1 << 29
_SMALL = 0.75
"""A file below so much of the target size is small."""
_GROUP_BYTES = 1 << 27
"""About so much is read at a time to be written again."""
_ENCRYPTED = "encryption.key-id"
_PROPERTIES = {"commit.manifest-merge.enabled": "true"}
"""Otherwise each commit of pyiceberg leaves a manifest of its own."""
_REMOVED_AT_ONCE = 1000
_NONE: Rows = np.empty(0, np.uint64)


class CatalogueTable:
    """A target table (``CatalogTable``).

    Args:
        catalogue: it has the table.
        table: the source's name of the table, ``schema.table``.
        files: the table's data files.
        soft: whether deleted rows are only marked.
    """

    failures = (CatalogueError,)

    def __init__(self, catalogue: Catalogue, table: str, files: IcebergFiles, soft: bool = False) -> None:
        self._catalogue = catalogue
        self._table = table
        self._files = files
        self._renamed = RENAMED if soft else {}
        self._identifier = (catalogue.schema, table_name(table))
        self._known: Table | None = None

    @property
    def name(self) -> str:
        """Its name in the catalogue."""
        return ".".join((self._catalogue.name, *self._identifier))

    @property
    def renamed(self) -> Mapping[str, str]:
        """Columns of the mirror's own that the table has under other names."""
        return self._renamed

    def is_conflict(self, error: Exception) -> bool:
        """Return whether the table may be another one now (``CatalogTable``)."""
        return isinstance(error, CatalogueError) and error.is_conflict

    def failure(self, error: Exception) -> TargetError:
        """Return the error that a user gets (``CatalogTable``)."""
        return self._catalogue.failure(self._table, error)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let this thread use the table (``CatalogTable``)."""
        try:
            yield
        finally:
            self._known = None

    def exists(self) -> bool:
        """Return whether the catalogue has a table of its name."""
        with self._catalogue.asked():
            return bool(self._catalogue.client.table_exists(self._identifier))

    def state(self, since: str) -> TableState | None:
        """Return the newest state (``CatalogTable``); what follows is about that one."""
        self._known = self._loaded()
        if self._known is None:
            return None
        metadata = self._known.metadata
        columns = self._as_staged(self._columns())
        newest = metadata.current_snapshot()
        if newest is None:
            return TableState(metadata.properties, columns, None, False)
        head = _snapshot(newest)
        found = TableState(metadata.properties, columns, head, _has_rows(newest))
        done = found.done(since)
        if done is None or done.snapshot == head.number:
            return found
        ancestors: list[Snapshot] = []
        one = head
        while one.parent is not None and one.sequence >= done.sequence and one.number != done.snapshot:
            parent = metadata.snapshot_by_id(one.parent)
            if parent is None:
                break
            one = _snapshot(parent)
            ancestors.append(one)
        return TableState(metadata.properties, columns, head, found.has_rows, ancestors, one.parent is None)

    def create(self, rows: pa.Schema, properties: Mapping[str, str], replace: bool) -> None:
        """Make the table, without rows (``CatalogTable``).

        To replace one it is dropped before: pyiceberg doesn't do both in one commit.
        """
        prove_names(rows, self._table, self._renamed)
        columns = pa.schema([self._stored(one) for one in with_position(rows)])
        with self._catalogue.asked():
            if replace:
                self._catalogue.client.drop_table(self._identifier)
            self._catalogue.client.create_table(self._identifier, columns, properties={**_PROPERTIES, **properties})

    def begin(self) -> None:
        """Give the table a first snapshot, without rows."""
        with self._catalogue.asked(), self._open().transaction() as change:
            change.update_snapshot().fast_append().commit()

    def set(self, properties: Mapping[str, str]) -> None:
        """Give the table properties."""
        with self._catalogue.asked(), self._open().transaction() as change:
            change.set_properties(dict(properties))

    def add_columns(self, columns: pa.Schema) -> None:
        """Add columns, in which all rows have null (``CatalogTable``)."""
        prove_names(columns, self._table, self._renamed)
        with self._catalogue.asked(), self._open().update_schema() as change:
            for one in columns:
                made = self._stored(one)
                change.add_column((made.name,), _iceberg_type(made.type))

    def widen(self, wider: Mapping[str, pa.DataType]) -> None:
        """Give columns types that hold more (``CatalogTable``)."""
        with self._catalogue.asked(), self._open().update_schema() as change:
            for name, kind in wider.items():
                change.update_column((self._renamed.get(name, name),), field_type=_iceberg_type(stored(kind)))

    def form(self) -> Form:
        """Return how the table's files are made (``CatalogTable``)."""
        metadata = self._open().metadata
        if metadata.format_version != _VERSION:
            raise TargetUnfitError(
                f"The Iceberg table '{self._table}' has format version {metadata.format_version}; pyiceberg writes "
                f"{_VERSION}.",
                "Leave out the mirror's options that begin with 'catalog.' but catalog.schema, and start Spark with "
                "Iceberg's runtime and the catalogue; or remove the table.",
            )
        special = "" if metadata.spec().is_unpartitioned() else "partitions"
        return Form(
            self._layout(), metadata.format_version, "encrypted files" if _ENCRYPTED in metadata.properties else special
        )

    def files(self, snapshot: Snapshot) -> list[Mapping[str, Any]]:
        """Return the files of a snapshot (``CatalogTable``)."""
        with self._catalogue.asked():
            found = self._open().metadata.snapshot_by_id(snapshot.number)
            if found is None:
                raise Gone
            return [_described(file) for file in self._living(found)]

    def commit(
        self, base: Snapshot, changes: Changes, files: IcebergFiles, application: str, batch: int, mark: int
    ) -> Snapshot | None:
        """Change the table's files, and say which micro-batch that is (``CatalogTable``)."""

        def done(end: Snapshot) -> Mapping[str, str]:
            return dict([done_property(application, Done(batch, mark, end.number, end.sequence))])

        return self._committed(base, changes, files, done)

    def change(self, base: Snapshot, changes: Changes) -> bool:
        """Change the table's files by a commit that is no micro-batch; return whether that was done.

        Args:
            base: what readers must see before it.
        """
        return self._committed(base, changes, self._files, lambda _: {}) is not None

    def compact(self, least_files: int, below_bytes: int | None) -> None:
        """Write small files again as larger ones (``CatalogTable``)."""
        state = self.state("")
        if state is None or state.head is None:
            raise Gone
        form = self.form()
        self._files.layout = form.layout
        target = int(state.properties.get(_TARGET_SIZE, _TARGET_BYTES))
        below = min(target * _SMALL, below_bytes or target)
        known = files_of(self.files(state.head), self._files, form.layout)
        small = [file for file in known.values() if _size(file) < below]
        if len(small) < least_files:
            return
        key = [name for name in state.properties.get(KEY, "").split(",") if name]
        for group in _groups(small, min(_GROUP_BYTES, target)):
            made = rewritten(self._files, [(file, _NONE) for file in group], key)
            added = [] if made.add is None else [DataFile.from_json(made.add)]
            if not self.change(state.head, Changes(added, group)):
                return
            state = self.state("")
            if state is None or state.head is None:
                raise Gone

    def expire(self, hours: int) -> None:
        """Remove old snapshots, and the files that only they need (``CatalogTable``)."""
        table = self._loaded()
        if table is None:
            raise Gone
        before = dt.datetime.now(dt.UTC) - dt.timedelta(hours=hours)
        with self._catalogue.asked():
            earlier = {one.snapshot_id: one for one in table.metadata.snapshots}
            table.maintenance.expire_snapshots().older_than(before).commit()
            kept = {one.snapshot_id for one in table.metadata.snapshots}
            gone = [one for number, one in earlier.items() if number not in kept]
            if gone:
                self._remove_files(table, gone)

    def _remove_files(self, table: Table, gone: Sequence[PySnapshot]) -> None:
        """Remove the files of snapshots that no other one has; of the data files those in the table's folder."""
        kept = table.metadata.snapshots
        lists = [one.manifests(table.io) for one in kept]
        known = {manifest.manifest_path: manifest for manifests in lists for manifest in manifests}
        only = {one.manifest_path: one for old in gone for one in old.manifests(table.io)}
        only = {path: one for path, one in only.items() if path not in known}
        needed = {entry.data_file.file_path for one in known.values() for entry in one.fetch_manifest_entry(table.io)}
        old = {
            entry.data_file.file_path
            for one in only.values()
            for entry in one.fetch_manifest_entry(table.io, discard_deleted=False)
        }
        paths = sorted(path for one in old - needed if (path := self._files.path(one)).startswith(FOLDER))
        for first in range(0, len(paths), _REMOVED_AT_ONCE):
            obstore.delete(self._files.store, paths[first : first + _REMOVED_AT_ONCE])
        for path in (*only, *(one.manifest_list for one in gone)):
            table.io.delete(path)

    def _committed(
        self,
        base: Snapshot,
        changes: Changes,
        files: IcebergFiles,
        properties: Callable[[Snapshot], Mapping[str, str]],
    ) -> Snapshot | None:
        table = self._open()
        main = table.metadata.current_snapshot()
        if main is None or main.snapshot_id != base.number:
            return None
        with self._catalogue.asked():
            change = table.transaction()
            end = base if changes.is_empty else self._changed(table, change, changes, files)
            change.set_properties(dict(properties(end)))
        # Pyiceberg's own commit is tried again on what others have committed meanwhile, and removes the manifests of
        # one that failed, though a catalogue whose answer was lost may have them.
        from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID

        required = (
            AssertTableUUID(uuid=table.metadata.table_uuid),
            AssertRefSnapshotId.model_validate({"ref": _MAIN, "snapshot-id": base.number}),
        )
        with self._catalogue.asked(unknown_is_conflict=True):
            done = table.catalog.commit_table(table, required, change._updates)
            table.metadata, table.metadata_location = done.metadata, done.metadata_location
        return end

    def _changed(self, table: Table, change: Transaction, changes: Changes, files: IcebergFiles) -> Snapshot:
        """Add a snapshot with changes of files to a transaction."""
        update = change.update_snapshot()
        producer: Any = update.overwrite() if changes.removed else update.merge_append()
        for file in changes.added:
            producer.append_data_file(self._added(table, file, files))
        for file in changes.removed:
            producer.delete_data_file(_data_file(table, files.location(file.path), _size(file), rows_in(file)))
        producer.commit()
        found = change.table_metadata.current_snapshot()
        assert found is not None
        return _snapshot(found)

    def _added(self, table: Table, file: DataFile, files: IcebergFiles) -> PyDataFile:
        from pyiceberg.io.pyarrow import (
            compute_statistics_plan,
            data_file_statistics_from_parquet_metadata,
            parquet_path_to_id_mapping,
        )

        metadata = table.metadata
        found = data_file_statistics_from_parquet_metadata(
            files.parquet_metadata(file),
            compute_statistics_plan(metadata.schema(), metadata.properties),
            parquet_path_to_id_mapping(metadata.schema()),
        ).to_serialized_dict()
        return _data_file(table, files.location(file.path), _size(file), **found)

    def _living(self, snapshot: PySnapshot) -> Iterator[PyDataFile]:
        io = self._open().io
        for manifest in snapshot.manifests(io):
            for entry in manifest.fetch_manifest_entry(io, discard_deleted=True):
                yield entry.data_file

    def _layout(self) -> Layout:
        metadata = self._open().metadata
        schema = metadata.schema()
        return Layout.from_json(schema.model_dump_json(), f"{metadata.table_uuid}/{schema.schema_id}")

    def _columns(self) -> pa.Schema:
        """Return all columns; those of types that the sources' tables don't have as such without values."""
        known = self._layout().columns
        return pa.schema(
            [
                known.field(one.name) if one.name in known.names else pa.field(one.name, pa.null(), not one.required)
                for one in self._open().schema().fields
            ]
        )

    def _as_staged(self, columns: pa.Schema) -> pa.Schema:
        staged = {name: own for own, name in self._renamed.items()}
        return pa.schema([one.with_name(staged.get(one.name, one.name)) for one in columns])

    def _stored(self, column: pa.Field) -> pa.Field:
        """Return a column as the table has it: it can be null, whatever the source's can."""
        return pa.field(self._renamed.get(column.name, column.name), stored(column.type))

    def _open(self) -> Table:
        """Return the table as it was loaded last, which must be there."""
        if self._known is None:
            self._known = self._loaded()
        if self._known is None:
            raise Gone
        return self._known

    def _loaded(self) -> Table | None:
        from pyiceberg.exceptions import NoSuchTableError

        with self._catalogue.asked():
            try:
                return self._catalogue.client.load_table(self._identifier)
            except NoSuchTableError:
                return None


def _snapshot(found: PySnapshot) -> Snapshot:
    return Snapshot(found.snapshot_id, found.parent_snapshot_id, found.sequence_number or 0)


def _has_rows(found: PySnapshot) -> bool:
    """Return whether a snapshot may have rows: other writers needn't say how many files it has."""
    return found.summary is None or found.summary.get("total-data-files") != "0"


def _described(file: PyDataFile) -> dict[str, Any]:
    """Return a file as the metadata table ``files`` has it; pyiceberg has none with delete files that count."""
    return {
        "content": int(file.content),
        "file_path": file.file_path,
        "file_format": str(file.file_format.value),
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_in_bytes,
        "lower_bounds": list((file.lower_bounds or {}).items()),
        "upper_bounds": list((file.upper_bounds or {}).items()),
    }


def _data_file(table: Table, location: str, size: int, record_count: int, **more: Any) -> PyDataFile:
    from pyiceberg.manifest import DataFile as PyDataFile
    from pyiceberg.manifest import DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    found = PyDataFile.from_args(
        content=DataFileContent.DATA,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=record_count,
        file_size_in_bytes=size,
        **more,
    )
    found.spec_id = table.metadata.default_spec_id
    return found


def _iceberg_type(kind: pa.DataType) -> Any:
    from pyiceberg.io.pyarrow import _ConvertToIcebergWithoutIDs, visit_pyarrow

    return visit_pyarrow(kind, _ConvertToIcebergWithoutIDs())


def _size(file: DataFile) -> int:
    size = file.add["size"]
    assert isinstance(size, int)
    return size


def _groups(files: Iterable[DataFile], most: int) -> list[list[DataFile]]:
    """Return files in groups of about so many bytes; a last one alone isn't written again."""
    groups: list[list[DataFile]] = []
    room = 0
    for file in files:
        if room <= 0:
            groups.append([])
            room = most
        groups[-1].append(file)
        room -= _size(file)
    return [group for group in groups if len(group) > 1]
