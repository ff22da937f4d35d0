"""Reads the rows of a window in an executor, and reconciles them with the window's log by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.changes.table_version import VersionMaker
from floodmark.codecs.raw_column import RawColumn, take_columns, with_old_values
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.postgres.decode.records import Changes, find_changes, truncated
from floodmark.connectors.postgres.decode.relation import Relation
from floodmark.connectors.postgres.decode.tuples import NEW_ROW, last_tuples, tuple_pairs
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.snapshot.chunks import PostgresChunkReader
from floodmark.connectors.postgres.snapshot.copy_text import split_rows
from floodmark.connectors.postgres.snapshot.token import ReadPointToken
from floodmark.connectors.postgres.snapshot.visibility import Visibility
from floodmark.connectors.postgres.wire.messages import DELETE, INSERT, TRUNCATE, UPDATE
from floodmark.errors import SourceStateError
from floodmark.snapshots.incremental.reconcile import Touches, key_texts, reconcile

Columns = list[RawColumn]


@dataclass
class _Part:
    """Changes of one kind and one version of the table.

    Attributes:
        order: the changes' order in the window, shape (changes,).
        columns: the rows after the changes; None if the rows are gone.
    """

    relation: Relation
    order: NDArray[np.int64]
    keys: pa.StringArray
    made: bool
    contained: NDArray[np.bool_]
    columns: Columns | None


class TableChanges:
    """The changes of one table in a window.

    Args:
        relation: the table as it was read.
        visible: the snapshot that the rows were read with.
        low: position at which the window begins.
        high: position at which it ends.
    """

    def __init__(self, relation: Relation, visible: Visibility, low: str, high: str) -> None:
        self._relation = relation
        self._visible = visible
        self._low = low
        self._high = high
        self._parts: list[_Part] = []
        self._emptied = False
        self._records = 0
        self._place = np.empty((0, 2), np.int64)

    def add(self, data: SegmentData, after: str, upto: str) -> None:
        """Add the changes of a segment in ``(after, upto]`` that are in the window; segments come in order."""
        changes = find_changes(data, max(after, self._low), min(upto, self._high))
        oid = self._relation.oid
        for at in changes.at[changes.kind == TRUNCATE].tolist():
            self._emptied |= oid in truncated(changes.payload, at)
        for number, relation in enumerate(changes.relations):
            if relation.oid == oid:
                self._add_version(changes.select(np.flatnonzero(changes.relation == number)), relation)
        self._records += len(data.starts)

    def _add_version(self, changes: Changes, relation: Relation) -> None:
        if not len(changes.at):
            return
        if set(relation.key) != set(self._relation.key):
            raise SourceStateError(
                f"The key of the table {relation.schema}.{relation.table} was altered while it was read.",
                "Start the query again: the rows are read once more.",
            )
        width = len(relation.columns)
        seen = self._visible.sees(changes.transactions.xid)[changes.transaction]
        # Two numbers for each record: an update of the key removes the old row before it adds the new one.
        order = (self._records + changes.record) * 2
        kinds = changes.payload[changes.at + 5]
        plain = (changes.kind == INSERT) | ((changes.kind == UPDATE) & (kinds == NEW_ROW))
        for chosen, made in ((plain & (changes.kind == INSERT), True), (plain & (changes.kind == UPDATE), False)):
            index = np.flatnonzero(chosen)
            new = last_tuples(changes.payload, changes.at[index] + 6, width, changes.ends[index])
            self._append(relation, order[index] + 1, new, made, seen[index], True)
        index = np.flatnonzero(changes.kind == DELETE)
        old = last_tuples(changes.payload, changes.at[index] + 6, width, changes.ends[index])
        self._append(relation, order[index], old, False, seen[index], False)
        index = np.flatnonzero((changes.kind == UPDATE) & ~plain)
        if len(index):
            self._add_updates(changes.select(index), relation, order[index], seen[index])

    def _add_updates(
        self,
        changes: Changes,
        relation: Relation,
        order: NDArray[np.int64],
        seen: NDArray[np.bool_],
    ) -> None:
        """Add updates that hold the old row, or its key."""
        old, new = tuple_pairs(changes.payload, changes.at + 6, len(relation.columns), changes.ends)
        # The new row lacks large values of the key that didn't change.
        new = with_old_values(new, old)
        before, after = self._keys(relation, old), self._keys(relation, new)
        moved = np.asarray(pc.not_equal(before, after).fill_null(True))
        for index, made in ((np.flatnonzero(~moved), False), (np.flatnonzero(moved), True)):
            self._append(relation, order[index] + 1, take_columns(new, index), made, seen[index], True)
        gone = np.flatnonzero(moved)
        self._append(relation, order[gone], take_columns(old, gone), False, seen[gone], False)

    def _append(
        self,
        relation: Relation,
        order: NDArray[np.int64],
        columns: Columns,
        made: bool,
        seen: NDArray[np.bool_],
        present: bool,
    ) -> None:
        if len(order):
            keys = self._keys(relation, columns)
            self._parts.append(_Part(relation, order, keys, made, seen, columns if present else None))

    def _keys(self, relation: Relation, columns: Columns) -> pa.StringArray:
        """Return the keys of rows, by the columns that were the key when the table was read."""
        names = [column.name for column in relation.columns]
        return key_texts([columns[names.index(name)].values for name in self._relation.key])

    def touches(self) -> Touches:
        """Return what the changes do to the table's rows."""
        if not self._parts:
            none = np.empty(0, bool)
            return Touches(pa.array([], pa.string()), none, none, none, none, self._emptied)
        order = np.concatenate([part.order for part in self._parts])
        sort = np.argsort(order, kind="stable")
        sizes = [len(part.order) for part in self._parts]
        owner = np.repeat(np.arange(len(sizes)), sizes)
        # For `apply`: the part of each touch, and its index there.
        within = np.concatenate([np.arange(size) for size in sizes])
        self._place = np.stack([owner, within], axis=1)[sort]
        return Touches(
            pa.concat_arrays([part.keys for part in self._parts]).take(pa.array(sort)),
            np.array([part.columns is not None for part in self._parts])[owner][sort],
            np.array([part.made for part in self._parts])[owner][sort],
            np.concatenate([_lacking(part) for part in self._parts])[sort],
            np.concatenate([part.contained for part in self._parts])[sort],
            self._emptied,
        )

    def apply(self, row: dict[str, str | None], changes: Sequence[int]) -> Relation:
        """Apply changes to a row; return the table as it is after them.

        Args:
            row: its values by column, changed in place; a missing value isn't known.
            changes: indices of touches, in order.
        """
        relation = self._relation
        for index in changes:
            number, at = self._place[index].tolist()
            part = self._parts[number]
            assert part.columns is not None
            relation = part.relation
            for info, column in zip(relation.columns, part.columns, strict=True):
                if column.unchanged is None or not column.unchanged[at]:
                    row[info.name] = column.values[at].as_py()
        return relation


