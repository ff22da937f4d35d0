"""Makes Debezium's events of row changes: creates, updates, deletes, tombstones, and changed keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.changes.changes import C, Rows
from floodmark.changes.table_version import KeyHeader, TableVersion
from floodmark.codecs.raw_column import RawColumn, take_columns
from floodmark.config.common import CommonOptions
from floodmark.events.columns import EventGroup
from floodmark.events.json_text import Fragment, Pieces, Text

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
            header = NEW_KEY, version.keys(after, len(index), bare=True)
            deleted = self.event(part, "d", before, None, DELETED, header)
            yield deleted
            if version.tombstones:
                yield self._tombstone(part, before, deleted, header)
        if self._options.skips(self._create):
            return
        header = OLD_KEY, version.keys(before, len(index), bare=True)
        yield self.event(part, "c", version.left_by_create(before), after, CREATED, header)

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
        before = rows.version.encode_old(old, complete)
        deleted = self.event(rows, "d", before, None, DELETED)
        yield deleted
        if rows.version.tombstones:
            yield self._tombstone(rows, before, deleted)

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
        header: KeyHeader | None = None,
    ) -> EventGroup:
        """Return one event for each change.

        Args:
            rows: the changes.
            operation: c, u, d or t.
            before: the encoded old rows.
            after: the encoded new rows.
            sub: the events' position among those of their change.
            header: a header that they have.
        """
        # The rows are in the log's order, so the last one has the highest position.
        rows.version.admit(rows.changes.place(len(rows) - 1))
        columns = rows.version.columns(
            operation,
            len(rows),
            before,
            after,
            rows.source,
            self._block(rows, operation, sub),
            topic=rows.names.topic,
            header=header,
        )
        return self._group(rows, operation, columns, sub)

    def _tombstone(
        self, rows: Rows[C], row: Sequence[Fragment], deleted: EventGroup, header: KeyHeader | None = None
    ) -> EventGroup:
        if rows.version.has_transforms:
            block = self._block(rows, "d", DELETED)
            columns = rows.version.tombstone_columns(
                len(rows), row, rows.source, block, topic=rows.names.topic, header=header
            )
        else:
            shared: dict[str, pa.Array] = {
                name: deleted.columns[name] for name in ("key", "headers") if name in deleted.columns
            }
            columns = {**shared, "value": pa.nulls(len(rows), pa.string())}
        return self._group(rows, "d", columns, TOMBSTONE)

    def _block(self, rows: Rows[C], operation: str, sub: int) -> Pieces | None:
        """Return the pieces of the events' transaction blocks; None: there are none."""
        if rows.blocks is None:
            return None
        # The create of a changed key comes after its delete, unless that is left out.
        later = int(sub == CREATED and operation == "c" and not self._options.skips(self._delete))
        return rows.blocks.pieces(rows.changes.order, sub if operation == "t" else 0, later)

    def _group(self, rows: Rows[C], operation: str, columns: dict[str, pa.Array], sub: int) -> EventGroup:
        shown = min(sub, SUBS - 1)
        every: dict[str, Text] = {
            **rows.changes.columns(shown, rows.names),
            **rows.constants,
            **columns,
            "op": operation,
        }
        return EventGroup.of(rows.changes.order * SUBS + shown, every)
