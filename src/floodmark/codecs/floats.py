"""Floating-point numbers as Java's ``Float.toString`` and ``Double.toString`` write them.

Source: the documentation of ``java.lang.Double.toString`` (Java 19 and later). The number has the fewest
digits that distinguish it from its neighbours; it has no exponent from 10**-3 up to 10**7, else it is ``d.dddE±n``;
there is always a digit after the point. PostgreSQL prints the fewest digits too (``extra_float_digits=3``), so ordinary
numbers are passed through. Unlike Java, it never prints a digit string half-way between two numbers. And where one
digit would do, Java writes the closest number with two: 4.9E-324.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import (
    Mask,
    as_mask,
    byte_at,
    has_letters,
    int64_values,
    lengths_of,
    mapped,
    replaced,
    valid,
)
from floodmark.codecs.codec import Codec, Settings, bare

_PARTS = r"^(?P<sign>-?)(?P<whole>\d+)(?:\.(?P<fraction>\d+))?(?:e\+?(?P<exponent>-?\d+))?$"
_SPECIAL = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
_SAFE_DIGITS = {pa.float32(): 6, pa.float64(): 15}
_FEW_DIGITS_BELOW = {pa.float32(): -43, pa.float64(): -322}


def floating(kind: str, arrow_type: pa.DataType, settings: Settings) -> Codec:
    """Return the codec of ``real`` or ``double precision``.

    Args:
        kind: Connect's name of the type, ``float`` or ``double``.
        arrow_type: float32 or float64.
        settings: the options.
    """
    return Codec(
        {"type": kind},
        lambda text: bare(java_number(text, arrow_type)),
        "0.0",
        settings.placeholder,
        arrow_type,
        lambda text: text.cast(arrow_type),
    )


def java_number(text: pa.StringArray, arrow_type: pa.DataType, shortest: bool = True) -> pa.StringArray:
    """Return numbers as Java writes them, as JSON text.

    Args:
        text: numbers as PostgreSQL writes them.
        arrow_type: float32 or float64.
        shortest: whether the digits are already as few as possible.
    """
    fixed = _without_exponent(text)
    if not shortest:
        fixed &= lengths_of(text) <= _SAFE_DIGITS[arrow_type]
    base = _with_point(text)
    others = valid(text) & ~fixed
    if not others.any():
        return base
    again = text.filter(pa.array(others)).cast(arrow_type).cast(pa.string())
    return replaced(base, others, _of_shortest(again, arrow_type))


def _of_shortest(text: pa.StringArray, arrow_type: pa.DataType) -> pa.StringArray:
    """Return numbers in Java's form; ``text`` is Arrow's form of them, without nulls."""
    base = _with_point(text)
    finite = ~np.isin(byte_at(text, -1), (ord("n"), ord("f")))
    base = mapped(base, text, ~finite, _SPECIAL.__getitem__)
    others = finite & ~_without_exponent(text)
    return replaced(base, others, _scientific(text.filter(pa.array(others)), arrow_type))


def _without_exponent(text: pa.StringArray) -> Mask:
    """Return which numbers are written without exponent by PostgreSQL and Java."""
    negative = byte_at(text, 0) == ord("-")
    point = pc.find_substring(text, ".").fill_null(0).to_numpy()
    whole = np.where(point >= 0, point, lengths_of(text)) - negative
    fixed: Mask = (whole <= 7) & ~_starts(text, negative, "0.000")
    if has_letters(text):
        fixed &= ~as_mask(pc.match_substring_regex(text, "[A-Za-z]"))
    return fixed


def _starts(text: pa.StringArray, negative: Mask, start: str) -> Mask:
    found = as_mask(pc.starts_with(text, start))
    if negative.any():
        found |= as_mask(pc.starts_with(text, "-" + start))
    return found


def _with_point(text: pa.StringArray) -> pa.StringArray:
    """Return numbers with a digit after the point."""
    has_point = pc.match_substring(text, ".")
    if pc.all(has_point).as_py():
        return text
    return pc.if_else(has_point, text, pc.binary_join_element_wise(text, "0", "."))


def _scientific(text: pa.StringArray, arrow_type: pa.DataType) -> pa.StringArray:
    """Return finite numbers, whatever their form, as ``d.dddE±n``."""
    parts = pc.extract_regex(text, _PARTS)
    sign, whole, fraction, exponent = (parts.field(index) for index in range(4))
    power = int64_values(pc.if_else(pc.equal(exponent, ""), "0", exponent).cast(pa.int64()))
    small = as_mask(pc.equal(whole, "0"))
    trimmed = pc.if_else(pa.array(small), pc.ascii_ltrim(fraction, "0"), fraction)
    digits = pc.ascii_rtrim(pc.if_else(pa.array(small), trimmed, _join(whole, fraction)), "0")
    zeros = lengths_of(fraction) - lengths_of(trimmed)
    power = power + np.where(small, -zeros - 1, lengths_of(whole) - 1)
    rest = pc.utf8_slice_codeunits(digits, 1)
    rest = pc.if_else(pc.equal(rest, ""), "0", rest)
    mantissa = pc.binary_join_element_wise(sign, pc.utf8_slice_codeunits(digits, 0, 1), ".", rest, "")
    base = pc.binary_join_element_wise(mantissa, _text(power), "E")
    few = (power <= _FEW_DIGITS_BELOW[arrow_type]) & (lengths_of(digits) == 1)
    return mapped(base, text, few, lambda one: _two_digits(one, arrow_type))


def _two_digits(text: str, arrow_type: pa.DataType) -> str:
    """Return the closest number of two digits, which Java prefers to one of one digit."""
    value = pa.scalar(text).cast(arrow_type)
    mantissa, exponent = f"{Decimal(value.as_py()):.1e}".split("e")
    return f"{mantissa}E{int(exponent)}"


def _join(first: pa.StringArray, second: pa.StringArray) -> pa.StringArray:
    return pc.binary_join_element_wise(first, second, "")


def _text(numbers: NDArray[np.int64]) -> pa.StringArray:
    return pa.array(numbers, pa.int64()).cast(pa.string())
