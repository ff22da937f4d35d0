"""Codecs of ``date``, ``time`` and ``timestamp``, in the six modes of ``time.precision.mode``.

Semantic names and units: Debezium documentation, PostgreSQL connector, "Temporal types". Arrow parses values between
the years 1 and 9999; ``codecs.calendar`` parses the others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs import calendar
from floodmark.codecs.arrays import (
    Mask,
    as_mask,
    byte_at,
    has_letters,
    int64_like,
    int64_values,
    lengths_of,
    mapped,
    valid,
    without,
)
from floodmark.codecs.codec import Codec, Settings, bare, quoted, semantic, unchanged
from floodmark.codecs.time_units import (
    CONNECT,
    DEBEZIUM,
    MICROS_DIGITS,
    TIME_CONNECT,
    TIME_MS,
    TIME_NS,
    TIME_US,
    TIMESTAMP_CONNECT,
    TIMESTAMP_MS,
    TIMESTAMP_NS,
    TIMESTAMP_US,
    Unit,
    zulu,
)
from floodmark.events.connect_schema import ConnectSchema

_DATE_WIDTH = 10
_EPOCH_DATE = "1970-01-01"
_MIDNIGHT = "24:00:00"
_NANOS_LIMIT = calendar.INT64_MAX // 1000
_INFINITE_NANOS = {"infinity": calendar.INT64_MAX, "-infinity": calendar.INT64_MIN}


def digits_of(modifier: int) -> int:
    """Return the number of fractional digits of a second for a type modifier."""
    return modifier if 0 <= modifier <= MICROS_DIGITS else MICROS_DIGITS


def date(settings: Settings) -> Codec:
    """Return the codec of ``date``."""
    rows = pa.date32()

    def to_arrow(text: pa.StringArray) -> pa.Array:
        return without(text, _odd_dates(text)).cast(rows)

    if settings.time_precision_mode == "isostring":

        def encode(text: pa.StringArray) -> pa.StringArray:
            return mapped(zulu(text), text, _odd_dates(text), _iso_date)

        schema = semantic("string", DEBEZIUM + "IsoDate")
        return Codec(
            schema,
            lambda text: quoted(encode(text)),
            f'"{_EPOCH_DATE}Z"',
            settings.placeholder,
            rows,
            to_arrow,
        )
    name = CONNECT if settings.time_precision_mode == "connect" else DEBEZIUM

    def days(text: pa.StringArray) -> pa.StringArray:
        base = to_arrow(text).cast(pa.int32()).cast(pa.string())
        return mapped(base, text, _odd_dates(text), lambda one: str(_days(one)))

    return Codec(
        semantic("int32", name + "Date"),
        lambda text: bare(days(text)),
        "0",
        settings.placeholder,
        rows,
        to_arrow,
    )


def time(modifier: int, settings: Settings) -> Codec:
    """Return the codec of ``time``."""
    mode = settings.time_precision_mode
    if mode == "isostring":
        return Codec(
            semantic("string", DEBEZIUM + "IsoTime"),
            lambda text: quoted(zulu(pc.if_else(pc.equal(text, _MIDNIGHT), "00:00:00", text))),
            '"00:00:00Z"',
            settings.placeholder,
            pa.string(),
            unchanged,
        )
    if mode == "connect":
        unit = TIME_CONNECT
    elif mode == "nanoseconds":
        unit = TIME_NS
    elif mode == "adaptive" and digits_of(modifier) <= 3:
        unit = TIME_MS
    else:
        unit = TIME_US

    def encode(text: pa.StringArray) -> pa.StringArray:
        # Arrow doesn't parse 24:00:00.
        late = as_mask(pc.equal(text, _MIDNIGHT))
        moments = pc.binary_join_element_wise(_EPOCH_DATE, without(text, late), " ").cast(pa.timestamp("us"))
        base = _in_unit(moments, unit)
        return mapped(base, text, late, lambda _: str(unit.of_micros(calendar.DAY_US)))

    return Codec(
        semantic(unit.kind, unit.name),
        lambda text: bare(encode(text)),
        "0",
        settings.placeholder,
        pa.string(),
        unchanged,
    )


def timestamp(modifier: int, settings: Settings) -> Codec:
    """Return the codec of ``timestamp``."""
    mode = settings.time_precision_mode
    if mode == "isostring":
        return _timestamp(
            semantic("string", DEBEZIUM + "IsoTimestamp"), _iso_timestamps, f'"{_EPOCH_DATE}T00:00:00Z"', settings
        )
    if mode == "connect":
        unit = TIMESTAMP_CONNECT
    elif mode == "nanoseconds":
        unit = TIMESTAMP_NS
    elif mode != "microseconds" and digits_of(modifier) <= 3:
        unit = TIMESTAMP_MS
    else:
        unit = TIMESTAMP_US
    return _timestamp(semantic(unit.kind, unit.name), lambda text: _timestamps(text, unit), "0", settings)


def _timestamp(
    schema: ConnectSchema,
    encode: Callable[[pa.StringArray], pa.StringArray],
    zero: str,
    settings: Settings,
) -> Codec:
    fragment = quoted if schema["type"] == "string" else bare
    return Codec(
        schema,
        lambda text: fragment(encode(text)),
        zero,
        settings.placeholder,
        pa.timestamp("us"),
        lambda text: without(text, odd_timestamps(text)).cast(pa.timestamp("us")),
    )


def odd_timestamps(text: pa.StringArray) -> Mask:
    """Return which timestamps are infinite, BC or later than year 9999."""
    # Only a year of four digits is followed by a hyphen at index 4.
    odd: Mask = byte_at(text, 4) != ord("-")
    if has_letters(text):
        odd |= as_mask(pc.ends_with(text, "BC"))
    odd &= valid(text)
    return odd


def _odd_dates(text: pa.StringArray) -> Mask:
    odd: Mask = (lengths_of(text) != _DATE_WIDTH) & valid(text)
    return odd


def _timestamps(text: pa.StringArray, unit: Unit) -> pa.StringArray:
    """Return timestamps as numbers in a unit."""
    odd = odd_timestamps(text)
    moments = without(text, odd).cast(pa.timestamp("us"))
    base = _in_unit(moments, unit)
    if unit.divisor == 0:
        beyond = valid(moments) & (np.abs(int64_values(moments)) > _NANOS_LIMIT)
        base = without(base, beyond)
    return mapped(base, text, odd, lambda one: _number(one, unit))


def _in_unit(moments: pa.Array, unit: Unit) -> pa.StringArray:
    return int64_like(unit.of_column(int64_values(moments)), moments).cast(pa.string())


def _number(text: str, unit: Unit) -> str | None:
    """Return an odd timestamp as a number; None if nanoseconds can't represent it, as in Debezium."""
    if unit.divisor == 0:
        nanos = _INFINITE_NANOS.get(text)
        return str(nanos) if nanos is not None else None
    return str(calendar.saturated(unit.of_micros(_micros(text))))


def _micros(text: str) -> int:
    infinite = calendar.INFINITE_US.get(text)
    return infinite if infinite is not None else calendar.parse(text).epoch_us


def _days(text: str) -> int:
    infinite = calendar.INFINITE_DAYS.get(text)
    return infinite if infinite is not None else calendar.parse(text).days


def _iso_timestamps(text: pa.StringArray) -> pa.StringArray:
    base = zulu(pc.replace_substring(text, " ", "T", max_replacements=1))
    return mapped(base, text, odd_timestamps(text), _iso_timestamp)


def _iso_timestamp(text: str) -> str:
    moment = calendar.Moment.at(_micros(text))
    return f"{moment.date()}T{moment.time()}Z"


def _iso_date(text: str) -> str:
    return f"{calendar.Moment(_days(text)).date()}Z"
