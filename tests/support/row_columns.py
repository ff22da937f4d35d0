"""All rows of many row events as raw columns, whatever columns each event's images hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.mysql.decode.row_columns import image_columns
from floodmark.connectors.mysql.structures.table import Column
from floodmark.connectors.mysql.values.layouts import Layout, with_structure
from floodmark.connectors.mysql.values.row_images import (
    DELETE,
    PARTIAL_UPDATE,
    WRITE,
    Bytes,
    Positions,
    image_of,
    split_events,
)


@dataclass
class RowColumns:
    """Rows of events of one table, in the order of the log.

    Attributes:
        event: shape (rows,), the index of each row's event.
        number: shape (rows,), its number in the event, from 1.
        before: the old rows' columns, one for each of the table; None if the events have no old rows.
        after: the new rows' columns, likewise. What a new row lacks is taken from the old one if that has it.
    """

    event: Positions
    number: Positions
    before: list[RawColumn] | None
    after: list[RawColumn] | None


def row_columns(
    buf: Bytes,
    begins: Positions,
    ends: Positions,
    kind: str,
    columns: Sequence[Column],
    layouts: Sequence[Layout],
    present: NDArray[np.uint8],
    present_after: NDArray[np.uint8] | None = None,
    hidden: bool = False,
) -> RowColumns:
    """Return the rows of events as raw columns.

    Args:
        buf: shape (bytes,), with the events.
        begins: where each event's rows begin, ascending, shape (events,).
        ends: where they end, shape (events,).
        kind: ``write``, ``update``, ``delete`` or ``partial`` (an update whose JSON may be diffs).
        columns: the table's structure.
        layouts: the columns as the TABLE_MAP event describes them.
        present: the events' bitmaps of columns, the lowest bit first, shape (events, bytes); of updates those of
            the old rows.
        present_after: those of an update's new rows; as ``present`` if None.
        hidden: whether the server may hide columns.

    Raises:
        DecodeError: an event is broken, or doesn't fit the structure.
    """
    layouts = with_structure(layouts, columns, hidden)
    both = np.hstack([present, present if present_after is None else present_after])
    if len(both) < 2 or (both == both[0]).all():
        return _of_images(buf, begins, ends, kind, columns, layouts, both[:1])
    distinct, which = np.unique(both, axis=0, return_inverse=True)
    parts = []
    for index in range(len(distinct)):
        events = np.flatnonzero(which.reshape(-1) == index)
        part = _of_images(buf, begins[events], ends[events], kind, columns, layouts, distinct[index : index + 1])
        part.event = events[part.event]
        parts.append(part)
    return _merged(parts)


def _of_images(
    buf: Bytes,
    begins: Positions,
    ends: Positions,
    kind: str,
    columns: Sequence[Column],
    layouts: Sequence[Layout],
    bitmaps: NDArray[np.uint8],
) -> RowColumns:
    """Return the rows of events whose images hold the same columns."""
    first, second = (half.tobytes() for half in np.hsplit(bitmaps[0], 2)) if len(bitmaps) else (b"", b"")
    if not len(bitmaps):
        first = second = bytes((len(layouts) + 7) // 8)
    before = None if kind == WRITE else image_of(layouts, first)
    after = None if kind == DELETE else image_of(layouts, second, kind == PARTIAL_UPDATE)
    rows = split_events(buf, begins, ends, before, after)
    count = len(rows.event)
    old = None if rows.before is None else image_columns(buf, rows.before, columns, layouts, count, None)
    new = None if rows.after is None else image_columns(buf, rows.after, columns, layouts, count, old, kind == WRITE)
    return RowColumns(rows.event, rows.number, old, new)


def _merged(parts: Sequence[RowColumns]) -> RowColumns:
    """Return the rows of all parts in the order of the log."""
    event = np.concatenate([part.event for part in parts])
    number = np.concatenate([part.number for part in parts])
    order = np.lexsort((number, event))
    return RowColumns(
        event[order],
        number[order],
        _sides([part.before for part in parts], order),
        _sides([part.after for part in parts], order),
    )


def _sides(sides: Sequence[list[RawColumn] | None], order: Positions) -> list[RawColumn] | None:
    known = [side for side in sides if side is not None]
    if not known:
        return None
    taken = pa.array(order)
    result = []
    for column in zip(*known, strict=True):
        text = pc.take(pa.concat_arrays([part.values for part in column]), taken)
        masks = [np.zeros(len(part.values), bool) if part.unchanged is None else part.unchanged for part in column]
        unchanged = np.concatenate(masks)[order]
        result.append(RawColumn(text, unchanged if unchanged.any() else None))
    return result
