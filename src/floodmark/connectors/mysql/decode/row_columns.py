"""Row images as raw columns, whatever columns they hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.mysql.structures.table import Column
from floodmark.connectors.mysql.types.defaults import stored_default
from floodmark.connectors.mysql.values.json_diffs import with_diffs
from floodmark.connectors.mysql.values.layouts import Layout
from floodmark.connectors.mysql.values.raw_columns import raw_column, raw_type
from floodmark.connectors.mysql.values.row_images import Bytes, Pieces


def image_columns(
    buf: Bytes,
    found: dict[int, Pieces],
    columns: Sequence[Column],
    layouts: Sequence[Layout],
    rows: int,
    old: list[RawColumn] | None,
    inserted: bool = False,
) -> list[RawColumn]:
    """Return the raw columns of rows whose images hold the same columns.

    Args:
        buf: shape (bytes,), with the events.
        found: the pieces of the image by column.
        columns: the table's structure.
        layouts: of all of its columns, and behind them of those that the server hides.
        rows: how many.
        old: the old rows' columns, for what the image lacks or holds as diffs; None if there are none.
        inserted: whether the rows are new, so that they have the defaults of the columns that the image lacks.
    """
    result = []
    for index, (column, layout) in enumerate(zip(columns, layouts, strict=False)):
        pieces = found.get(index)
        if pieces is None:
            result.append(_lacking(column, rows, inserted) if old is None else old[index])
        elif pieces.partial is None:
            result.append(RawColumn(raw_column(buf, pieces, layout, column)))
        else:
            result.append(_patched(buf, pieces, layout, column, None if old is None else old[index]))
    return result


def _lacking(column: Column, rows: int, inserted: bool) -> RawColumn:
    """Return a column that an image lacks: minimal images leave out what has the constant default of a new row."""
    default = stored_default(column) if inserted else None
    if default is None:
        return RawColumn(pa.nulls(rows, raw_type(column)), np.ones(rows, bool))
    return RawColumn(pa.repeat(default[0], rows))


def _patched(buf: Bytes, pieces: Pieces, layout: Layout, column: Column, old: RawColumn | None) -> RawColumn:
    """Return a JSON column of which some values are diffs; what their old values lack they lack too."""
    assert pieces.partial is not None
    valid = ~pieces.partial if pieces.valid is None else pieces.valid & ~pieces.partial
    whole = raw_column(buf, pieces._replace(valid=valid), layout, column)
    if old is None or old.unchanged is not None:
        return RawColumn(whole, pieces.partial)
    return RawColumn(with_diffs(buf, pieces, whole, old.values))
