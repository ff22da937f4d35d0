"""Parses TABLE_MAP events: how a table's rows are written in the rows events that follow.

Source: MySQL's documentation, "Table_map_event"; MariaDB's, "TABLE_MAP_EVENT".
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.mysql.binlog.column_types import (
    BLOB,
    BLOB_COMPRESSED,
    DOUBLE,
    ENUM,
    FLOAT,
    GEOMETRY,
    INT24,
    LONG,
    LONG_BLOB,
    LONGLONG,
    MEDIUM_BLOB,
    METADATA_BYTES,
    NEWDECIMAL,
    SET,
    SHORT,
    STRING,
    TINY,
    TINY_BLOB,
    TYPED_ARRAY,
    VAR_STRING,
    VARCHAR,
    VARCHAR_COMPRESSED,
    VECTOR,
    YEAR,
)
from floodmark.connectors.mysql.binlog.event_types import AT_BODY, HEADER_BYTES
from floodmark.connectors.mysql.binlog.little_endian import packed_number
from floodmark.connectors.mysql.binlog.packets import le_view
from floodmark.errors import DecodeError

ID_MASK = (1 << 48) - 1
_ID_BYTES = 6
_NAMES = _ID_BYTES + 2

NUMERIC = frozenset((TINY, SHORT, INT24, LONG, LONGLONG, NEWDECIMAL, FLOAT, DOUBLE, YEAR))
"""Column types with a signedness bit."""
CHARACTER = frozenset(
    (VARCHAR, VAR_STRING, STRING, TINY_BLOB, BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB_COMPRESSED, VARCHAR_COMPRESSED)
)
"""Column types with a character set; that of binary types is 63."""
COUNTED_AS_CHARACTER = {"mysql": VECTOR, "mariadb": GEOMETRY}
"""The type that a server lists among these too; its character set is binary."""
LABELLED = frozenset((ENUM, SET))

_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _COLUMN_NAME, _SET_VALUE, _ENUM_VALUE = 1, 2, 3, 4, 5, 6
_GEOMETRY_TYPE, _SIMPLE_KEY, _PREFIX_KEY, _ENUM_SET_DEFAULT_CHARSET, _ENUM_SET_COLUMN_CHARSET = 7, 8, 9, 10, 11
_VISIBILITY, _VECTOR_DIMENSIONS = 12, 13

T = TypeVar("T")


@dataclass(frozen=True)
class ColumnMap:
    """A column as a TABLE_MAP event describes it.

    Attributes:
        type: its real type; enums and sets, which are logged as strings, have their own.
        nullable: whether it may be NULL.
        unsigned: None unless logged (``binlog_row_metadata`` is minimal or full).
        collation: number of the collation of character columns, enums and sets; None unless logged.
        name: None unless logged (full).
        labels: of enums and sets, in the table's character set (full).
        geometry: kind of geometry as in WKB (full).
        key: ordinal in the primary key from 0; None if it isn't part of it, or isn't logged (full).
        key_prefix: how many characters the key holds; 0: all.
        visible: None unless logged (full).
        dimensions: of a vector (full).
    """

    type: int
    nullable: bool
    unsigned: bool | None = None
    collation: int | None = None
    name: str | None = None
    labels: tuple[bytes, ...] = ()
    geometry: int | None = None
    key: int | None = None
    key_prefix: int = 0
    visible: bool | None = None
    dimensions: int | None = None


@dataclass(frozen=True)
class TableMap:
    """A TABLE_MAP event.

    Attributes:
        id: id of the table in rows events, until the server closes it.
        types: a byte for each column.
        metadata: the metadata of the columns' types, concatenated.
    """

    id: int
    database: str
    table: str
    types: bytes
    metadata: bytes
    columns: tuple[ColumnMap, ...]


def table_ids(buf: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the table ids of TABLE_MAP or rows events, shape (events,).

    Args:
        buf: the records.
        starts: where the events' records start.

    Raises:
        DecodeError: an event ends before its id does.
    """
    ids = le_view(buf, "<u8")
    if len(starts) and int(starts.max()) + AT_BODY >= len(ids):
        raise DecodeError("An event in the binlog ends inside its table's id.")
    return ids[starts + AT_BODY].astype(np.int64) & ID_MASK


def table_name(event: bytes) -> tuple[int, str, str]:
    """Return id, database and name of a TABLE_MAP event's table.

    Args:
        event: from its header.

    Raises:
        DecodeError: the event is truncated.
    """
    try:
        found = int.from_bytes(event[HEADER_BYTES : HEADER_BYTES + _ID_BYTES], "little")
        database, at = _text(event, HEADER_BYTES + _NAMES)
        table, _ = _text(event, at)
    except IndexError:
        raise _cut_off() from None
    return found, database, table


