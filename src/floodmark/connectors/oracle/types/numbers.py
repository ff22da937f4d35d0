"""Codecs of NUMBER, FLOAT and the binary numbers.

Debezium documentation, Oracle connector, "Numeric types": without digits after the point, the width of an integer
follows from the number of its digits.
"""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs import text_codecs
from floodmark.codecs.codec import Codec, bare, unchanged
from floodmark.codecs.decimals import Scale, decimal
from floodmark.codecs.floats import java_number
from floodmark.connectors.oracle.structures.table import Column
from floodmark.connectors.oracle.types.settings import OracleSettings

_WIDTHS = ((3, "int8", pa.int8()), (5, "int16", pa.int16()), (10, "int32", pa.int32()), (19, "int64", pa.int64()))
"""Integers with fewer digits than the first number have this type."""
_DIGITS = 38


def number(column: Column, settings: OracleSettings) -> Codec:
    """Return the codec of NUMBER."""
    scale = column.scale
    if scale is None:
        return decimal(None, settings)
    digits = column.length if column.length is not None else _DIGITS
    # As in Debezium, the mode doesn't apply to numbers whose last digits before the point are always zero.
    whole = settings.decimal_handling_mode == "precise" or scale < 0 or settings.legacy_decimal_handling_strategy
    if scale <= 0 and whole:
        for limit, kind, arrow_type in _WIDTHS:
            if digits - scale < limit:
                return dataclasses.replace(text_codecs.integer(kind, arrow_type, settings), unavailable="null")
    codec = decimal(Scale(digits, scale, scale), settings)
    if scale < 0 and settings.decimal_handling_mode == "precise":
        return _without_zeros(codec, digits, -scale)
    return codec


def _without_zeros(codec: Codec, digits: int, zeros: int) -> Codec:
    """Return the codec of numbers of which so many last zeros aren't written."""
    pattern = f"0{{{zeros}}}$"
    arrow_type = pa.decimal128(_DIGITS, 0) if digits + zeros <= _DIGITS else pa.string()
    return dataclasses.replace(
        codec,
        encode=lambda text: codec.encode(pc.replace_substring_regex(text, pattern, "")),
        arrow_type=arrow_type,
        to_arrow=lambda text: text.cast(arrow_type),
    )


def floating(column: Column, settings: OracleSettings) -> Codec:
    """Return the codec of FLOAT, which is a NUMBER whose precision is binary."""
    del column
    return decimal(None, settings)


def binary_floating(kind: str, arrow_type: pa.DataType) -> Codec:
    """Return the codec of BINARY_FLOAT or BINARY_DOUBLE.

    Args:
        kind: Connect's name of the type, ``float`` or ``double``.
        arrow_type: float32 or float64, which raw values have, too.
    """
    return Codec(
        {"type": kind},
        lambda values: bare(java_number(values.cast(pa.string()), arrow_type)),
        "0.0",
        "null",
        arrow_type,
        unchanged,
    )
