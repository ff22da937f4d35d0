"""Casts columns of values as Java and Kafka Connect's ``Cast`` do."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import as_mask, int64_like, lengths_of, mapped, offsets_of, valid
from floodmark.codecs.codec import bare, quoted
from floodmark.codecs.floats import java_number
from floodmark.config.transforms.kafka import CastType
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import Fragment, value_bytes
from floodmark.transforms.kafka.types import BITS, FLOATS, decimal_scale, is_date, is_days
from floodmark.transforms.structs import NULL, Struct, Values, complete, plain

JSON_NAMES = {"float32": "float", "float64": "double"}
"""The names of types in JSON that differ from those of options."""
_DAY_MS = 86_400_000
_LONG = 1 << 63
_TRUE = r"(?i)^true$"
_NUMBER = r"^[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)$"
_WIDE = 16


def cast_values(values: Values, schema: ConnectSchema, target: CastType) -> Values:
    """Return the values of a field, or of all records, as another type; null stays null.

    Args:
        values: the values.
        schema: their Connect schema.
        target: the type that they get.

    Raises:
        ValueError: their type can't be cast to that, or one of them can't; the text says so.
    """
    if isinstance(values, Struct):
        if values.values is None:
            return NULL
        raise ValueError("values of the type struct can't be cast")
    if isinstance(values, str):
        one = values if values == NULL else complete(_cast(Fragment(pa.array([values])), schema, target), 1)[0].as_py()
        return str(one)
    return _cast(values, schema, target)


def _cast(values: Fragment, schema: ConnectSchema, target: CastType) -> Fragment:
    kind = str(schema["type"])
    values = _bare(values)
    if values.text.null_count == len(values.text):
        return Fragment(pa.nulls(len(values.text), pa.string()))
    if kind not in (*BITS, *FLOATS, "boolean", "string", "bytes"):
        raise ValueError(f"values of the type {kind} can't be cast")
    scale = decimal_scale(schema)
    if kind == "bytes" and scale is None and target != "string":
        raise ValueError(f"bytes can't be cast to {target}")
    text = values.text if scale is None else _decimals(values.text, scale)
    if target == "string":
        # Values of any type have been written without quotes, or lacked them.
        return quoted(_dates(text, schema) if is_date(schema) else text)
    if kind == "string":
        text = plain(values)
    if target == "boolean":
        return bare(_booleans(text, kind))
    if target in BITS:
        numbers = _whole_numbers(text, kind, BITS[target])
        return bare(int64_like(numbers, text).cast(pa.string()))
    return bare(_floats(text, kind, FLOATS[JSON_NAMES[target]]))


def _bare(values: Fragment) -> Fragment:
    """Return texts, and numbers that are no numbers, without quotes, and null as such."""
    if values.quoted:
        return values
    text = values.text
    if text.null_count or pc.any(pc.equal(text, NULL)).as_py():
        text = pc.if_else(pc.equal(text, NULL), pa.scalar(None, pa.string()), text)
    if not pc.any(pc.starts_with(text, '"')).as_py():
        return Fragment(text)
    return Fragment(pc.if_else(pc.starts_with(text, '"'), pc.utf8_slice_codeunits(text, 1, -1), text), quoted=True)


def _dates(text: pa.StringArray, schema: ConnectSchema) -> pa.StringArray:
    """Return dates and times as Kafka Connect writes them: as a time before the second day, a date at midnight."""
    millis = text.cast(pa.int64())
    if is_days(schema):
        millis = pc.multiply(millis, _DAY_MS)
    number = millis.fill_null(0).to_numpy()
    stamps = millis.cast(pa.timestamp("ms"))
    # Days before 1970 aren't shown, so that it doesn't matter which calendar Java has for old ones.
    times, days = pc.strftime(stamps, "%H:%M:%SZ"), pc.strftime(stamps, "%Y-%m-%d")
    rest = pa.array(number % _DAY_MS == 0)
    later = pc.if_else(rest, days, pc.strftime(stamps, "%Y-%m-%dT%H:%M:%SZ"))
    return pc.if_else(pa.array(number < _DAY_MS), times, later)


def _booleans(text: pa.StringArray, kind: str) -> pa.StringArray:
    if kind == "boolean":
        return text
    if kind == "string":
        true = pc.match_substring_regex(text, _TRUE)
    else:
        numbers = _whole_numbers(text, kind, 64)
        true = pc.not_equal(int64_like(numbers, text), 0)
    return pc.if_else(true, "true", "false")


def _whole_numbers(text: pa.StringArray, kind: str, bits: int) -> NDArray[np.int64]:
    """Return whole numbers, narrowed as Java does, shape (rows,); 0 for null."""
    if kind == "boolean":
        return as_mask(pc.equal(text, "true")).astype(np.int64)
    if kind == "string":
        return _parsed(text, bits)
    if kind in FLOATS:
        numbers = _doubles(text)
        # Java cuts to a type that is at least an int, at its limits, and then to the lowest bits.
        limit = _LONG if bits == 64 else 1 << 31
        cut = np.nan_to_num(np.clip(numbers, -limit, limit - 1), nan=0.0)
        whole = np.trunc(cut)
        largest = whole >= limit - 1
        found = np.where(largest, 0, whole).astype(np.int64)
        found[largest] = limit - 1
    elif kind == "bytes":
        found = _lowest_bits(text)
    else:
        found = text.cast(pa.int64()).fill_null(0).to_numpy()
    return found.astype(f"int{bits}").astype(np.int64)


def _parsed(text: pa.StringArray, bits: int) -> NDArray[np.int64]:
    """Return the numbers that texts are, as Java's ``parseInt`` reads them."""
    half = 1 << (bits - 1)
    present = text.drop_null()
    right = pc.match_substring_regex(present, r"^[+-]?0*[0-9]{1,19}$")
    if pc.all(right).as_py() is not False:
        wide = pc.utf8_ltrim(text, "+").cast(pa.decimal128(38, 0))
        if not pc.any(pc.or_(pc.less(wide, -half), pc.greater_equal(wide, half))).as_py():
            found: NDArray[np.int64] = wide.cast(pa.int64()).fill_null(0).to_numpy()
            return found
        right = pc.and_(pc.greater_equal(wide, -half), pc.less(wide, half)).drop_null()
    wrong = present.filter(pc.invert(right))[0].as_py()
    raise ValueError(f"the text '{wrong[:50]}' is no whole number of {bits} bits")


