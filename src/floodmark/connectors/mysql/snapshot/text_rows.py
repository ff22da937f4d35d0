"""Splits rows of a query into raw columns, in the form of the log's rows.

Source: MySQL documentation, "Protocol::ProtocolText::ResultsetRow": each value is a length and its text; the first
byte is the length itself, or a code for NULL or for the number of bytes of the length that follows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.mysql.structures.table import Column
from floodmark.connectors.mysql.values.column_bytes import texts_at
from floodmark.connectors.mysql.values.raw_columns import raw_type
from floodmark.connectors.mysql.values.row_images import Bytes, Pieces, Positions
from floodmark.errors import DecodeError

NULL, TWO_BYTES, THREE_BYTES, EIGHT_BYTES = 0xFB, 0xFC, 0xFD, 0xFE

SESSION = (
    "SET NAMES utf8mb4",
    "SET time_zone = '+00:00'",
    "SET sql_mode = REPLACE(@@sql_mode, 'PAD_CHAR_TO_FULL_LENGTH', '')",
)
"""The statements that a session must run so that its text is that of the log."""

_WIDTHS = {TWO_BYTES: 2, THREE_BYTES: 3, EIGHT_BYTES: 8}
_LARGEST = 1 << 40


def select_expression(column: Column) -> str:
    """Return the expression to select so that its text represents the column's value exactly.

    The server shortens ``float``, and rounds both kinds where a number of digits was declared.
    """
    name = "`" + column.name.replace("`", "``") + "`"
    return f"{name} * 1e0" if column.type in ("float", "double") else name


def split_text_rows(buf: Bytes, starts: Positions, ends: Positions, columns: list[Column]) -> list[RawColumn]:
    """Split rows into raw columns.

    Args:
        buf: shape (bytes,), with the rows' packets; a row of several packets lies in one piece.
        starts: where the packets' payloads begin, ascending, shape (rows,).
        ends: where they end, shape (rows,).
        columns: the columns, selected by ``select_expression``.

    Raises:
        DecodeError: a row has another number of columns, or a value is not one of its type.
    """
    at = starts
    result = []
    try:
        for column in columns:
            pieces = _pieces(buf, at)
            at = pieces.starts + pieces.lengths
            if (at > ends).any():
                raise DecodeError("A row of a query is cut off.")
            result.append(RawColumn(_raw(texts_at(buf, pieces), column)))
    except (IndexError, OverflowError):
        raise DecodeError("A row of a query is cut off.") from None
    except pa.ArrowInvalid as exc:
        raise DecodeError(f"A value of a query is not one of its type: {exc}.") from None
    if (at != ends).any():
        raise DecodeError(f"A row of a query doesn't have {len(columns)} columns.")
    return result


def _pieces(buf: Bytes, at: Positions) -> Pieces:
    first = buf[at]
    lengths = first.astype(np.int64)
    starts = at + 1
    # Usually no value is NULL or has more than 250 bytes, so that the first byte is the length.
    if not len(first) or first.max() < NULL:
        return Pieces(starts, lengths, None)
    null = first == NULL
    lengths[null] = 0
    for mark, width in _WIDTHS.items():
        rows = np.flatnonzero(first == mark)
        if len(rows):
            lengths[rows] = _number(buf, starts[rows], width)
            starts[rows] += width
    if (first > EIGHT_BYTES).any() or (lengths < 0).any() or (lengths > _LARGEST).any():
        raise DecodeError("A row of a query holds a length that is none.")
    return Pieces(starts, lengths, ~null if null.any() else None)


def _number(buf: Bytes, at: Positions, width: int) -> NDArray[np.int64]:
    number = np.zeros(len(at), np.int64)
    for place in range(width):
        number |= buf[at + place].astype(np.int64) << 8 * place
    return number


def _raw(text: pa.StringArray, column: Column) -> pa.Array:
    kind = raw_type(column)
    if kind == pa.binary():
        return text.view(pa.binary())
    if kind != pa.string():
        numbers = text.cast(pa.float64())
        return numbers if kind == pa.float64() else numbers.cast(kind, safe=False)
    if column.zerofill and column.type != "year":
        return _unfilled(text)
    return text


def _unfilled(text: pa.StringArray) -> pa.StringArray:
    """Return numbers without the leading zeros of ``ZEROFILL``."""
    bare = pc.ascii_ltrim(text, "0")
    lacking = pc.or_(pc.equal(bare, ""), pc.starts_with(bare, "."))
    return pc.if_else(lacking, pc.binary_join_element_wise("0", bare, ""), bare)
