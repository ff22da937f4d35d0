"""Converts row images, which may lack columns, to raw columns."""

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
        buf: holds the events, shape (bytes,).
        found: the pieces of the image by column.
        columns: the table's columns.
        layouts: layouts of these columns, followed by those of the server's hidden columns.
        rows: how many rows there are.
        old: the old rows' columns, for columns that the image lacks or holds as diffs; None if there are none.
        inserted: whether the rows are inserted, so that columns that the image lacks have their defaults.
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
    """Return a column that an image lacks: minimal images of new rows omit columns with their constant default."""
    default = stored_default(column) if inserted else None
    if default is None:
        return RawColumn(pa.nulls(rows, raw_type(column)), np.ones(rows, bool))
    return RawColumn(pa.repeat(default[0], rows))


def _patched(buf: Bytes, pieces: Pieces, layout: Layout, column: Column, old: RawColumn | None) -> RawColumn:
    """Return a JSON column in which some values are diffs; without old values these stay unknown."""
    assert pieces.partial is not None
    valid = ~pieces.partial if pieces.valid is None else pieces.valid & ~pieces.partial
    whole = raw_column(buf, pieces._replace(valid=valid), layout, column)
    if old is None or old.unchanged is not None:
        return RawColumn(whole, pieces.partial)
    return RawColumn(with_diffs(buf, pieces, whole, old.values))
