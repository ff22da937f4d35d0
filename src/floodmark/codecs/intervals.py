"""Codec of intervals: microseconds, or ISO 8601 text, by ``interval.handling.mode``.

Their text is PostgreSQL's (``IntervalStyle=postgres``): ``1 year 2 mons 3 days 04:05:06.789``. Every part is optional
and has its own sign. A month has 30.4375 days. The sum is computed in double precision and in Debezium's order, so that
the same digits are lost. It is clamped to the limits of int64, which are also the values of infinite intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import Mask, as_mask, byte_at, int64_like, int64_values, mapped, without
from floodmark.codecs.calendar import INT64_MAX, INT64_MIN
from floodmark.codecs.codec import Codec, Settings, bare, quoted, semantic, unchanged
from floodmark.codecs.time_units import DEBEZIUM, MICROS_DIGITS

_TIME = r"^(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d)(?P<fraction>\.\d+)?$"
_UNITS = {"years": "y", "months": "m", "days": "d"}
_DAYS_PER_MONTH = 30.4375
_EXACT = 2.0**52
_INFINITE = {"infinity": INT64_MAX, "-infinity": INT64_MIN}
_ISO_ZERO = "P0Y0M0DT0H0M0S"

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Parts:
    """The numbers in intervals, each of shape (rows,); 0 where a part is missing or the row is null.

    Attributes:
        sign: 1 or -1, for hours, minutes, seconds and micros.
        micros: the fraction of a second in microseconds.
    """

    years: Numbers
    months: Numbers
    days: Numbers
    sign: Numbers
    hours: Numbers
    minutes: Numbers
    seconds: Numbers
    micros: Numbers


def interval(mode: str, settings: Settings, micros_apart: bool = False) -> Codec:
    """Return the codec of intervals.

    Args:
        mode: ``interval.handling.mode``: ``string`` or ``numeric``.
        settings: the options of all codecs.
        micros_apart: whether microseconds are added last, so that no digit of them is lost, as Debezium does where it
            doesn't get seconds with a fraction.
    """
    if mode == "string":
        return Codec(
            semantic("string", DEBEZIUM + "Interval"),
            lambda text: quoted(_iso(text)),
            f'"{_ISO_ZERO}"',
            settings.placeholder,
            pa.string(),
            unchanged,
        )
    return Codec(
        semantic("int64", DEBEZIUM + "MicroDuration"),
        lambda text: bare(_micros(text, micros_apart)),
        "0",
        settings.placeholder,
        pa.string(),
        unchanged,
    )


def _infinite(text: pa.StringArray) -> Mask:
    return as_mask(pc.match_substring(text, "infinity"))


def _parts(text: pa.StringArray) -> Parts:
    """Return the numbers in finite intervals.

    The words of all rows are split together: the word before a unit is its number, a word with a colon is the time.
    """
    words = pc.split_pattern(text.fill_null(""), " ")
    flat = words.flatten()
    row_of = np.repeat(np.arange(len(text)), pc.list_value_length(words).to_numpy())
    first = byte_at(flat, 0)
    columns = {name: np.zeros(len(text), np.int64) for name in Parts.__dataclass_fields__}
    for name, letter in _UNITS.items():
        at = np.flatnonzero(first == ord(letter))
        columns[name][row_of[at]] = _integers(pc.ascii_ltrim(flat.take(pa.array(at - 1)), "+"))
    is_time = as_mask(pc.match_substring(flat, ":"))
    rows = row_of[is_time]
    time = pc.extract_regex(pc.ascii_ltrim(flat.filter(pa.array(is_time)), "+-"), _TIME)
    columns["sign"][rows] = np.where(first[is_time] == ord("-"), -1, 1)
    for index, name in enumerate(("hours", "minutes", "seconds")):
        columns[name][rows] = _integers(time.field(index))
    fraction = pc.ascii_rpad(time.field(3), 1 + MICROS_DIGITS, "0")
    columns["micros"][rows] = _integers(pc.utf8_slice_codeunits(fraction, 1))
    return Parts(**columns)


def _integers(text: pa.StringArray) -> Numbers:
    return int64_values(text.cast(pa.int64()))


def _micros(text: pa.StringArray, micros_apart: bool) -> pa.StringArray:
    """Return intervals in microseconds."""
    infinite = _infinite(text)
    parts = _parts(without(text, infinite))
    days = (parts.years * 12 + parts.months) * _DAYS_PER_MONTH + parts.days
    minutes = (days * 24 + parts.sign * parts.hours) * 60 + parts.sign * parts.minutes
    if micros_apart:
        numbers = (minutes * 60 + parts.sign * parts.seconds) * 1e6 + parts.sign * parts.micros
    else:
        numbers = (minutes * 60 + parts.sign * (parts.seconds + parts.micros / 1e6)) * 1e6
    base = int64_like(_rounded(numbers), text).cast(pa.string())
    return mapped(base, text, infinite, lambda one: str(_INFINITE[one]))


def _rounded(numbers: NDArray[np.float64]) -> Numbers:
    """Return the nearest int64, as ``Math.round`` does: a half goes up."""
    # From 2**52 on, doubles are whole numbers, and adding 0.5 could change them.
    whole = np.where(np.abs(numbers) < _EXACT, np.floor(numbers + 0.5), numbers)
    inside = np.abs(whole) < -float(INT64_MIN)
    limits = np.where(whole > 0, np.int64(INT64_MAX), np.int64(INT64_MIN))
    return np.where(inside, np.where(inside, whole, 0.0).astype(np.int64), limits)


def _iso(text: pa.StringArray) -> pa.StringArray:
    """Return intervals as ISO 8601 text with every part present, even if it is 0."""
    infinite = _infinite(text)
    parts = _parts(without(text, infinite))
    numbers = (
        parts.years,
        parts.months,
        parts.days,
        parts.sign * parts.hours,
        parts.sign * parts.minutes,
        parts.sign * parts.seconds,
    )
    pieces: list[str | pa.StringArray] = []
    for letter, number in zip(("P", "Y", "M", "DT", "H", "M"), numbers, strict=True):
        pieces += [letter, int64_like(number, text).cast(pa.string())]
    if parts.micros.any():
        # Zero seconds have no sign, so the sign of a fraction alone is written before them.
        if (negative := (parts.micros > 0) & (parts.sign < 0) & (parts.seconds == 0)).any():
            pieces[-2] = pa.array(np.where(negative, "M-", "M"), pa.string())
        pieces.append(_fractions(parts.micros))
    base = pc.binary_join_element_wise(*pieces, "S", "")
    return mapped(base, text, infinite, lambda one: one)


def _fractions(micros: Numbers) -> pa.StringArray:
    """Return the decimal point and the significant digits after it; nothing for 0."""
    digits = pc.ascii_lpad(pa.array(micros).cast(pa.string()), MICROS_DIGITS, "0")
    return pc.ascii_rtrim(pc.binary_join_element_wise("", digits, "."), "0.")
