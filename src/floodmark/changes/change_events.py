"""Makes Debezium's events of row changes: creates, updates, deletes, tombstones, and changed keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.changes.changes import C, Rows
from floodmark.changes.layout_groups import Text
from floodmark.changes.table_version import TableVersion
from floodmark.codecs.raw_column import RawColumn, take_columns
from floodmark.config.common import CommonOptions
from floodmark.events.columns import HEADERS, EventGroup
from floodmark.events.json_text import Fragment

NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"

# Sub-order of the events made from one change.
DELETED, TOMBSTONE, CREATED = 0, 1, 2

SUBS = 256
"""The number of sub-orders that an event's order has room for; higher ones become the last."""


class ChangeEvents:
    """Makes the events of changes whose rows have been split into columns.

    Args:
        options: the source's options.
        by_part: whether ``skipped.operations`` leaves out the two parts of a key change like other deletes and
            creates, and not like updates; as in Debezium, that depends on the connector.
    """

    def __init__(self, options: CommonOptions, by_part: bool = True) -> None:
        self._options = options
        self._delete, self._create = ("d", "c") if by_part else ("u", "u")

    def inserts(self, rows: Rows[C], new: Sequence[RawColumn]) -> Iterator[EventGroup]:
        """Return the events of inserts."""
        yield self.event(rows, "c", None, rows.version.encode(new))

    def new_rows(self, rows: Rows[C], new: Sequence[RawColumn]) -> Iterator[EventGroup]:
        """Return the events of updates of which only the new row is known."""
        if not self._options.skips("u"):
            yield self.event(rows, "u", None, rows.version.encode(new))

    def updates(
        self, rows: Rows[C], old: Sequence[RawColumn], new: Sequence[RawColumn], complete: bool
    ) -> Iterator[EventGroup]:
        """Return the events of updates: one each, or delete, tombstone and create where the key changed.

        Args:
            rows: the changes.
            old: the old rows.
            new: the new rows.
            complete: whether all columns of the old rows are known.
        """
        version = rows.version
        moved = version.key_changed(old, new, complete)
        stayed = ~moved
        if complete and self._options.skip_messages_without_change:
            stayed &= version.row_changed(old, new)
        same = np.flatnonzero(stayed)
        if len(same) and not self._options.skips("u"):
            part = rows if len(same) == len(rows) else rows.select(same)
            before = version.encode_old(take_columns(old, same), complete)
            yield self.event(part, "u", before, version.encode(take_columns(new, same)))
        index = np.flatnonzero(moved)
        if not len(index):
            return
        part = rows.select(index)
        before = version.encode_old(take_columns(old, index), complete)
        after = version.encode(take_columns(new, index))
        if not self._options.skips(self._delete):
            deleted = self.event(part, "d", before, None, DELETED)
            deleted.columns["headers"] = _headers(NEW_KEY, version.keys(after, len(index), bare=True))
            yield deleted
            if version.tombstones:
                tombstone = self._tombstone(part, deleted.columns["key"])
                tombstone.columns["headers"] = deleted.columns["headers"]
                yield tombstone
        if self._options.skips(self._create):
            return
        created = self.event(part, "c", version.left_by_create(before), after, CREATED)
        created.columns["headers"] = _headers(OLD_KEY, version.keys(before, len(index), bare=True))
        yield created

    def update_counts(
        self, version: TableVersion, old: Sequence[RawColumn], new: Sequence[RawColumn], complete: bool
    ) -> NDArray[np.int64]:
        """Return how many events each update makes, not counting tombstones, shape (rows,).

        Args:
            version: the version of their table.
            old: the old rows.
            new: the new rows.
            complete: whether all columns of the old rows are known.
        """
        options = self._options
        moved = version.key_changed(old, new, complete)
        stayed = np.full(len(moved), not options.skips("u"))
        if complete and options.skip_messages_without_change:
            stayed &= version.row_changed(old, new)
        parts = (not options.skips(self._delete)) + (not options.skips(self._create))
        return np.where(moved, parts, stayed.astype(np.int64))

    def deletes(self, rows: Rows[C], old: Sequence[RawColumn], complete: bool) -> Iterator[EventGroup]:
        """Return the events of deletes, with their tombstones.

        Args:
            rows: the changes.
            old: the old rows.
            complete: whether all columns of the old rows are known.
        """
        group = self.event(rows, "d", rows.version.encode_old(old, complete), None, DELETED)
        yield group
        if rows.version.tombstones:
            yield self._tombstone(rows, group.columns["key"])

    def truncates(self, rows: Rows[C], table: int = 0) -> EventGroup:
        """Return the events of truncates.

        Args:
            rows: the changes.
            table: which one of the change's tables.
        """
        return self.event(rows, "t", None, None, table)

    def event(
        self,
        rows: Rows[C],
        operation: str,
        before: Sequence[Fragment] | None,
        after: Sequence[Fragment] | None,
        sub: int = 0,
    ) -> EventGroup:
        """Return one event for each change.

        Args:
            rows: the changes.
            operation: c, u, d or t.
            before: the encoded old rows.
            after: the encoded new rows.
            sub: the events' position among those of their change.
        """
        # The rows are in the log's order, so the last one has the highest position.
        rows.version.admit(rows.changes.place(len(rows) - 1))
        block = None
        if rows.blocks is not None:
            # The create of a changed key comes after its delete, unless that is left out.
            later = int(sub == CREATED and operation == "c" and not self._options.skips(self._delete))
            block = rows.blocks.pieces(rows.changes.order, sub if operation == "t" else 0, later)
        columns = rows.version.columns(operation, len(rows), before, after, rows.source, block)
        return self._group(rows, operation, columns, sub)

    def _tombstone(self, rows: Rows[C], keys: pa.StringArray) -> EventGroup:
        return self._group(rows, "d", {"key": keys, "value": pa.nulls(len(rows), pa.string())}, TOMBSTONE)

    def _group(self, rows: Rows[C], operation: str, columns: dict[str, pa.Array], sub: int) -> EventGroup:
        shown = min(sub, SUBS - 1)
        every: dict[str, Text] = {
            **columns,
            **rows.changes.columns(shown, rows.names),
            **rows.constants,
            "op": operation,
        }
        return EventGroup.of(rows.changes.order * SUBS + shown, every)


def _headers(name: str, values: pa.StringArray) -> pa.ListArray:
    """Return a list of one header for each row."""
    rows = len(values)
    names = pa.repeat(pa.scalar(name), rows)
    entries = pa.StructArray.from_arrays([names, values.cast(pa.binary())], fields=list(HEADERS.value_type))
    return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32)), entries, type=HEADERS)