def parse_table_map(event: bytes, flavor: str) -> TableMap:
    """Parse a TABLE_MAP event.

    Args:
        event: from its header, without checksum.
        flavor: the server's, ``mysql`` or ``mariadb``.

    Raises:
        DecodeError: the event is malformed.
    """
    try:
        found, database, table = table_name(event)
        at = HEADER_BYTES + _NAMES
        at += 2 + event[at]
        at += 2 + event[at]
        count, at = packed_number(event, at)
        types = event[at : at + count]
        at += count
        size, at = packed_number(event, at)
        metadata = event[at : at + size]
        at += size
        nulls = _bits(event[at : at + (count + 7) // 8], count, reverse=True)
        optional = event[at + (count + 7) // 8 :]
        columns = [_Column(*pair) for pair in zip(_real_types(types, metadata), nulls, strict=True)]
        _read_optional(columns, optional, flavor)
    except (IndexError, struct.error, UnicodeDecodeError, ValueError) as exc:
        raise DecodeError(f"A TABLE_MAP event in the binlog cannot be read: {exc}.") from None
    return TableMap(found, database, table, types, metadata, tuple(column.frozen() for column in columns))


@dataclass
class _Column:
    """A ``ColumnMap`` under construction."""

    type: int
    nullable: bool
    unsigned: bool | None = None
    collation: int | None = None
    name: str | None = None
    labels: tuple[bytes, ...] = ()
    geometry: int | None = None
    key: int | None = None
    key_prefix: int = 0
    visible: bool | None = None
    dimensions: int | None = None

    def frozen(self) -> ColumnMap:
        return ColumnMap(**vars(self))


def _read_optional(columns: list[_Column], data: bytes, flavor: str) -> None:
    numeric = [column for column in columns if column.type in NUMERIC]
    counted = CHARACTER | {COUNTED_AS_CHARACTER[flavor]}
    character = [column for column in columns if column.type in counted]
    labelled = [column for column in columns if column.type in LABELLED]
    at = 0
    while at < len(data):
        kind = data[at]
        size, at = packed_number(data, at + 1)
        value = data[at : at + size]
        at += size
        if len(value) != size:
            raise _cut_off()
        if kind == _SIGNEDNESS:
            for column, unsigned in zip(numeric, _bits(value, len(numeric)), strict=True):
                column.unsigned = unsigned
        elif kind in (_DEFAULT_CHARSET, _ENUM_SET_DEFAULT_CHARSET):
            _default_collations(character if kind == _DEFAULT_CHARSET else labelled, _numbers(value))
        elif kind in (_COLUMN_CHARSET, _ENUM_SET_COLUMN_CHARSET):
            chosen = character if kind == _COLUMN_CHARSET else labelled
            for column, number in zip(chosen, _numbers(value), strict=True):
                column.collation = number
        elif kind == _COLUMN_NAME:
            for column, name in zip(columns, _list(value, _string), strict=True):
                column.name = name.decode("utf-8")
        elif kind in (_SET_VALUE, _ENUM_VALUE):
            wanted = SET if kind == _SET_VALUE else ENUM
            chosen = [column for column in columns if column.type == wanted]
            for column, labels in zip(chosen, _list(value, _strings), strict=True):
                column.labels = labels
        elif kind == _GEOMETRY_TYPE:
            chosen = [column for column in columns if column.type == GEOMETRY]
            for column, number in zip(chosen, _numbers(value), strict=True):
                column.geometry = number
        elif kind == _SIMPLE_KEY:
            for place, number in enumerate(_numbers(value)):
                columns[number].key = place
        elif kind == _PREFIX_KEY:
            numbers = _numbers(value)
            for place, (number, prefix) in enumerate(zip(numbers[::2], numbers[1::2], strict=True)):
                columns[number].key = place
                columns[number].key_prefix = prefix
        elif kind == _VISIBILITY:
            for column, visible in zip(columns, _bits(value, len(columns)), strict=True):
                column.visible = visible
        elif kind == _VECTOR_DIMENSIONS:
            chosen = [column for column in columns if column.type == VECTOR]
            for column, number in zip(chosen, _numbers(value), strict=True):
                column.dimensions = number


def _default_collations(columns: list[_Column], numbers: list[int]) -> None:
    """Set the collations: ``numbers`` holds the default, then pairs of column and collation for the others."""
    others = dict(zip(numbers[1::2], numbers[2::2], strict=True))
    for index, column in enumerate(columns):
        column.collation = others.get(index, numbers[0])


def _real_types(types: bytes, metadata: bytes) -> list[int]:
    """Return the column types, with enums and sets, which are logged as strings, resolved from the metadata."""
    real = []
    at = 0
    for kind in types:
        if kind == TYPED_ARRAY:
            raise DecodeError("A TABLE_MAP event in the binlog holds an array of a functional index.")
        hidden = metadata[at] if kind == STRING else None
        real.append(hidden if hidden is not None and hidden in LABELLED else kind)
        at += METADATA_BYTES.get(kind, 0)
    if at != len(metadata):
        raise DecodeError("A TABLE_MAP event in the binlog holds columns of a type that is not known.")
    return real


def _bits(data: bytes, count: int, reverse: bool = False) -> list[bool]:
    """Return the first ``count`` bits, from each byte's highest bit on, or with ``reverse`` from its lowest."""
    if len(data) * 8 < count:
        raise _cut_off()
    return [bool(data[i >> 3] >> (i & 7 if reverse else 7 - (i & 7)) & 1) for i in range(count)]


def _numbers(data: bytes) -> list[int]:
    return _list(data, packed_number)


def _list(data: bytes, read: Callable[[bytes, int], tuple[T, int]]) -> list[T]:
    found = []
    at = 0
    while at < len(data):
        one, at = read(data, at)
        found.append(one)
    return found


def _strings(data: bytes, at: int) -> tuple[tuple[bytes, ...], int]:
    count, at = packed_number(data, at)
    found = []
    for _ in range(count):
        one, at = _string(data, at)
        found.append(one)
    return tuple(found), at


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = packed_number(data, at)
    if at + size > len(data):
        raise _cut_off()
    return data[at : at + size], at + size


def _text(data: bytes, at: int) -> tuple[str, int]:
    """Return a name that follows its length in one byte, and the position after its terminating zero."""
    end = at + 1 + data[at]
    if end >= len(data):
        raise IndexError
    return data[at + 1 : end].decode("utf-8", "replace"), end + 1


def _cut_off() -> DecodeError:
    return DecodeError("A TABLE_MAP event in the binlog is cut off.")
