"""Encodes decimals in the three modes of ``decimal.handling.mode``.

``precise`` is Connect's Decimal: base64 of the big-endian two's complement of the value without its point, as
``BigInteger.toByteArray`` gives it. NaN and the infinities have no such form and are null, as in Debezium.
``string`` names them as Debezium does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import Mask, byte_at, has_letters, int64_values, lengths_of, mapped, valid, without
from floodmark.codecs.base64_text import binary_rows, bytes_needed, encode_base64, encode_integers
from floodmark.codecs.codec import Codec, Settings, bare, quoted, semantic, unchanged
from floodmark.codecs.floats import java_number
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import Fragment

DECIMAL = "org.apache.kafka.connect.data.Decimal"
VARIABLE_SCALE: ConnectSchema = {
    "type": "struct",
    "fields": [
        {"type": "int32", "optional": False, "field": "scale"},
        {"type": "bytes", "optional": False, "field": "value"},
    ],
    "name": "io.debezium.data.VariableScaleDecimal",
    "version": 1,
    "doc": "Variable scaled decimal",
}
ZERO = "AA=="
_LONG = 18
_WIDE = 38
_NAMES = {"NaN": "NAN", "Infinity": "POSITIVE_INFINITY", "-Infinity": "NEGATIVE_INFINITY"}


@dataclass(frozen=True)
class Scale:
    """A decimal's precision and scale; ``given`` is the scale as declared."""

    precision: int
    scale: int
    given: int


def decimal(scale: Scale | None, settings: Settings) -> Codec:
    """Return the codec of decimals, whose raw form is text.

    Args:
        scale: their precision and scale; None: not declared.
        settings: the options.
    """
    mode = settings.decimal_handling_mode
    if mode == "double":
        return DOUBLE
    if mode == "string":
        return as_text(f"{Decimal(0).scaleb(-scale.scale):f}" if scale else "0", settings)
    if scale is None:
        zero = f'{{"scale":0,"value":"{ZERO}"}}'
        return Codec(VARIABLE_SCALE, _variable, zero, "null", pa.string(), unchanged)
    parameters = {"scale": str(scale.scale), "connect.decimal.precision": str(scale.precision)}
    return Codec(
        semantic("bytes", DECIMAL, parameters=parameters),
        lambda text: quoted(unscaled_base64(digits_of(_finite(text)))),
        f'"{ZERO}"',
        "null",
        *in_rows(max(scale.precision, scale.scale), scale.scale),
    )


def unscaled_base64(digits: pa.StringArray) -> pa.StringArray:
    """Return base64 of integers' shortest big-endian two's complement; null stays null.

    Args:
        digits: integers as text, possibly with ``-`` and leading zeros.
    """
    lengths = lengths_of(digits)
    longest = int(lengths.max(initial=0))
    if longest <= _LONG:
        return encode_integers(int64_values(digits.cast(pa.int64())), digits)
    huge = lengths > _WIDE
    wide = without(digits, huge).cast(pa.decimal128(_WIDE, 0))
    # Arrow stores them as 128-bit two's complements, the low word first.
    words = np.frombuffer(wide.buffers()[1], np.int64)[2 * wide.offset : 2 * (wide.offset + len(wide))]
    return mapped(encode_base64(_shortest(words.reshape(-1, 2), wide)), digits, huge, _huge_base64)


def _shortest(words: NDArray[np.int64], like: pa.Array) -> pa.BinaryArray:
    """Return two's complements of 128 bits without redundant leading bytes.

    Args:
        words: shape (rows, 2), the lowest 64 bits first.
        like: its nulls are copied.
    """
    matrix = np.ascontiguousarray(words[:, ::-1]).byteswap().view(np.uint8).reshape(-1, 16)
    # Inverted, a negative number needs as many bits besides the sign as its two's complement.
    low, high = (words ^ (words[:, -1:] >> 63)).T
    # A low word that is negative uses its top bit, so the sign takes a ninth byte.
    low_needed = np.where(low < 0, 9, bytes_needed(low))
    needed = np.where(high > 0, bytes_needed(high) + 8, low_needed)
    return binary_rows(matrix, np.arange(16) >= 16 - needed[:, None], like)


def _huge_base64(digits: str) -> str:
    number = int(Decimal(digits))
    magnitude = number if number >= 0 else ~number
    raw = number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
    return str(encode_base64(pa.array([raw], pa.binary()))[0].as_py())


def _variable(text: pa.StringArray) -> Fragment:
    """Encode ``numeric`` without precision: the scale is that of the value without trailing zeros."""
    text = _finite(text)
    point = pc.find_substring(text, ".").fill_null(-1).to_numpy()
    fractional = point >= 0
    if fractional.any():
        text = pc.if_else(pa.array(fractional), pc.ascii_rtrim(text, "0"), text)
        scale = np.where(fractional, lengths_of(text) - point - 1, 0)
    else:
        scale = np.zeros(len(text), np.int64)
    scales = pa.array(scale, pa.int32()).cast(pa.string())
    values = unscaled_base64(digits_of(text))
    return bare(pc.binary_join_element_wise('{"scale":', scales, ',"value":"', values, '"}', ""))


def digits_of(text: pa.StringArray) -> pa.StringArray:
    """Return decimals without their point."""
    return pc.replace_substring(text, ".", "", max_replacements=1)


def _special(text: pa.StringArray) -> Mask:
    """Return which rows are NaN or infinite."""
    if not has_letters(text):
        return np.zeros(len(text), bool)
    return (byte_at(text, -1) > ord("9")) & valid(text)


def _finite(text: pa.StringArray) -> pa.StringArray:
    return without(text, _special(text))


def _trimmed(text: pa.StringArray) -> pa.StringArray:
    """Return decimals without trailing zeros in their fraction."""
    fractional = pc.match_substring(text, ".")
    return pc.if_else(fractional, pc.ascii_rtrim(pc.ascii_rtrim(text, "0"), "."), text)


DOUBLE = Codec(
    {"type": "double"},
    lambda text: bare(java_number(_trimmed(text), pa.float64(), shortest=False)),
    "0.0",
    "null",
    pa.float64(),
    lambda text: text.cast(pa.float64()),
)
"""Decimals as doubles."""


def as_text(zero: str, settings: Settings) -> Codec:
    """Return the codec of decimals as the server's text."""

    def encode(text: pa.StringArray) -> Fragment:
        return quoted(mapped(text, text, _special(text), _NAMES.__getitem__))

    return Codec({"type": "string"}, encode, f'"{zero}"', settings.placeholder, pa.string(), unchanged)


def in_rows(precision: int, scale: int) -> tuple[pa.DataType, Callable[[pa.Array], pa.Array]]:
    """Return the type of decimals in typed rows, and the function that converts to it; text if they are too long."""
    if precision > _WIDE:
        return pa.string(), unchanged
    decimal = pa.decimal128(precision, scale)
    return decimal, lambda text: _finite(text).cast(decimal)
