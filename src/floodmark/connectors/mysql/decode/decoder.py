"""Decodes segments into events: the ``LogDecoder`` of MySQL and MariaDB.

The row events of all tables with the same layout are split together, and their changes become events by kind; at the
end these are put back into the log's order.

Source: MySQL, ``libs/mysql/binlog/event/rows_event.h``, ``Rows_event``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.changes.change_events import ChangeEvents
from floodmark.changes.changes import DELETE, INSERT, OPERATIONS, UPDATE, Rows
from floodmark.changes.event_order import EventOrder
from floodmark.changes.isolation import Isolation
from floodmark.changes.layout_groups import LayoutGroups
from floodmark.changes.table_version import TableVersion, VersionMaker
from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.contract.decoding import DecodeProblems, DecodeRequest
from floodmark.connectors.mysql.binlog import event_types as kinds
from floodmark.connectors.mysql.decode.ddl_events import DdlEvents
from floodmark.connectors.mysql.decode.events import Events, segment_events
from floodmark.connectors.mysql.decode.row_changes import ROW_BITS, RowChanges, StreamedSource
from floodmark.connectors.mysql.decode.row_columns import image_columns
from floodmark.connectors.mysql.decode.row_events import RowEvents, row_events, statements
from floodmark.connectors.mysql.decode.structure import TableStructure
from floodmark.connectors.mysql.decode.tables import SegmentTables
from floodmark.connectors.mysql.decode.transaction_events import Blocks, Boundaries, TransactionEvents
from floodmark.connectors.mysql.gtid import source_filter, sources
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.values.layouts import Layout
from floodmark.connectors.mysql.values.row_images import Pieces, image_of, split_events
from floodmark.errors import DecodeError, describe
from floodmark.events.columns import EventGroup
from floodmark.logger import get_logger

log = get_logger(__name__)

SLICE_BYTES = 4 << 20
"""Row events that are decoded together: small slices keep the working set in the processor's caches."""


@dataclass
class _Split(Rows[RowChanges]):
    """Changes whose rows have been split into pieces.

    Attributes:
        buf: holds the values.
        layouts: the layouts of the table's columns.
        before: the pieces of the old rows by column; None if there are none.
        after: the pieces of the new rows by column; None if there are none.
    """

    buf: NDArray[np.uint8] | None = None
    layouts: tuple[Layout, ...] = ()
    before: dict[int, Pieces] | None = None
    after: dict[int, Pieces] | None = None

    def select(self, index: NDArray[np.int64]) -> _Split:
        """Return some of the rows."""
        chosen = super().select(index)
        assert isinstance(chosen, _Split)
        chosen.before, chosen.after = (_taken(pieces, index) for pieces in (self.before, self.after))
        return chosen

    def old(self) -> list[RawColumn]:
        """Return the raw columns of the old rows."""
        assert self.before is not None
        return self._columns(self.before, None, False)

    def new(self, old: list[RawColumn] | None = None) -> list[RawColumn]:
        """Return the raw columns of the new rows; columns that they lack come from the old rows, or are defaults."""
        assert self.after is not None
        return self._columns(self.after, old, self.before is None)

    def _columns(self, pieces: dict[int, Pieces], old: list[RawColumn] | None, inserted: bool) -> list[RawColumn]:
        assert self.buf is not None
        structure = self.version.structure
        assert isinstance(structure, TableStructure)
        return image_columns(self.buf, pieces, structure.columns, self.layouts, len(self), old, inserted)


def _taken(pieces: dict[int, Pieces] | None, index: NDArray[np.int64]) -> dict[int, Pieces] | None:
    if pieces is None:
        return None
    return {
        column: Pieces(
            one.starts[index],
            one.lengths[index],
            None if one.valid is None else one.valid[index],
            None if one.partial is None else one.partial[index],
        )
        for column, one in pieces.items()
    }


@dataclass
class _Segment:
    """The state for decoding the rows of a segment."""

    events: Events
    tables: SegmentTables
    layouts: LayoutGroups
    versions: Sequence[TableVersion | None]
    source: StreamedSource
    isolation: Isolation
    delivered: NDArray[np.bool_] | None
    blocks: Blocks | None = None

    def captured(self) -> NDArray[np.bool_]:
        """Return which events hold rows of captured tables, shape (events,)."""
        # The appended -1 is what events without a table, whose relation is -1, index.
        shape = np.append(np.where(self.isolation.excluded, -1, self.layouts.shape), -1)
        captured: NDArray[np.bool_] = self.events.of("rows") & (shape[self.tables.relation] >= 0)
        return captured if self.delivered is None else captured & self.delivered[self.events.transaction]


