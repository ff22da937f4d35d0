"""Decodes numbers of row events: integers, floating point, decimals, bits.

Source of the packed decimals: MySQL, ``strings/decimal.cc``, ``decimal2bin``. Words of nine digits take four bytes, big
endian; the digits left over, those furthest from the point, take as few bytes as they need. The first bit is the
inverted sign; negative numbers have all bits inverted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.connectors.mysql.binlog.column_types import INT24, LONG, LONGLONG, SHORT, TINY
from floodmark.connectors.mysql.values.column_bytes import (
    MINUS,
    POINT,
    THREE_DIGITS,
    ZERO,
    big_endian,
    bytes_at,
    int_text,
    kept_text,
    nulls,
    numbers_at,
    text_array,
)
from floodmark.connectors.mysql.values.layouts import DIGIT_BYTES, DIGITS_PER_WORD, Layout
from floodmark.connectors.mysql.values.row_images import Bytes, Pieces
from floodmark.errors import DecodeError

INTEGER_TYPES = {TINY: "1", SHORT: "2", LONG: "4", LONGLONG: "8"}

_SIGN = 0x80
_MEDIUM_BITS = 24


def integers(buf: Bytes, pieces: Pieces, code: int, unsigned: bool) -> pa.StringArray:
    """Return integers as decimal text."""
    if code == INT24:
        low = numbers_at(buf, pieces, "<u2").astype(np.int64)
        high = numbers_at(buf, Pieces(pieces.starts + 2, pieces.lengths, pieces.valid), "u1").astype(np.int64)
        values = low | high << 16
        if not unsigned:
            values -= (values >> _MEDIUM_BITS - 1) << _MEDIUM_BITS
        return int_text(values, pieces.valid)
    kind = ("<u" if unsigned else "<i") + INTEGER_TYPES[code]
    return int_text(numbers_at(buf, pieces, kind), pieces.valid)


def floats(buf: Bytes, pieces: Pieces, dtype: str) -> pa.Array:
    """Return floating-point numbers.

    Args:
        buf: the buffer.
        pieces: the values.
        dtype: ``<f4`` or ``<f8``.
    """
    return pa.array(numbers_at(buf, pieces, dtype), mask=nulls(pieces.valid))


def years(buf: Bytes, pieces: Pieces) -> pa.StringArray:
    """Return years: a byte counted from 1900; 0 is the year 0000."""
    values = numbers_at(buf, pieces, "u1").astype(np.int64)
    text = int_text(values + 1900, pieces.valid)
    if not (values == 0).any():
        return text
    table = pa.array(["0000", *map(str, range(1901, 2156))])
    return table.take(pa.array(values, mask=nulls(pieces.valid)))


def decimals(buf: Bytes, pieces: Pieces, layout: Layout) -> pa.StringArray:
    """Return packed decimals as the server prints them.

    Raises:
        DecodeError: a word has more digits than it can have.
    """
    raw = bytes_at(buf, pieces, layout.size)
    negative = raw[:, 0] < _SIGN
    raw[:, 0] ^= _SIGN
    if negative.any():
        raw[negative] ^= 0xFF
    whole = layout.precision - layout.scale
    head, tail = whole % DIGITS_PER_WORD, layout.scale % DIGITS_PER_WORD
    groups = [head] * bool(head) + [DIGITS_PER_WORD] * (whole // DIGITS_PER_WORD)
    places = max(whole, 1)
    text = np.full((len(raw), 1 + places + bool(layout.scale) + layout.scale), ZERO, np.uint8)
    text[:, 0] = MINUS
    at = _write(raw, 0, groups, text, 1 + places - whole)
    if layout.scale:
        text[:, 1 + places] = POINT
        groups = [DIGITS_PER_WORD] * (layout.scale // DIGITS_PER_WORD) + [tail] * bool(tail)
        _write(raw, at, groups, text, 2 + places)
    keep = np.ones(text.shape, bool)
    keep[:, 0] = negative
    # Remove leading zeros, except for the last digit before the point.
    started = np.zeros(len(text), bool)
    for column in range(1, places):
        started |= text[:, column] != ZERO
        keep[:, column] = started
    return kept_text(text, keep, pieces.valid)


def _write(raw: Bytes, at: int, groups: list[int], text: Bytes, to: int) -> int:
    """Write the digits of the words from an offset of the packed form on; return where the words end."""
    for digits in groups:
        size = DIGIT_BYTES[digits]
        numbers = big_endian(raw[:, at : at + size])
        if (numbers >= 10**digits).any():
            raise DecodeError("A decimal holds a word that is no number of its digits.")
        _digits(numbers, digits, text, to)
        at += size
        to += digits
    return at


def _digits(numbers: NDArray[np.int64], digits: int, text: Bytes, to: int) -> None:
    """Write numbers of ``digits`` digits into columns of the text, three digits at a time."""
    end = to + digits
    rest = numbers
    while end > to:
        part = min(3, end - to)
        rest, low = (rest // 1000, rest % 1000) if end - to > 3 else (rest, rest)
        text[:, end - part : end] = THREE_DIGITS[low, 3 - part :]
        end -= part


def bit_values(buf: Bytes, pieces: Pieces, layout: Layout) -> pa.BinaryArray:
    """Return bit strings as bytes, highest first, as many as the column needs."""
    raw = bytes_at(buf, pieces, layout.size)
    offsets = np.arange(0, (len(raw) + 1) * layout.size, layout.size, dtype=np.int32)
    return text_array(offsets, np.ascontiguousarray(raw), pieces.valid).view(pa.binary())
