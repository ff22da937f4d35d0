"""Determines the sizes of values in row events for each column type.

Source: MySQL, ``libs/mysql/binlog/event/rows_event.h`` (metadata of TABLE_MAP events) and ``sql/log_event.cc``
(values). MariaDB adds two compressed types and, without ``mysql56_temporal_format``, an older form of time values
with fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from floodmark.connectors.mysql.binlog.column_types import (
    BIT,
    BLOBS,
    DATE,
    DATETIME,
    DATETIME2,
    DOUBLE,
    ENUM,
    FLOAT,
    INT24,
    LONG,
    LONGLONG,
    METADATA_BYTES,
    NEWDATE,
    NEWDECIMAL,
    NULL,
    SET,
    SHORT,
    STRING,
    TIME,
    TIME2,
    TIMESTAMP,
    TIMESTAMP2,
    TINY,
    VAR_STRING,
    VARCHAR,
    VARCHAR_COMPRESSED,
    YEAR,
)
from floodmark.connectors.mysql.structures.table import Column
from floodmark.errors import DecodeError

DIGITS_PER_WORD = 9
DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes that a number of decimal digits takes, from 0 to 9."""

_FIXED = {
    TINY: 1,
    SHORT: 2,
    INT24: 3,
    LONG: 4,
    LONGLONG: 8,
    FLOAT: 4,
    DOUBLE: 8,
    NULL: 0,
    YEAR: 1,
    DATE: 3,
    NEWDATE: 3,
    TIME: 3,
    TIMESTAMP: 4,
    DATETIME: 8,
}
_SECONDS = {TIMESTAMP2: 4, DATETIME2: 5, TIME2: 3}
_HIDDEN = {LONGLONG, TIMESTAMP2}
_LENGTH_BYTES = (1, 2, 3, 4)
_SHORT_LENGTH = 255
_MICROS = 6
_HIRES = {
    TIMESTAMP: (4, 5, 5, 6, 6, 7, 7),
    TIME: (3, 4, 4, 5, 5, 5, 6),
    DATETIME: (5, 6, 6, 7, 7, 7, 8),
}
"""Bytes of MariaDB's older time values, by the digits of a second's fraction."""


@dataclass(frozen=True)
class Layout:
    """A column as a TABLE_MAP event describes it.

    Attributes:
        code: the type's number; for a ``STRING`` that is an enum or a set, that type's number.
        size: bytes of a value; -1 if they vary.
        length_bytes: bytes of the length before a value of varying size, else 0.
        precision: digits of a decimal; bits of a bit column; maximum bytes of a string.
        scale: digits after the point of a decimal or of a second.
        hires: whether it is one of MariaDB's older time values with a fraction.
    """

    code: int
    size: int
    length_bytes: int = 0
    precision: int = 0
    scale: int = 0
    hires: bool = False


def parse_layouts(types: bytes, metadata: bytes) -> tuple[Layout, ...]:
    """Return the layouts of a table's columns.

    Args:
        types: a byte for each column, as in the TABLE_MAP event.
        metadata: the event's metadata block.

    Raises:
        DecodeError: a type is unknown, or the metadata block has the wrong size for the types.
    """
    layouts = []
    at = 0
    for code in types:
        size = METADATA_BYTES.get(code, 0)
        if at + size > len(metadata):
            raise DecodeError("A TABLE_MAP event's metadata end too early.")
        layouts.append(_layout(code, metadata[at : at + size]))
        at += size
    if at != len(metadata):
        raise DecodeError(f"A TABLE_MAP event has {len(metadata) - at} bytes of metadata too many.")
    return tuple(layouts)


def with_structure(layouts: Sequence[Layout], columns: Sequence[Column], hidden: bool) -> tuple[Layout, ...]:
    """Complete layouts from the table's structure, which alone identifies MariaDB's older time values with fractions.

    Args:
        layouts: the columns as in the TABLE_MAP event.
        columns: the columns of the structure.
        hidden: whether there may be more columns in the log: after all others, MariaDB hides the times of rows in
            tables with system versioning, and the hashes of long unique keys.

    Raises:
        DecodeError: the numbers of columns differ.
    """
    more = layouts[len(columns) :]
    if len(layouts) < len(columns) or (more and not (hidden and all(layout.code in _HIDDEN for layout in more))):
        raise DecodeError(
            f"A TABLE_MAP event has {len(layouts)} columns, the table's structure at that place {len(columns)}."
        )
    return (*(_hires(layout, column) for layout, column in zip(layouts, columns, strict=False)), *more)


def _hires(layout: Layout, column: Column) -> Layout:
    digits = column.scale or 0
    if layout.code not in _HIRES or not 0 < digits <= _MICROS:
        return layout
    return replace(layout, size=_HIRES[layout.code][digits], scale=digits, hires=True)


def _layout(code: int, meta: bytes) -> Layout:
    if code in _FIXED:
        return Layout(code, _FIXED[code])
    if code in BLOBS:
        if meta[0] not in _LENGTH_BYTES:
            raise DecodeError(f"A column of type {code} has lengths of {meta[0]} bytes.")
        return Layout(code, -1, meta[0])
    if code in _SECONDS:
        if meta[0] > _MICROS:
            raise DecodeError(f"A column of type {code} has {meta[0]} digits behind the point.")
        return Layout(code, _SECONDS[code] + (meta[0] + 1) // 2, scale=meta[0])
    if code in (VARCHAR, VARCHAR_COMPRESSED):
        longest = int.from_bytes(meta, "little")
        return Layout(code, -1, 1 if longest <= _SHORT_LENGTH else 2, longest)
    if code == NEWDECIMAL:
        return _decimal(*meta)
    if code == BIT:
        bits = meta[1] * 8 + meta[0]
        return Layout(code, (bits + 7) // 8, precision=bits)
    if code in (STRING, VAR_STRING, ENUM, SET):
        return _string(*meta)
    raise DecodeError(f"A TABLE_MAP event has a column of the unknown type {code}.")


def _decimal(precision: int, scale: int) -> Layout:
    if scale > precision:
        raise DecodeError(f"A decimal column has {precision} digits, {scale} of them behind the point.")
    return Layout(NEWDECIMAL, decimal_size(precision - scale) + decimal_size(scale), 0, precision, scale)


def decimal_size(digits: int) -> int:
    """Return how many bytes a number of digits on one side of the decimal point takes."""
    return digits // DIGITS_PER_WORD * 4 + DIGIT_BYTES[digits % DIGITS_PER_WORD]


def _string(first: int, second: int) -> Layout:
    """Return the layout of a ``STRING``, whose real type and length share two bytes."""
    if first & 0x30 != 0x30:
        longest = second | (first & 0x30 ^ 0x30) << 4
        return Layout(STRING, -1, 1 if longest <= _SHORT_LENGTH else 2, longest)
    if first in (ENUM, SET):
        return Layout(first, second)
    if first not in (STRING, VAR_STRING):
        raise DecodeError(f"A string column has the unknown type {first}.")
    return Layout(STRING, -1, 1, second)