class BinlogDecoder:
    """Decodes segments of binlog events into events."""

    def __init__(self, options: BinlogOptions, make_version: VersionMaker) -> None:
        self._options = options
        self._make_version = make_version
        self._events = ChangeEvents(options, by_part=False)
        self._taken = source_filter(options) if options.gtid_source_filter_dml_events else None

    def decode(self, request: DecodeRequest, problems: DecodeProblems) -> Iterator[pa.RecordBatch]:
        """Return the events of the records; see ``connectors.executor_side.LogDecoder``.

        Raises:
            DecodeError: a record is malformed.
        """
        only = request.only
        segment = self._segment(request.data, lambda relations: Isolation(relations, request.excluded, only, problems))
        events, captured = segment.events, segment.captured()
        inside = events.within(request.after, request.upto)
        transactions: TransactionEvents | None = None
        if self._options.provide_transaction_metadata and self._options.format == "events":
            boundaries = Boundaries(events)
            order, event_order = self._event_order(segment)
            segment.blocks = Blocks(boundaries, order, event_order)
            transactions = TransactionEvents(self._options, events, boundaries, event_order) if only is None else None
        ddl = DdlEvents(self._options, self._make_version, events, publishes=only is None)
        low = 0
        for part in row_events(events, np.flatnonzero(captured & inside)).slices(SLICE_BYTES):
            groups = list(self._groups(part, segment))
            # Each batch takes the other events up to its last row event, so that batches follow the log's order.
            high = int(part.event[-1]) + 1
            groups += self._others(segment, transactions, ddl, inside, low, high)
            low = high
            yield from self._batches(groups)
        yield from self._batches(list(self._others(segment, transactions, ddl, inside, low, len(events))))

    def _delivered(self, events: Events) -> NDArray[np.bool_] | None:
        """Return which transactions' changes are delivered, shape (transactions,); None: all."""
        if self._taken is None:
            return None
        found = sources(self._options.connector, events.transactions.gtid)
        taken = pa.array([self._taken(source) for source in found.dictionary.to_pylist()], pa.bool_())
        delivered: NDArray[np.bool_] = taken.take(found.indices).fill_null(True).to_numpy(zero_copy_only=False)
        return delivered

    def _others(
        self,
        segment: _Segment,
        transactions: TransactionEvents | None,
        ddl: DdlEvents,
        inside: NDArray[np.bool_],
        low: int,
        high: int,
    ) -> Iterator[EventGroup]:
        """Yield the transaction and DDL events from the binlog event ``low`` up to and excluding ``high``."""
        if transactions is not None:
            yield from transactions.groups(inside, low, high)
        yield from ddl.groups(inside, low, high, segment.source, segment.isolation)

    def open_events(self, data: SegmentData) -> dict[str, int]:
        """Return how many events, by table, the transaction that a segment leaves open makes up to its end."""
        segment = self._segment(data, lambda relations: Isolation(relations, (), None, DecodeProblems(tables=[])))
        _, event_order = self._event_order(segment)
        return event_order.of_transaction(len(segment.events.transactions.start) - 1)

    def _segment(self, data: SegmentData, isolate: Callable[[Sequence[TableStructure]], Isolation]) -> _Segment:
        events = segment_events(data)
        tables = SegmentTables(events)
        layouts = LayoutGroups(tables.relations, self._options)
        isolation = isolate(tables.relations)
        versions = [isolation.version(self._make_version, layouts, number) for number in range(len(layouts.first))]
        queries = self._queries(events) if self._options.include_query else None
        options = self._options
        source = StreamedSource(
            options.connector, options.topic_prefix, events, queries, apart=options.reshapes_records
        )
        return _Segment(events, tables, layouts, versions, source, isolation, self._delivered(events))

    def _batches(self, groups: list[EventGroup]) -> Iterator[pa.RecordBatch]:
        batch = self._make_version.assemble(groups)
        if batch is not None:
            yield batch

    def _event_order(self, segment: _Segment) -> tuple[NDArray[np.int64], EventOrder]:
        """Return the order of all changes of a segment, and the ordinals of their events in their transactions."""
        events, tables = segment.events, segment.tables
        parts = [
            (rows.changes.order, rows.changes.relation, self._counts(rows))
            for part in row_events(events, np.flatnonzero(segment.captured())).slices(SLICE_BYTES)
            for rows in self._splits(part, segment)
        ]
        order, relation, count = (
            np.concatenate([part[i] for part in parts]) if parts else np.zeros(0, np.int64) for i in range(3)
        )
        sort = np.argsort(order)
        order, relation, count = order[sort], relation[sort], count[sort]
        opened = events.header.transaction
        before = dict(opened.events or {}) if opened is not None else {}
        names = [f"{one.schema}.{one.table}" for one in tables.relations]
        listed = list(dict.fromkeys([*before, *names]))
        number = np.array([listed.index(name) for name in names], np.int64)
        transaction = events.transaction[order >> ROW_BITS]
        return order, EventOrder.of(transaction, number[relation], count, listed, before)

    def _counts(self, rows: _Split) -> NDArray[np.int64]:
        """Return how many events each change makes, not counting tombstones, shape (rows,)."""
        kind = int(rows.changes.kind[0])
        if kind != UPDATE:
            return np.full(len(rows), int(not self._options.skips(OPERATIONS[kind])), np.int64)
        old = rows.old()
        return self._events.update_counts(rows.version, old, rows.new(old), complete=True)

    def _queries(self, events: Events) -> pa.StringArray:
        opened = events.header.transaction
        return statements(events, None if opened is None else opened.statement)

    def _groups(self, found: RowEvents, segment: _Segment) -> Iterator[EventGroup]:
        makers = {INSERT: self._inserts, UPDATE: self._updates, DELETE: self._deletes}
        for rows in self._splits(found, segment):
            kind = int(rows.changes.kind[0])
            if not self._options.skips(OPERATIONS[kind]):
                yield from segment.isolation.run(makers[kind], rows)

    def _splits(self, found: RowEvents, segment: _Segment) -> Iterator[_Split]:
        """Yield the rows of events that can be split together."""
        relation = segment.tables.relation[found.event]
        for chosen in found.alike(relation, segment.layouts.shape):
            version = segment.versions[int(segment.layouts.shape[relation[chosen[0]]])]
            if version is not None:
                yield from self._split(found.select(chosen), version, relation[chosen], segment)

    def _split(
        self, part: RowEvents, version: TableVersion, relation: NDArray[np.int64], segment: _Segment
    ) -> Iterator[_Split]:
        """Yield the rows of events with the same layout and bitmaps, as far as they can be split."""
        code = int(part.kind[0])
        kind = INSERT if code in kinds.WRITES else UPDATE if code in kinds.UPDATES else DELETE
        try:
            layouts = segment.tables.layouts(int(relation[0]))
            if int(part.columns[0]) != len(layouts):
                raise DecodeError(f"A row event has {part.columns[0]} columns, its table {len(layouts)}.")
        except DecodeError as exc:
            self._leave_out(self._options.inconsistent_schema_handling_mode, segment, part, relation, exc)
            return
        mode = self._options.event_deserialization_failure_handling_mode
        try:
            images = [image_of(layouts, present, part.is_partial and last) for present, last in part.bitmaps()]
            before = None if kind == INSERT else images[0]
            split = split_events(part.buf, part.begin, part.end, before, None if kind == DELETE else images[-1])
        except DecodeError as exc:
            if mode == "fail" or len(relation) == 1:
                self._leave_out(mode, segment, part, relation, exc)
                return
            # Bisect, so that only the events that really can't be split are left out.
            for half in np.array_split(np.arange(len(relation)), 2):
                yield from self._split(part.select(half), version, relation[half], segment)
            return
        changes = RowChanges(
            segment.events,
            part.event[split.event],
            split.number,
            np.full(len(split.event), kind, np.uint8),
            relation[split.event],
            segment.tables.relations,
        )
        names = segment.layouts.names(changes.relation)
        source = segment.source.pieces(names, changes)
        yield _Split(changes, version, names, source, {}, segment.blocks, part.buf, layouts, split.before, split.after)

    def _leave_out(
        self, mode: str, segment: _Segment, part: RowEvents, relation: NDArray[np.int64], error: DecodeError
    ) -> None:
        """Leave out row events that can't be split; in mode ``fail``, their tables fail from here on."""
        if mode == "fail":
            segment.isolation.fail(relation, error)
        elif mode == "warn":
            place = int(segment.events.offset[part.event[0]])
            log.warning("changes_are_left_out", events=len(relation), offset=place, error=describe(error))

    def _inserts(self, rows: Rows[RowChanges]) -> Iterator[EventGroup]:
        assert isinstance(rows, _Split)
        yield from self._events.inserts(rows, rows.new())

    def _updates(self, rows: Rows[RowChanges]) -> Iterator[EventGroup]:
        assert isinstance(rows, _Split)
        old = rows.old()
        # With minimal row images a new row holds only the columns that were set, an old one only its key.
        yield from self._events.updates(rows, old, rows.new(old), complete=True)

    def _deletes(self, rows: Rows[RowChanges]) -> Iterator[EventGroup]:
        assert isinstance(rows, _Split)
        yield from self._events.deletes(rows, rows.old(), complete=True)
