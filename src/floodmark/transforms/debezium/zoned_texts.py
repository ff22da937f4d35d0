"""Dates and times with an offset, as texts of ISO 8601, moved to another offset as Java does."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import as_mask, int64_like, int64_values, mapped, replaced, valid
from floodmark.codecs.calendar import Moment, days_of, year_month_day
from floodmark.codecs.time_units import few_digits
from floodmark.transforms.debezium.zone_offsets import Zone

_DAY_S = 86_400
_TIME = r"(?P<time>\d\d:\d\d:\d\d)(?P<fraction>\.\d{1,9})?(?P<offset>Z|[+-]\d\d:\d\d(?::\d\d)?)$"
_TIMESTAMP = r"^(?P<date>\d{4}-\d\d-\d\d)T" + _TIME
_OTHER = re.compile(
    r"([+-]?\d{4,9})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d(?::\d\d)?)", re.ASCII
)
_FIRST_S, _END_S = -62_135_596_800, 253_402_300_800
"""Where the year 1 begins, and the year 10000, which Arrow doesn't write as Java does."""


def moved_timestamps(text: pa.StringArray, zone: Zone) -> pa.StringArray:
    """Return timestamps with the offsets that a zone has; what is no timestamp, such as ``infinity``, stays.

    As in Debezium, the offset is that of the zone's clocks when they show the time that the text has, though that is a
    time of the text's own offset.

    Args:
        text: shape (rows,).
        zone: the zone.
    """
    parts = pc.extract_regex(text, _TIMESTAMP)
    usual = valid(text) & as_mask(pc.is_valid(parts))
    if usual.any():
        date, time, fraction, offset = (parts.filter(pa.array(usual)).field(place) for place in range(4))
        stamps, wrong = _parsed(pc.binary_join_element_wise(date, time, " "))
        shown = int64_values(stamps)
        offsets = zone.at_clocks(shown)
        moved = shown - _offsets_of(offset) + offsets
        wrong |= (moved < _FIRST_S) | (moved >= _END_S)
        base = pc.replace_substring(
            pa.array(np.where(wrong, 0, moved)).cast(pa.timestamp("s")).cast(pa.string()), " ", "T"
        )
        made = _joined(base, fraction, offsets)
        if wrong.any():
            # Arrow doesn't know the date, or the year that it becomes is not of four digits.
            made = replaced(made, wrong, text.filter(pa.array(usual)).filter(pa.array(wrong)))
            usual[np.flatnonzero(usual)[wrong]] = False
            made = made.filter(pa.array(~wrong))
        result = replaced(text, usual, made)
    else:
        result = text
    return mapped(result, text, valid(text) & ~usual, partial(_moved_timestamp, zone=zone))


def moved_times(text: pa.StringArray, offset: int) -> pa.StringArray:
    """Return times of day with another offset; what is none, such as 24:00, stays.

    Args:
        text: shape (rows,).
        offset: seconds east of UTC.
    """
    parts = pc.extract_regex(text, "^" + _TIME)
    usual = valid(text) & as_mask(pc.is_valid(parts))
    time, fraction, own = (parts.filter(pa.array(usual)).field(place) for place in range(3))
    stamps, wrong = _parsed(pc.binary_join_element_wise("1970-01-01", time, " "))
    moved = (int64_values(stamps) - _offsets_of(own) + offset) % _DAY_S
    base = pc.utf8_slice_codeunits(pa.array(moved).cast(pa.timestamp("s")).cast(pa.string()), 11)
    made = _joined(base, fraction, np.full(len(moved), offset))
    usual[np.flatnonzero(usual)[wrong]] = False
    return replaced(text, usual, made.filter(pa.array(~wrong)))


def moved_numbers(
    text: pa.StringArray, per_second: int, shifts: Callable[[NDArray[np.int64]], NDArray[np.int64]]
) -> pa.StringArray:
    """Return times as numbers, moved by seconds.

    Args:
        text: numbers since 1970, shape (rows,).
        per_second: how many are a second.
        shifts: returns how many seconds are added to whole seconds since 1970.
    """
    numbers = text.cast(pa.int64())
    values = numbers.fill_null(0).to_numpy()
    # As in Java, what is beyond 64 bits goes on at the other end.
    moved = values + shifts(values // per_second) * per_second
    return int64_like(moved, numbers).cast(pa.string())


def _parsed(text: pa.StringArray) -> tuple[pa.Int64Array, NDArray[np.bool_]]:
    """Return seconds since 1970, and which texts are no dates, for which they are 0."""
    try:
        return text.cast(pa.timestamp("s")).cast(pa.int64()), np.zeros(len(text), bool)
    except pa.ArrowInvalid:
        known = pc.strptime(text, "%Y-%m-%d %H:%M:%S", "s", error_is_null=True)
        # It takes 31 February for one of March.
        known = pc.if_else(pc.equal(pc.strftime(known, "%Y-%m-%d %H:%M:%S"), text), known, None)
        return known.cast(pa.int64()).fill_null(0), ~valid(known)


def _offsets_of(text: pa.StringArray) -> NDArray[np.int64]:
    """Return offsets in seconds east of UTC, shape (rows,)."""
    coded = text.dictionary_encode()
    seconds = np.array([_seconds(one) for one in coded.dictionary.to_pylist()], np.int64)
    found: NDArray[np.int64] = seconds[coded.indices.to_numpy()]
    return found


def _seconds(offset: str) -> int:
    if offset == "Z":
        return 0
    hours, minutes, *rest = map(int, offset[1:].split(":"))
    total = hours * 3600 + minutes * 60 + sum(rest)
    return -total if offset.startswith("-") else total


def _joined(base: pa.StringArray, fraction: pa.StringArray, offsets: NDArray[np.int64]) -> pa.StringArray:
    different, places = np.unique(offsets, return_inverse=True)
    shown = pa.array([_offset_text(int(one)) for one in different], pa.string()).take(pa.array(places.ravel()))
    return pc.binary_join_element_wise(few_digits(pc.binary_join_element_wise(base, fraction, "")), shown, "")


def _offset_text(seconds: int) -> str:
    if not seconds:
        return "Z"
    hours, rest = divmod(abs(seconds), 3600)
    text = f"{'-' if seconds < 0 else '+'}{hours:02}:{rest // 60:02}"
    return f"{text}:{rest % 60:02}" if rest % 60 else text


def _moved_timestamp(text: str, zone: Zone) -> str:
    """Return one timestamp of any year; what is none stays."""
    found = _OTHER.fullmatch(text)
    if found is None:
        return text
    *numbers, fraction, own = found.groups()
    year, month, day, hour, minute, second = map(int, numbers)
    days = days_of(year, month, day)
    if year_month_day(days) != (year, month, day) or hour > 23 or minute > 59 or second > 59:
        return text
    shown = days * _DAY_S + hour * 3600 + minute * 60 + second
    offset = int(zone.at_clocks(np.array([shown]))[0])
    moved = Moment.at((shown - _seconds(own) + offset) * 1_000_000)
    digits = (fraction or "").rstrip("0").rstrip(".")
    return f"{moved.date()}T{moved.time()}{digits}{_offset_text(offset)}"