def _doubles(text: pa.StringArray) -> NDArray[np.float64]:
    """Return numbers that have been written as JSON, shape (rows,); 0 for null."""
    numbers: NDArray[np.float64] = text.cast(pa.float64()).fill_null(0).to_numpy()
    return numbers


def _floats(text: pa.StringArray, kind: str, target: pa.DataType) -> pa.StringArray:
    if kind == "boolean":
        return pc.if_else(pc.equal(text, "true"), "1.0", "0.0")
    if kind in BITS:
        # Rounded once, which Arrow's cast of a text to a small type does, too.
        numbers = int64_like(text.cast(pa.int64()).fill_null(0).to_numpy(), text)
        floats = pc.cast(numbers, target, safe=False)
    elif kind == "float":
        floats = text.cast(pa.float32()).cast(target)
    elif kind == "double":
        floats = pc.cast(text.cast(pa.float64()), target, safe=False)
    else:
        trimmed = pc.utf8_trim_whitespace(text)
        wrong = text.filter(pc.invert(pc.match_substring_regex(trimmed, _NUMBER)))
        if len(wrong):
            raise ValueError(f"the text '{wrong[0].as_py()[:50]}' is no number")
        floats = pc.utf8_ltrim(trimmed, "+").cast(target)
    return java_number(floats.cast(pa.string()), target, shortest=False)


def _decimals(text: pa.StringArray, scale: int) -> pa.StringArray:
    """Return decimals as Java's ``BigDecimal.toString`` writes them, of base64 of their unscaled values."""
    numbers = unscaled(text)
    wide = ~valid(numbers) & valid(text)
    if scale == 0 and not wide.any():
        return numbers.cast(pa.string())
    digits = numbers.cast(pa.string())
    signs = pc.if_else(pc.starts_with(digits, "-"), "-", "")
    padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
    shown = digits
    if scale:
        whole, fraction = pc.utf8_slice_codeunits(padded, 0, -scale), pc.utf8_slice_codeunits(padded, -scale)
        shown = pc.binary_join_element_wise(signs, whole, ".", fraction, "")
    # Java writes small numbers with an exponent, as Python's Decimal does.
    significant = lengths_of(pc.utf8_ltrim(digits, "-"))
    small = (significant - 1 - scale < -6) & valid(text) & (scale > 0)
    return mapped(shown, text, small | wide, _decimal_text(scale))


def _decimal_text(scale: int) -> Callable[[str], str]:
    def shown(encoded: str) -> str:
        unscaled = int.from_bytes(binascii.a2b_base64(encoded), "big", signed=True)
        digits = tuple(map(int, str(abs(unscaled))))
        return str(Decimal((int(unscaled < 0), digits, -scale)))

    return shown


def unscaled(text: pa.StringArray) -> pa.Array:
    """Return whole numbers by base64 of their two's complement, as decimals; null where they have over 38 digits."""
    filled = text.fill_null("AA==")
    pads = pc.count_substring(filled, "=").to_numpy()
    whole = pc.replace_substring(filled, "=", "A")
    raw = np.frombuffer(binascii.a2b_base64(value_bytes(whole).data), np.uint8)
    ends = offsets_of(filled).astype(np.int64)
    ends = (ends - ends[0]) // 4 * 3
    lengths = np.diff(ends) - pads
    rows = len(lengths)
    # Each number's bytes at the end of a row, and what its sign is before them.
    places = ends[1:, None] - pads[:, None] + np.arange(-_WIDE, 0)
    inside = np.arange(_WIDE) >= _WIDE - lengths[:, None]
    matrix = np.where(inside, raw[np.clip(places, 0, max(len(raw) - 1, 0))], 0).astype(np.uint8)
    negative = raw[ends[:-1]] >= 0x80
    matrix[~inside & negative[:, None]] = 0xFF
    little = np.ascontiguousarray(matrix[:, ::-1])
    known = valid(text) & (lengths <= _WIDE)
    # 38 digits are less than 16 bytes can hold.
    known &= np.abs(little.view(np.int64)[:, 1].astype(np.float64)) < 5e18
    bitmap = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(pa.decimal128(38, 0), rows, [bitmap, pa.py_buffer(little)])


def _lowest_bits(text: pa.StringArray) -> NDArray[np.int64]:
    """Return the lowest 64 bits of decimals without what is behind their point, shape (rows,); 0 for null."""
    plain_text = ~as_mask(pc.match_substring(text, "E")) & (lengths_of(text) <= 18)
    whole = pc.replace_substring_regex(text, r"\..*", "")
    whole = mapped(whole, text, ~plain_text & valid(text), lambda one: str(_low(int(Decimal(one)))))
    numbers: NDArray[np.int64] = whole.cast(pa.int64()).fill_null(0).to_numpy()
    return numbers


def _low(number: int) -> int:
    return (number + _LONG) % (2 * _LONG) - _LONG
