"""Finds what a micro-batch replaces in a Delta table, and turns it into actions of the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.sinks.delta.format.data_files import POSITION, DataFiles
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.log_files import Action
from floodmark.sinks.delta.format.statistics import bounds, may_hold
from floodmark.sinks.delta.format.vectors import Rows
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.delta.planning.complete_parts import completed
from floodmark.sinks.delta.planning.merged_parts import MergedParts
from floodmark.sinks.delta.planning.row_deletions import RowDeletions
from floodmark.sinks.delta.planning.target_rows import HeldFiles, TargetRows
from floodmark.sinks.keys import KeyIndex

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_THREADS = 4


@dataclass(frozen=True)
class _Found:
    """What a file holds of the changed rows.

    Attributes:
        count: how many rows it has, deleted ones included.
        replaced: numbers of the rows that get deleted.
        newer: numbers of the changes that are older than the file's row, and so change nothing.
    """

    file: DataFile
    count: int
    replaced: Rows
    newer: Numbers


class Replacements:
    """Plans what the parts of a micro-batch replace.

    Args:
        files: the table's.
        rows: their rows.
        vectors: whether replaced rows are marked in deletion vectors; otherwise their files are written again.
        soft: whether deleted rows are only marked.
    """

    def __init__(self, files: DataFiles, rows: TargetRows, vectors: bool, soft: bool) -> None:
        self._files = files
        self._rows = rows
        self._vectors = vectors
        self._soft = soft

    def actions(
        self, parts: Sequence[Part], files: list[DataFile], key: Sequence[str], columns: pa.Schema, at_ms: int
    ) -> list[Action]:
        """Return the actions that add the parts' rows and delete those that they replace (``Planner``)."""
        keys, truncated = pa.schema([columns.field(name) for name in key]), max(part.truncated for part in parts)
        deletions = RowDeletions(self._files, self._rows, self._vectors, key, at_ms)
        emptied = self._emptied(files, truncated) if truncated and not self._soft else {}
        files = [file for file in files if file.identity not in emptied or emptied[file.identity].count >= 0]
        target = HeldFiles(self._rows, files, keys)
        parts, truncated = completed(self._files, parts, key, columns, target, self._soft)
        merged = MergedParts.of(parts, truncated)
        found = {one.file.identity: one for one in self._found(files, merged, keys)}
        changed = [[one[at] for one in (emptied, found) if at in one] for at in {**emptied, **found}]
        actions = deletions.of_files(changed, lambda one: self._without(one, deletions, at_ms))
        for number, part in enumerate(parts):
            actions += deletions.added(part.adds, merged.lost_rows(number, part.rows))
        deletions.finish()
        return actions

    def _emptied(self, files: Sequence[DataFile], truncated: str) -> dict[tuple[str, str], _Found]:
        """Return what a truncate deletes, by the files' identities; without a count for whole files."""
        emptied = {}
        nothing = np.zeros(0, np.int64)
        for file in files:
            known = bounds(file, POSITION)
            if known is not None and known[1] < truncated:
                emptied[file.identity] = _Found(file, -1, nothing.astype(np.uint64), nothing)
            elif known is None or known[0] < truncated:
                positions = self._rows.positions(file)
                earlier = np.flatnonzero(_as_mask(pc.fill_null(pc.less(positions, truncated), True)))
                living = np.setdiff1d(earlier, self._rows.deleted(file).astype(np.int64), assume_unique=True)
                emptied[file.identity] = _Found(file, len(positions), living.astype(np.uint64), nothing)
        return emptied

    def _found(self, files: Iterable[DataFile], merged: MergedParts, keys: pa.Schema) -> list[_Found]:
        """Find what replaces earlier rows, and take what is older than the target's rows for lost."""
        wanted = np.flatnonzero(~merged.lost)
        changes = merged.changes.take(pa.array(wanted))
        if not len(wanted):
            return []
        index = KeyIndex(changes.select(keys.names))
        touched = [file for file in files if may_hold(file, index)]
        first = pc.min(changes[POSITION]).as_py()
        with ThreadPoolExecutor(_THREADS) as pool:
            found = list(pool.map(lambda file: self._found_in(file, changes, keys, index, first), touched))
        for one in found:
            merged.lost[wanted[one.newer]] = True
        return found

    def _found_in(self, file: DataFile, changes: pa.Table, keys: pa.Schema, index: KeyIndex, first: str) -> _Found:
        rows, matched = self._rows.find(file, keys, index)
        known, count = bounds(file, POSITION), self._rows.keys(file, keys).columns.num_rows
        if not len(rows) or (known is not None and known[1] < first):
            # All changes are newer than all rows of the file.
            return _Found(file, count, rows.astype(np.uint64), np.zeros(0, np.int64))
        before = self._rows.positions(file, rows)
        newer = _as_mask(pc.fill_null(pc.greater_equal(before, changes[POSITION].take(pa.array(matched))), False))
        return _Found(file, count, rows[~newer].astype(np.uint64), matched[newer])

    def _without(self, found: Sequence[_Found], deletions: RowDeletions, at_ms: int) -> list[Action]:
        """Return the actions that delete rows of a file.

        Args:
            found: what is known of them; at least one, all of the same file.
        """
        file, count = found[0].file, found[0].count
        if count < 0:
            return [file.removed(at_ms)]
        replaced = found[0].replaced if len(found) == 1 else np.union1d(found[0].replaced, found[1].replaced)
        return deletions.of(file, count, replaced)


def _as_mask(array: pa.ChunkedArray) -> Mask:
    return np.asarray(array.combine_chunks().to_numpy(zero_copy_only=False), dtype=np.bool_)
