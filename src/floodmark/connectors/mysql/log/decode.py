"""From segments to events: the ``LogDecoder`` of MySQL and MariaDB.

The row events of all tables that look alike are split together, and their changes are made into events by kind; at
the end they are put back into the log's order.

Source: MySQL, ``libs/mysql/binlog/event/rows_event.h``, ``Rows_event``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.config.mysql import BinlogOptions
from floodmark.connectors.base import DeadLetter, TableFailure
from floodmark.connectors.mysql.log import event_types as kinds
from floodmark.connectors.mysql.log.events import Events, segment_events
from floodmark.connectors.mysql.log.layouts import Layout
from floodmark.connectors.mysql.log.row_changes import RowChanges, StreamedSource
from floodmark.connectors.mysql.log.row_columns import image_columns
from floodmark.connectors.mysql.log.row_events import RowEvents, row_events, statements
from floodmark.connectors.mysql.log.row_images import Pieces, SplitRows, image_of, split_events
from floodmark.connectors.mysql.log.tables import SegmentTables
from floodmark.connectors.mysql.rows.structure import TableStructure
from floodmark.errors import DecodeError
from floodmark.events.columns import EventGroup, assemble
from floodmark.rows.change_events import ChangeEvents
from floodmark.rows.changes import DELETE, INSERT, UPDATE, Rows
from floodmark.rows.isolation import Isolation
from floodmark.rows.raw_column import RawColumn
from floodmark.rows.shapes import Shapes
from floodmark.rows.table_version import TableVersion, VersionMaker

SLICE_BYTES = 4 << 20
"""Row events that are decoded together: small slices keep the working set in the processor's caches."""


@dataclass
class _Split(Rows[RowChanges]):
    """Changes whose rows have been split into pieces.

    Attributes:
        buf: holds the values.
        layouts: of the table's columns.
        before: the pieces of old rows by column; None if there are none.
        after: those of new rows.
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
        return self._columns(self.before, None)

    def new(self, old: list[RawColumn] | None = None) -> list[RawColumn]:
        """Return the raw columns of the new rows; what they lack is taken from the old ones."""
        assert self.after is not None
        return self._columns(self.after, old)

    def _columns(self, pieces: dict[int, Pieces], old: list[RawColumn] | None) -> list[RawColumn]:
        assert self.buf is not None
        structure = self.version.structure
        assert isinstance(structure, TableStructure)
        return image_columns(self.buf, pieces, structure.columns, self.layouts, len(self), old)


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


class BinlogDecoder:
    """Decodes segments of binlog events into events."""

    def __init__(self, options: BinlogOptions, make_version: VersionMaker) -> None:
        self._options = options
        self._make_version = make_version
        self._events = ChangeEvents(options)

    def decode(
        self,
        data: SegmentData,
        after: str,
        upto: str,
        aside: Collection[int] = (),
        only: Collection[int] | None = None,
        failed: list[TableFailure] | None = None,
        xmin: int | None = None,
        dead: list[DeadLetter] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Return the events of the changes in ``(after, upto]``, as ``connectors.base.LogDecoder`` says.

        Raises:
            DecodeError: a record isn't what the protocol says.
        """
        del xmin
        events = segment_events(data)
        tables = SegmentTables(events, data.header, data.header["flavor"])
        shapes = Shapes(tables.relations, self._options)
        isolation = Isolation(tables.relations, aside, only, failed, dead)
        versions = [isolation.version(self._make_version, shapes, number) for number in range(len(shapes.first))]
        queries = statements(events) if self._options.include_query else None
        source = StreamedSource(self._options.connector, self._options.topic_prefix, events, queries)
        wanted = events.of("rows") & events.within(after, upto)
        wanted &= np.append(np.where(isolation.aside, -1, shapes.shape), -1)[tables.relation] >= 0
        found = row_events(events, np.flatnonzero(wanted))
        for part in found.slices(SLICE_BYTES):
            groups = list(self._groups(part, events, tables, shapes, versions, source, isolation))
            batch = assemble(groups, self._make_version.schema)
            if batch is not None:
                yield batch

    def _groups(
        self,
        found: RowEvents,
        events: Events,
        tables: SegmentTables,
        shapes: Shapes,
        versions: Sequence[TableVersion | None],
        source: StreamedSource,
        isolation: Isolation,
    ) -> Iterator[EventGroup]:
        relation = tables.relation[found.event]
        for chosen in found.alike(relation, shapes.shape):
            part = found.select(chosen)
            version = versions[int(shapes.shape[relation[chosen[0]]])]
            kind, operations, make = self._maker(int(part.kind[0]))
            if version is None or all(map(self._options.skips, operations)):
                continue
            rows = self._split(part, kind, relation[chosen], events, tables, version, shapes, source, isolation)
            if rows is not None:
                yield from isolation.run(make, rows)

    def _maker(self, kind: int) -> tuple[int, str, Callable[[Rows[RowChanges]], Iterator[EventGroup]]]:
        # An update may be a delete and a create, so it is not left out before it has been looked at.
        if kind in kinds.WRITES:
            return INSERT, "c", self._inserts
        return (UPDATE, "udc", self._updates) if kind in kinds.UPDATES else (DELETE, "d", self._deletes)

    def _split(
        self,
        part: RowEvents,
        kind: int,
        relation: NDArray[np.int64],
        events: Events,
        tables: SegmentTables,
        version: TableVersion,
        shapes: Shapes,
        source: StreamedSource,
        isolation: Isolation,
    ) -> _Split | None:
        """Return the rows of events that look alike; None if they can't be split."""
        try:
            layouts = tables.layouts(int(relation[0]))
            images = [image_of(layouts, present, part.is_partial and last) for present, last in part.bitmaps()]
            before = None if kind == INSERT else images[0]
            split = split_events(part.buf, part.begin, part.end, before, None if kind == DELETE else images[-1])
        except DecodeError as exc:
            isolation.fail(relation, exc)
            return None
        return self._rows(part, split, kind, relation, events, layouts, version, tables, shapes, source)

    def _rows(
        self,
        part: RowEvents,
        split: SplitRows,
        kind: int,
        relation: NDArray[np.int64],
        events: Events,
        layouts: tuple[Layout, ...],
        version: TableVersion,
        tables: SegmentTables,
        shapes: Shapes,
        source: StreamedSource,
    ) -> _Split:
        count = len(split.event)
        changes = RowChanges(
            events,
            part.event[split.event],
            split.number,
            np.full(count, kind, np.uint8),
            relation[split.event],
            tables.relations,
        )
        names = shapes.names(changes.relation)
        pieces = source.pieces(names, changes)
        return _Split(changes, version, names, pieces, {}, None, part.buf, layouts, split.before, split.after)

    def _inserts(self, rows: Rows[RowChanges]) -> Iterator[EventGroup]:
        assert isinstance(rows, _Split)
        yield from self._events.inserts(rows, rows.new())

    def _updates(self, rows: Rows[RowChanges]) -> Iterator[EventGroup]:
        assert isinstance(rows, _Split)
        old = rows.old()
        # With a minimal image a new row has only what was set, an old one only its key.
        yield from self._events.updates(rows, old, rows.new(old), complete=True)

    def _deletes(self, rows: Rows[RowChanges]) -> Iterator[EventGroup]:
        assert isinstance(rows, _Split)
        yield from self._events.deletes(rows, rows.old(), complete=True)
