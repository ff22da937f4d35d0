"""Reconciles rows of a table that were read in a window with the window's log.

That is needed only where a view's exact position in the log is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.mysql.binlog import event_types as kinds
from floodmark.connectors.mysql.decode.events import segment_events
from floodmark.connectors.mysql.decode.row_events import RowEvents, row_events
from floodmark.connectors.mysql.decode.structure import TableStructure
from floodmark.connectors.mysql.decode.tables import SegmentTables
from floodmark.connectors.mysql.schema.logged_statement import LoggedStatement
from floodmark.connectors.mysql.values.layouts import Layout
from floodmark.connectors.mysql.values.raw_columns import raw_column, raw_type
from floodmark.connectors.mysql.values.row_images import Pieces, image_of, split_events
from floodmark.errors import SourceStateError
from floodmark.packing import table_number
from floodmark.snapshots.incremental.changed_rows import ChangedRows

_ROW_BITS = 28


class WindowChanges:
    """The changes of one table in a window.

    Args:
        structure: the table as it was read.
        low: position at which the window begins.
        high: position at which it ends.
    """

    def __init__(self, structure: TableStructure, low: str, high: str) -> None:
        self._structure = structure
        self._low = low
        self._high = high
        self._changed = ChangedRows(structure.key)
        self._events = 0

    def add(self, data: SegmentData, after: str, upto: str) -> None:
        """Add the changes of a segment that are in the window and in ``(after, upto]``; segments come in order."""
        events = segment_events(data)
        tables = SegmentTables(events)
        number = self._structure.number
        # Events without a relation have the index -1, and so the last element.
        own = np.array([relation.number == number for relation in tables.relations] + [False])
        wanted = events.of("rows") & own[tables.relation]
        inside = events.within(max(after, self._low), min(upto, self._high))
        for statement in events.header.statements:
            tables_emptied = LoggedStatement.from_json(statement.statement).emptied
            emptied = {table_number(table.database, table.name) for table in tables_emptied}
            at = int(np.searchsorted(events.record, statement.record))
            self._changed.emptied |= number in emptied and bool(inside[at])
        wanted &= inside
        found = row_events(events, np.flatnonzero(wanted))
        relation = tables.relation[found.event]
        for chosen in found.alike(relation, np.arange(len(tables.relations))):
            one = int(relation[chosen[0]])
            self._add(found.select(chosen), tables.relations[one], tables.layouts(one))
        self._events += len(events)

    def _add(self, events: RowEvents, structure: TableStructure, layouts: Sequence[Layout]) -> None:
        if structure.key != self._structure.key:
            raise SourceStateError(
                f"The key of the table {structure.schema}.{structure.table} was altered while it was read.",
                "Start the query again: the rows are read once more.",
            )
        kind = int(events.kind[0])
        images = [image_of(layouts, present, events.is_partial and last) for present, last in events.bitmaps()]
        old = None if kind in kinds.WRITES else images[0]
        new = images[-1] if kind in kinds.WRITES or kind in kinds.UPDATES else None
        split = split_events(events.buf, events.begin, events.end, old, new)
        # By event, then by row. The factor leaves a place before each new row for the old one, if its key changed.
        order = ((self._events + events.event[split.event]) << _ROW_BITS | split.number) * 2
        count = len(order)
        names = [column.name for column in structure.columns]
        before = None if split.before is None else _columns(events.buf, split.before, structure, layouts, count)
        after = None if split.after is None else _columns(events.buf, split.after, structure, layouts, count)
        if before is not None and after is not None:
            self._changed.add_updates(names, order, before, after)
        elif after is not None:
            self._changed.add(names, order, after, made=True)
        elif before is not None:
            self._changed.add(names, order, before, gone=True)

    def still_right(self, columns: Sequence[RawColumn]) -> list[RawColumn]:
        """Return the rows that are to be delivered, as they are at the window's end.

        Args:
            columns: the rows that were read, as raw columns in the structure's order.
        """
        return self._changed.still_right([column.name for column in self._structure.columns], columns)


def _columns(
    buf: NDArray[np.uint8],
    pieces: Mapping[int, Pieces],
    structure: TableStructure,
    layouts: Sequence[Layout],
    rows: int,
) -> list[RawColumn]:
    """Return raw columns; columns that the image doesn't hold are marked as unchanged."""
    result = []
    for index, (column, layout) in enumerate(zip(structure.columns, layouts, strict=True)):
        found = pieces.get(index)
        if found is None:
            result.append(RawColumn(pa.nulls(rows, raw_type(column)), np.ones(rows, bool)))
        else:
            result.append(RawColumn(raw_column(buf, found, layout, column)))
    return result
