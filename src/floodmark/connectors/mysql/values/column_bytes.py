"""Collects the bytes of a column's values from a buffer, all rows at once, and makes text from digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.arrays import slices
from floodmark.connectors.mysql.binlog.packets import le_view
from floodmark.connectors.mysql.values.row_images import Bytes, Mask, Pieces, Positions

ZERO, MINUS, POINT, COLON, SPACE = b"0-.: "


def _digit_table(digits: int) -> NDArray[np.uint8]:
    numbers = np.arange(10**digits)[:, None]
    return (numbers // 10 ** np.arange(digits - 1, -1, -1) % 10 + ZERO).astype(np.uint8)


TWO_DIGITS = _digit_table(2)
"""The numbers below 100 as ASCII digits, shape (100, 2)."""

THREE_DIGITS = _digit_table(3)
FOUR_DIGITS = _digit_table(4)


def numbers_at(buf: Bytes, pieces: Pieces, dtype: str) -> NDArray[Any]:
    """Return the numbers that begin at the pieces' starts, shape (rows,); arbitrary ones where there is no value."""
    starts = safe_starts(pieces)
    if starts is None:
        return np.zeros(len(pieces.starts), dtype)
    return le_view(buf, dtype)[starts]


def bytes_at(buf: Bytes, pieces: Pieces, size: int) -> Bytes:
    """Return ``size`` bytes from each piece's start on, shape (rows, size); arbitrary ones where there is no value."""
    starts = safe_starts(pieces)
    if starts is None:
        return np.zeros((len(pieces.starts), size), np.uint8)
    rows: Bytes = buf[starts[:, None] + np.arange(size)]
    return rows


def big_endian(matrix: Bytes) -> NDArray[np.int64]:
    """Return rows of up to eight bytes as big-endian numbers, shape (rows,)."""
    numbers = np.zeros(len(matrix), np.int64)
    for column in range(matrix.shape[1]):
        numbers = numbers << 8 | matrix[:, column]
    return numbers


def little_endian(matrix: Bytes) -> NDArray[np.int64]:
    """Return rows of up to eight bytes as little-endian numbers, shape (rows,)."""
    return big_endian(matrix[:, ::-1])


def safe_starts(pieces: Pieces) -> Positions | None:
    """Return starts that are safe to read in all rows, those without a value included; None if no row has one."""
    if pieces.valid is None:
        return pieces.starts
    present = np.flatnonzero(pieces.valid)
    if not len(present):
        return None
    return np.where(pieces.valid, pieces.starts, pieces.starts[present[0]])


def nulls(valid: Mask | None) -> NDArray[np.bool_] | None:
    """Return a mask as Arrow expects it: true where a value is null."""
    return None if valid is None else ~valid


def texts_at(buf: Bytes, pieces: Pieces) -> pa.StringArray:
    """Return the pieces as strings, without checking that they are UTF-8."""
    return slices(buf, pieces.starts, pieces.lengths, pieces.valid)


def binary_at(buf: Bytes, pieces: Pieces) -> pa.BinaryArray:
    """Return the pieces as bytes."""
    return texts_at(buf, pieces).view(pa.binary())


def bitmap(valid: Mask | None) -> pa.Buffer | None:
    """Return a validity bitmap; None if all rows have a value."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def text_array(offsets: NDArray[np.int32], data: Bytes, valid: Mask | None) -> pa.StringArray:
    """Build a string array from buffers.

    Args:
        offsets: shape (rows + 1,).
        data: the bytes of all values.
        valid: shape (rows,), false where null; None if nowhere.
    """
    return pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data), bitmap(valid), 0 if valid is None else -1
    )


def fixed_text(matrix: Bytes, valid: Mask | None) -> pa.StringArray:
    """Return a matrix of characters, shape (rows, width > 0), as strings."""
    rows, width = matrix.shape
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    return text_array(offsets, np.ascontiguousarray(matrix), valid)


def kept_text(matrix: Bytes, keep: NDArray[np.bool_], valid: Mask | None) -> pa.StringArray:
    """Return the kept characters of each row, shapes (rows, width), as strings."""
    offsets = np.zeros(len(matrix) + 1, np.int32)
    np.cumsum(keep.sum(axis=1), out=offsets[1:])
    return text_array(offsets, matrix[keep], valid)


def int_text(numbers: NDArray[Any], valid: Mask | None) -> pa.StringArray:
    """Return integers as decimal text."""
    return pa.array(numbers, mask=nulls(valid)).cast(pa.string())
