"""Texts of values, as LogMiner writes them, in the one form that each type's codec takes."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import as_mask, byte_at, has_letters, lengths_of, mapped, valid
from floodmark.errors import DecodeError
from floodmark.events.json_text import value_bytes

_DIGITS = 38
_NANOS = 9
_OF_NUMBERS = np.zeros(256, np.bool_)
_OF_NUMBERS[np.frombuffer(b"0123456789.-", np.uint8)] = True
_POINT_ALONE = r"\.( |$)"
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_AMERICAN = re.compile(
    r"(\d\d)-([A-Z]{3})-(\d\d) (\d\d)\.(\d\d)\.(\d\d)(?:\.(\d+))? (AM|PM)( ?[+-]\d\d:\d\d)?", re.IGNORECASE
)
"""The format of a session that has set none: ``DD-MON-RR HH.MI.SSXFF AM``."""
_YEAR_MONTH = r"^(?P<sign>[+-]?)0*(?P<years>\d+)-0*(?P<months>\d+)$"
_DAY_TIME = r"^(?P<sign>[+-]?)0*(?P<days>\d+) (?P<time>\d+:\d+:\d+(?:\.\d{1,6})?)\d*$"


def numbers(text: pa.StringArray, scale: int | None) -> pa.StringArray:
    """Return numbers with a digit before the point, and as many digits after it as their scale says.

    Args:
        text: as Oracle writes them: ``.5``, ``-.5``, ``12.5``, ``1.5E+125``.
        scale: digits after the point; None: as few as needed.

    Raises:
        DecodeError: one isn't a number.
    """
    if scale is not None and scale > 0:
        try:
            fixed = text.cast(pa.decimal128(_DIGITS, scale)).cast(pa.string())
        except pa.ArrowInvalid as exc:
            raise DecodeError(
                f"A value in SQL_REDO isn't a number with {scale} digits after the point: {exc}"
            ) from None
        return _plain(fixed)
    shown = pc.replace_substring_regex(_plain(text), r"^(-?)\.", r"\10.")
    if not _OF_NUMBERS[value_bytes(shown)].all() or (lengths_of(shown)[valid(shown)] == 0).any():
        raise DecodeError("A value in SQL_REDO isn't a number.")
    return shown


def _plain(text: pa.StringArray) -> pa.StringArray:
    """Return numbers without exponents."""
    if not has_letters(text):
        return text
    return mapped(text, text, as_mask(pc.match_substring(text, "E", ignore_case=True)) & valid(text), _without_exponent)


def _without_exponent(text: str) -> str:
    try:
        return f"{Decimal(text):f}"
    except InvalidOperation:
        raise DecodeError("A value in SQL_REDO isn't a number.") from None


def floats(text: pa.StringArray, kind: pa.DataType) -> pa.Array:
    """Return binary numbers: ``2.5E+000``, ``Inf``, ``-Inf``, ``Nan``."""
    try:
        return pc.utf8_lower(text).cast(kind)
    except pa.ArrowInvalid as exc:
        raise DecodeError(f"A value in SQL_REDO isn't a binary number: {exc}") from None


def moments(text: pa.StringArray) -> pa.StringArray:
    """Return times as ``YYYY-MM-DD HH:MM:SS.fff``, with the zone's offset if they have one."""
    # Without digits after the second, Oracle leaves the point.
    alone = pc.any(pc.match_substring_regex(text, _POINT_ALONE)).as_py()
    shown = pc.replace_substring_regex(text, _POINT_ALONE, r"\1") if alone else text
    other = (byte_at(shown, 4) != ord("-")) & valid(shown)
    return mapped(shown, shown, other, _of_american)


def _of_american(text: str) -> str:
    found = _AMERICAN.fullmatch(text)
    if found is None or found[2].upper() not in _MONTHS:
        raise DecodeError("A time in SQL_REDO has no format that is known.")
    day, month, year, hour, minute, second, fraction, half, zone = found.groups()
    # RR: the two digits are those of the nearest century.
    century = 2000 if int(year) < 50 else 1900
    hours = int(hour) % 12 + 12 * (half.upper() == "PM")
    number = _MONTHS.index(month.upper()) + 1
    time = datetime(century + int(year), number, int(day), hours, int(minute), int(second))
    rest = f".{fraction[:_NANOS]}" if fraction else ""
    return f"{time:%Y-%m-%d %H:%M:%S}{rest}{f' {zone.strip()}' if zone else ''}"


def month_intervals(text: pa.StringArray) -> pa.StringArray:
    """Return ``+01-02`` as PostgreSQL writes it: ``1 years 2 mons``."""
    parts = pc.extract_regex(text, _YEAR_MONTH)
    _all_found(text, parts)
    sign, years, months = (pc.struct_field(parts, name) for name in ("sign", "years", "months"))
    minus = pc.replace_substring(sign, "+", "")
    return pc.binary_join_element_wise(minus, years, " years ", minus, months, " mons", "")


def day_intervals(text: pa.StringArray) -> pa.StringArray:
    """Return ``+01 02:03:04.5`` as PostgreSQL writes it: ``1 days 02:03:04.5``; nothing is below a microsecond."""
    parts = pc.extract_regex(text, _DAY_TIME)
    _all_found(text, parts)
    sign, days, time = (pc.struct_field(parts, name) for name in ("sign", "days", "time"))
    minus = pc.replace_substring(sign, "+", "")
    return pc.binary_join_element_wise(minus, days, " days ", minus, time, "")


def _all_found(text: pa.StringArray, parts: pa.StructArray) -> None:
    if parts.null_count > text.null_count:
        raise DecodeError("An interval in SQL_REDO has a form that isn't known.")
