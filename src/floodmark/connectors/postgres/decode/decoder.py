"""Decodes segments into events: the ``LogDecoder`` of PostgreSQL.

All changes of one kind, of tables in the same layout group, are made into events together; at the end the events are
put back into the log's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from floodmark.changes.change_events import ChangeEvents
from floodmark.changes.changes import Rows
from floodmark.changes.isolation import Isolation
from floodmark.changes.layout_groups import LayoutGroups, TableNames
from floodmark.changes.table_version import TableVersion, VersionMaker
from floodmark.codecs.raw_column import RawColumn, with_old_values
from floodmark.connectors.contract.decoding import DecodeProblems, DecodeRequest
from floodmark.connectors.postgres.decode.event_order import order_events
from floodmark.connectors.postgres.decode.message_events import message_groups, topic_group
from floodmark.connectors.postgres.decode.records import Changes, all_changes, truncated, within
from floodmark.connectors.postgres.decode.transaction_events import Blocks, TransactionEvents
from floodmark.connectors.postgres.decode.tuples import NEW_ROW, OLD_KEY_ROW, OLD_ROW, last_tuples, tuple_pairs
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.source_block import StreamedSource
from floodmark.connectors.postgres.wire.messages import (
    CHANGE_TUPLE,
    CHANGE_TUPLE_KIND,
    DELETE,
    INSERT,
    TRUNCATE,
    UPDATE,
)
from floodmark.errors import DecodeError
from floodmark.events.columns import EventGroup

# Small slices keep the working set in the allocator's and the processor's caches; with many layout groups a slice must
# still hold enough rows of each to be worth a vectorised pass.
SLICE_CHANGES = 16_384
SLICE_CHANGES_MANY_SHAPES = 131_072
FEW_SHAPES = 4


_Rows = Rows[Changes]


class PostgresDecoder:
    """Decodes segments of pgoutput messages into events."""

    def __init__(self, options: PostgresOptions, make_version: VersionMaker) -> None:
        self._options = options
        self._make_version = make_version
        self._events = ChangeEvents(options)
        self._constants = {"database": options.dbname}

    def decode(self, request: DecodeRequest, problems: DecodeProblems) -> Iterator[pa.RecordBatch]:
        """Yield the events of the records; see ``connectors.executor_side.LogDecoder``.

        Raises:
            DecodeError: a record violates the protocol.
        """
        data, after, upto = request.data, request.after, request.upto
        whole = all_changes(data)
        changes = within(whole, after, upto)
        layouts = LayoutGroups(changes.relations, self._options)
        isolation = Isolation(changes.relations, request.excluded, request.only, problems)
        versions = [isolation.version(self._make_version, layouts, number) for number in range(len(layouts.first))]
        options = self._options
        source = StreamedSource(
            options.topic_prefix,
            options.dbname,
            changes.transactions,
            request.context,
            apart=options.reshapes_records,
        )
        blocks, topic_events = None, []
        with_others = request.only is None and self._options.format == "events"
        if self._options.provide_transaction_metadata and self._options.format == "events":
            event_order = order_events(data, whole, layouts, versions, self._options)
            blocks = Blocks(whole, event_order)
            if with_others:
                topic = TransactionEvents(self._options, data, whole, event_order)
                topic_events = [topic.begins(after, upto), topic.ends(after, upto)]
        size = SLICE_CHANGES if len(versions) <= FEW_SHAPES else SLICE_CHANGES_MANY_SHAPES
        low = 0
        for first in range(0, max(len(changes.at), 1), size):
            part = changes.select(slice(first, first + size))
            groups = [
                *self._row_changes(part, layouts, versions, source, blocks, isolation),
                *self._truncates(part, source, blocks, isolation),
            ]
            if with_others:
                last = first + size >= len(changes.at)
                high = len(data.starts) if last else int(part.record[-1]) + 1
                groups += message_groups(part, source, blocks, self._options)
                groups += [topic_group(one.select(low, high), changes, self._options) for one in topic_events]
                low = high
            batch = self._make_version.assemble(groups)
            if batch is not None:
                yield batch

    def _row_changes(
        self,
        changes: Changes,
        layouts: LayoutGroups,
        versions: Sequence[TableVersion | None],
        source: StreamedSource,
        blocks: Blocks | None,
        isolation: Isolation,
    ) -> Iterator[EventGroup]:
        # Truncates have no relation: their index is -1, the appended element.
        shape = np.append(np.where(isolation.excluded, -1, layouts.shape), -1)[changes.relation]
        order = np.argsort(shape, kind="stable")
        bounds = np.flatnonzero(np.diff(shape[order])) + 1
        for index in np.split(order, bounds):
            if not len(index) or shape[index[0]] < 0:
                continue
            version = versions[int(shape[index[0]])]
            if version is None:
                continue
            # An update may become a delete and a create, so it is left out here only if all three are skipped.
            for kind, operations, make in (
                (INSERT, "c", self._inserts),
                (UPDATE, "udc", self._updates),
                (DELETE, "d", self._deletes),
            ):
                chosen = index[changes.kind[index] == kind]
                if len(chosen) and not all(map(self._options.skips, operations)):
                    part = changes.select(chosen)
                    names = layouts.names(part.relation)
                    pieces = source.pieces(names.source[0], part.transaction, part.lsn)
                    yield from isolation.run(make, Rows(part, version, names, pieces, self._constants, blocks))

    def _inserts(self, rows: _Rows) -> Iterator[EventGroup]:
        _expect(rows.changes, CHANGE_TUPLE_KIND, NEW_ROW)
        yield from self._events.inserts(rows, _only_tuples(rows))

    def _updates(self, rows: _Rows) -> Iterator[EventGroup]:
        kinds = rows.changes.payload[rows.changes.at + CHANGE_TUPLE_KIND]
        for kind in (NEW_ROW, OLD_ROW, OLD_KEY_ROW):
            index = np.flatnonzero(kinds == kind)
            if not len(index):
                continue
            part = rows if len(index) == len(rows) else rows.select(index)
            if kind == NEW_ROW:
                yield from self._events.new_rows(part, _only_tuples(part))
                continue
            old, new = _both_tuples(part)
            # The new row lacks large values, also those of a key, that didn't change.
            yield from self._events.updates(part, old, with_old_values(new, old), kind == OLD_ROW)
        if not np.isin(kinds, (NEW_ROW, OLD_ROW, OLD_KEY_ROW)).all():
            raise DecodeError("An Update message holds an unknown kind of tuple.")

    def _deletes(self, rows: _Rows) -> Iterator[EventGroup]:
        kinds = rows.changes.payload[rows.changes.at + CHANGE_TUPLE_KIND]
        for kind in (OLD_ROW, OLD_KEY_ROW):
            index = np.flatnonzero(kinds == kind)
            if len(index):
                part = rows if len(index) == len(rows) else rows.select(index)
                yield from self._events.deletes(part, _only_tuples(part), kind == OLD_ROW)
        if not np.isin(kinds, (OLD_ROW, OLD_KEY_ROW)).all():
            raise DecodeError("A Delete message holds an unknown kind of tuple.")

    def _truncates(
        self, changes: Changes, source: StreamedSource, blocks: Blocks | None, isolation: Isolation
    ) -> Iterator[EventGroup]:
        if self._options.skips("t"):
            return
        for i in np.flatnonzero(changes.kind == TRUNCATE).tolist():
            one = changes.select(np.array([i]))
            for sub, oid in enumerate(truncated(changes.payload, int(changes.at[i]))):
                relation = changes.relation_at(oid, int(changes.record[i]))
                if oid in isolation.numbers or not self._options.captures(relation.schema, relation.table):
                    continue
                version = self._make_version(relation)
                names = TableNames.of(relation, self._options)
                pieces = source.pieces(names.source[0], one.transaction, one.lsn)
                yield self._events.truncates(Rows(one, version, names, pieces, self._constants, blocks), sub)


def _only_tuples(rows: _Rows) -> list[RawColumn]:
    """Split messages that hold one tuple."""
    changes = rows.changes
    return last_tuples(changes.payload, changes.at + CHANGE_TUPLE, len(rows.version.names), changes.ends)


def _both_tuples(rows: _Rows) -> tuple[list[RawColumn], list[RawColumn]]:
    """Split updates that hold an old and a new tuple."""
    changes = rows.changes
    return tuple_pairs(changes.payload, changes.at + CHANGE_TUPLE, len(rows.version.names), changes.ends)


def _expect(changes: Changes, offset: int, kind: int) -> None:
    if (changes.payload[changes.at + offset] != kind).any():
        raise DecodeError("A message holds an unknown kind of tuple.")
