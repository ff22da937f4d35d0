"""Converts the pieces of a column to its raw column: the form that rows of the log and of snapshots share.

A raw column is an Arrow array: numbers, dates and times as text as the server prints them (``float`` and ``double`` as
numbers), text in UTF-8, and the bytes of binary columns, bits, geometries and vectors.
"""

from __future__ import annotations

import pyarrow as pa

from floodmark.connectors.mysql.binlog import column_types as codes
from floodmark.connectors.mysql.structures.table import Column
from floodmark.connectors.mysql.structures.type_names import BLOBS, GEOMETRIES, NAMED
from floodmark.connectors.mysql.values import numbers, temporal, text
from floodmark.connectors.mysql.values.column_bytes import binary_at
from floodmark.connectors.mysql.values.json_text import json_texts
from floodmark.connectors.mysql.values.layouts import Layout
from floodmark.connectors.mysql.values.row_images import Bytes, Pieces
from floodmark.errors import DecodeError

BINARY_TYPES = frozenset({"binary", "varbinary", *BLOBS, "bit", "vector", *GEOMETRIES})

_STRINGS = {codes.VARCHAR, codes.STRING, codes.BLOB, codes.VAR_STRING}
_BLOBS = {codes.TINY_BLOB, codes.MEDIUM_BLOB, codes.LONG_BLOB}
_COMPRESSED = {codes.VARCHAR_COMPRESSED, codes.BLOB_COMPRESSED}
_OLD = {
    codes.TIMESTAMP: temporal.old_timestamps,
    codes.DATETIME: temporal.old_datetimes,
    codes.TIME: temporal.old_times,
}
_HIRES = {
    codes.TIMESTAMP: temporal.hires_timestamps,
    codes.DATETIME: temporal.hires_datetimes,
    codes.TIME: temporal.hires_times,
}


def raw_type(column: Column) -> pa.DataType:
    """Return the Arrow type of a column's raw form."""
    if column.type == "float":
        return pa.float32()
    if column.type == "double":
        return pa.float64()
    return pa.binary() if column.type in BINARY_TYPES else pa.string()


def raw_column(buf: Bytes, pieces: Pieces, layout: Layout, column: Column) -> pa.Array:
    """Return a column's values.

    Args:
        buf: the buffer with the rows.
        pieces: where the values are.
        layout: the column in the log.
        column: the column in the table's structure at that position of the log.

    Raises:
        DecodeError: a value is invalid for its type, or log and structure disagree.
    """
    kind = raw_type(column)
    if pieces.valid is not None and not pieces.valid.any():
        return pa.nulls(len(pieces.starts), kind)
    try:
        values = _values(buf, pieces, layout, column)
    except (IndexError, OverflowError):
        raise DecodeError(f"A value of the column '{column.name}' is cut off.") from None
    if values.type != kind:
        raise DecodeError(
            f"The log holds values of type {layout.code} for the column '{column.name}', whose type is {column.type}."
        )
    return values


def _values(buf: Bytes, pieces: Pieces, layout: Layout, column: Column) -> pa.Array:
    code = layout.code
    if code in numbers.INTEGER_TYPES or code == codes.INT24:
        return numbers.integers(buf, pieces, code, column.unsigned)
    if code in _STRINGS or code in _BLOBS:
        return _strings(buf, pieces, column)
    if code == codes.NEWDECIMAL:
        return numbers.decimals(buf, pieces, layout)
    if code == codes.JSON:
        return json_texts(buf, pieces)
    if code == codes.ENUM:
        return text.enums(buf, pieces, layout.size, column.values)
    if code == codes.SET:
        return text.sets(buf, pieces, layout.size, column.values)
    if code in (codes.FLOAT, codes.DOUBLE):
        return numbers.floats(buf, pieces, "<f4" if code == codes.FLOAT else "<f8")
    if code == codes.YEAR:
        return numbers.years(buf, pieces)
    if code == codes.BIT:
        return numbers.bit_values(buf, pieces, layout)
    if code in _COMPRESSED:
        plain, pieces = text.decompressed(buf, pieces)
        return _strings(plain, pieces, column)
    if code in (codes.GEOMETRY, codes.VECTOR):
        return binary_at(buf, pieces)
    return _temporal(buf, pieces, layout)


def _temporal(buf: Bytes, pieces: Pieces, layout: Layout) -> pa.StringArray:
    code = layout.code
    if code == codes.DATETIME2:
        return temporal.datetimes(buf, pieces, layout)
    if code == codes.TIMESTAMP2:
        return temporal.timestamps(buf, pieces, layout)
    if code == codes.TIME2:
        return temporal.times(buf, pieces, layout)
    if code in (codes.DATE, codes.NEWDATE):
        return temporal.dates(buf, pieces)
    if layout.hires:
        return _HIRES[code](buf, pieces, layout)
    if code not in _OLD:
        raise DecodeError(f"The log holds values of the type {code}, which is not supported.")
    return _OLD[code](buf, pieces)


def _strings(buf: Bytes, pieces: Pieces, column: Column) -> pa.Array:
    if column.type == "binary":
        return text.padded(buf, pieces, column.length if column.length is not None else 1)
    if column.type in BINARY_TYPES:
        return binary_at(buf, pieces)
    if column.type in NAMED:
        return text.fixed_names(buf, pieces, column.type)
    return text.strings(buf, pieces, column.charset or "utf8mb4")
