"""Codecs of ``date``, ``datetime`` and ``timestamp``, in the representations of ``time.precision.mode``.

Raw values are text of fixed width. Zero and impossible dates are null. With ``enable.time.adjuster``, years below 100
are taken for years of two digits, as the server itself takes them in SQL.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs import calendar
from floodmark.codecs.arrays import Mask, byte_at, int64_like, int64_values, mapped, valid, without
from floodmark.codecs.codec import Codec, bare, quoted, semantic
from floodmark.codecs.time_units import (
    CONNECT,
    DEBEZIUM,
    TIMESTAMP_CONNECT,
    TIMESTAMP_MS,
    TIMESTAMP_NS,
    TIMESTAMP_US,
    Unit,
    few_digits,
    zulu,
)
from floodmark.connectors.mysql.types.settings import MysqlSettings

_ZERO = ord("0")
_MILLIS = 3
_SHORTEST = 28
_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
"""The days of each month in common years."""

_NANOS_LIMIT = calendar.INT64_MAX // 1000
_EPOCH = "1970-01-01T00:00:00"


def date(settings: MysqlSettings) -> Codec:
    """Return the codec of ``date``."""

    def to_arrow(text: pa.StringArray) -> pa.Array:
        return possible(text, settings).cast(pa.date32())

    if settings.time_precision_mode == "isostring":
        return Codec(
            semantic("string", DEBEZIUM + "IsoDate"),
            lambda text: quoted(zulu(possible(text, settings))),
            '"1970-01-01Z"',
            "null",
            pa.date32(),
            to_arrow,
        )
    name = CONNECT if settings.time_precision_mode == "connect" else DEBEZIUM
    return Codec(
        semantic("int32", name + "Date"),
        lambda text: bare(to_arrow(text).cast(pa.int32()).cast(pa.string())),
        "0",
        "null",
        pa.date32(),
        to_arrow,
    )


def datetime_codec(digits: int, settings: MysqlSettings) -> Codec:
    """Return the codec of ``datetime`` with so many digits of a second's fraction."""
    mode = settings.time_precision_mode

    def moments(text: pa.StringArray) -> pa.Array:
        return possible(text, settings).cast(pa.timestamp("us"))

    if mode == "isostring":
        return Codec(
            semantic("string", DEBEZIUM + "IsoTimestamp"),
            lambda text: quoted(_iso(possible(text, settings))),
            f'"{_EPOCH}Z"',
            "null",
            pa.timestamp("us"),
            moments,
        )
    if mode == "connect":
        unit = TIMESTAMP_CONNECT
    elif mode == "nanoseconds":
        unit = TIMESTAMP_NS
    elif mode == "microseconds" or digits > _MILLIS:
        unit = TIMESTAMP_US
    else:
        unit = TIMESTAMP_MS
    return Codec(
        semantic(unit.kind, unit.name),
        lambda text: bare(_numbers(moments(text), unit)),
        "0",
        "null",
        pa.timestamp("us"),
        moments,
    )


def timestamp(digits: int, settings: MysqlSettings) -> Codec:
    """Return the codec of ``timestamp``, which is text in UTC whatever the mode."""

    def to_arrow(text: pa.StringArray) -> pa.Array:
        return possible(text, settings).cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))

    return Codec(
        semantic("string", DEBEZIUM + "ZonedTimestamp"),
        lambda text: quoted(zulu(_with_t(possible(text, settings)))),
        f'"{_EPOCH}{f".{0:0{digits}}" if digits else ""}Z"',
        "null",
        pa.timestamp("us", tz="UTC"),
        to_arrow,
    )


def possible(text: pa.StringArray, settings: MysqlSettings) -> pa.StringArray:
    """Return dates with adjusted years, and with null for those that do not exist."""
    odd = _odd(text)
    return mapped(text, text, odd, _adjusted(settings.enable_time_adjuster)) if odd.any() else text


def _odd(text: pa.StringArray) -> Mask:
    """Return which dates need a check: those with zeros, years below 100, or a day that their month doesn't have."""
    day = _two_digits(text, 8)
    month = _two_digits(text, 5)
    century = _two_digits(text, 0)
    odd: Mask = (century == 0) | (month == 0) | (day == 0)
    # Only days after the 28th may be missing in a month.
    late = np.flatnonzero(day > _SHORTEST)
    if len(late):
        year = century[late] * 100 + _two_digits(text, 2)[late]
        leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
        days = _DAYS[np.clip(month[late], 0, 12)] + (leap & (month[late] == 2))
        odd[late] |= day[late] > days
    return odd & valid(text)


def _two_digits(text: pa.StringArray, at: int) -> NDArray[np.int64]:
    # 11 * _ZERO: the ASCII code of 0 in both digits.
    return byte_at(text, at).astype(np.int64) * 10 + byte_at(text, at + 1) - 11 * _ZERO


def _adjusted(adjust: bool) -> Callable[[str], str | None]:
    def adjusted(text: str) -> str | None:
        year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
        try:
            datetime.date(year, month, day)
        except ValueError:
            return None
        if adjust and year < 100:
            year += 2000 if year < 70 else 1900
        return f"{year:04}{text[4:]}"

    return adjusted


def _numbers(moments: pa.Array, unit: Unit) -> pa.StringArray:
    """Return timestamps as numbers; null beyond the range of nanoseconds, as in Debezium."""
    micros = int64_values(moments)
    text = int64_like(unit.of_column(micros), moments).cast(pa.string())
    if unit.divisor == 0:
        text = without(text, valid(moments) & (np.abs(micros) > _NANOS_LIMIT))
    return text


def _with_t(text: pa.StringArray) -> pa.StringArray:
    return pc.replace_substring(text, " ", "T", max_replacements=1)


def _iso(text: pa.StringArray) -> pa.StringArray:
    """Return timestamps in ISO 8601 with as few digits of a second's fraction as needed."""
    return zulu(few_digits(_with_t(text)))
