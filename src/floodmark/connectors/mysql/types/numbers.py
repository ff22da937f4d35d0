"""Codecs of integers, floating-point numbers and bits."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs import text_codecs
from floodmark.codecs.arrays import as_mask, byte_at, lengths_of
from floodmark.codecs.base64_text import binary_rows, encode_base64
from floodmark.codecs.codec import Codec, bare, quoted, semantic, unchanged
from floodmark.codecs.decimals import Scale, decimal
from floodmark.codecs.floats import java_number
from floodmark.connectors.mysql.types.settings import MysqlSettings
from floodmark.events.json_text import Fragment, value_bytes

_KINDS = {
    "tinyint": ("int16", "int16"),
    "smallint": ("int16", "int32"),
    "mediumint": ("int32", "int32"),
    "int": ("int32", "int64"),
    "bigint": ("int64", "int64"),
}
"""Connect's types of signed and unsigned integers."""

_ARROW = {"int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64()}
_LONG_DIGITS = 19
_UNSIGNED_DIGITS = 20
_BITS = "io.debezium.data.Bits"


def integer(kind: str, unsigned: bool, settings: MysqlSettings) -> Codec:
    """Return the codec of an integer type."""
    if kind == "bigint" and unsigned:
        return unsigned_long(settings)
    name = _KINDS[kind][unsigned]
    return dataclasses.replace(text_codecs.integer(name, _ARROW[name], settings), unavailable="null")


def unsigned_long(settings: MysqlSettings) -> Codec:
    """Return the codec of ``bigint unsigned``: a decimal, or a signed number, which is negative from 2**63 on."""
    if settings.bigint_unsigned_handling_mode == "precise":
        precise = dataclasses.replace(settings, decimal_handling_mode="precise")
        return decimal(Scale(_UNSIGNED_DIGITS, 0, 0), precise)

    def encode(text: pa.StringArray) -> Fragment:
        if int(lengths_of(text).max(initial=0)) < _LONG_DIGITS:
            return bare(text)
        return bare(_wrapped(text).cast(pa.string()))

    return Codec({"type": "int64"}, encode, "0", "null", pa.int64(), _wrapped)


def _wrapped(text: pa.StringArray) -> pa.Int64Array:
    return text.cast(pa.uint64()).view(pa.int64())


def floating(single: bool, stored_single: bool) -> Codec:
    """Return the codec of floating-point numbers.

    Args:
        single: whether events hold them in single precision.
        stored_single: whether the table does.
    """
    kind, arrow_type = ("float", pa.float32()) if single else ("double", pa.float64())

    def to_arrow(values: pa.Array) -> pa.Array:
        return values.cast(arrow_type) if stored_single != single else values

    return Codec(
        {"type": kind},
        lambda values: bare(java_number(to_arrow(values).cast(pa.string()), arrow_type)),
        "0.0",
        "null",
        arrow_type,
        to_arrow,
    )


def bits(length: int) -> Codec:
    """Return the codec of ``bit``: a boolean for one bit, else bytes, the lowest first."""
    if length == 1:

        def truth(values: pa.BinaryArray) -> pa.BooleanArray:
            return pa.array(byte_at(values, -1) != 0, mask=~as_mask(pc.is_valid(values)))

        return Codec(
            {"type": "boolean"},
            lambda values: Fragment(pc.if_else(truth(values), "true", "false")),
            "false",
            "null",
            pa.bool_(),
            truth,
        )
    size = (length + 7) // 8

    def encode(values: pa.BinaryArray) -> Fragment:
        filled = values.fill_null(bytes(size)) if values.null_count else values
        matrix = value_bytes(filled).reshape(-1, size)[:, ::-1]
        return quoted(encode_base64(binary_rows(matrix, np.ones(matrix.shape, bool), values)))

    return Codec(
        semantic("bytes", _BITS, parameters={"length": str(length)}), encode, '""', "null", pa.binary(), unchanged
    )