def _lacking(part: _Part) -> NDArray[np.bool_]:
    lacking = np.zeros(len(part.order), bool)
    for column in part.columns or ():
        if column.unchanged is not None:
            lacking |= column.unchanged
    return lacking


class PostgresWindowReader:
    """A ``LocalRowReader``."""

    def __init__(self, options: PostgresOptions, make_version: VersionMaker) -> None:
        self._make_version = make_version
        self._chunks = PostgresChunkReader(options, make_version)

    def read(
        self, chunk: Chunk, rows: Iterable[SegmentData], log: Iterable[tuple[SegmentData, str, str]]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are still valid at the end of their window, as read events."""
        relation: Relation = chunk.table.structure
        version = self._make_version(relation)
        changes = TableChanges(
            relation, Visibility.parse(ReadPointToken.from_json(chunk.token).visible), chunk.low, chunk.position
        )
        for data, after, upto in log:
            changes.add(data, after, upto)
        touches = changes.touches()
        for data in rows:
            columns = split_rows(data.payload, data.starts.astype(np.int64), len(version.names))
            found = reconcile(key_texts([columns[i].values for i in version.key_indices]), touches)
            whole = len(found.kept) == len(data.starts)
            kept = columns if whole else take_columns(columns, found.kept)
            batches = [self._chunks.events(version, len(found.kept), kept, chunk)]
            batches += self._completed(changes, version.names, columns, found.completed, chunk)
            yield from (batch for batch in batches if batch is not None)

    def _completed(
        self,
        changes: TableChanges,
        names: Sequence[str],
        columns: Columns,
        completed: Sequence[tuple[int, list[int]]],
        chunk: Chunk,
    ) -> Iterator[pa.RecordBatch | None]:
        """Yield rows with changes applied, as read events; there are few of them."""
        by_relation: dict[int, tuple[Relation, list[dict[str, str | None]]]] = {}
        for index, applied in completed:
            row = {name: column.values[index].as_py() for name, column in zip(names, columns, strict=True)}
            relation = changes.apply(row, applied)
            by_relation.setdefault(id(relation), (relation, []))[1].append(row)
        for relation, rows in by_relation.values():
            made = []
            for column in relation.columns:
                unknown = np.array([column.name not in row for row in rows])
                text = pa.array([row.get(column.name) for row in rows], pa.string())
                made.append(RawColumn(text, unknown if unknown.any() else None))
            yield self._chunks.events(self._make_version(relation), len(rows), made, chunk)
