"""Codecs of DATE and the three kinds of TIMESTAMP, in the representations of ``time.precision.mode``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import as_mask, int64_like, int64_values, lengths_of, without
from floodmark.codecs.calendar import INT64_MAX
from floodmark.codecs.codec import Codec, bare, quoted, semantic
from floodmark.codecs.time_units import (
    DEBEZIUM,
    MICROS_DIGITS,
    TIMESTAMP_CONNECT,
    TIMESTAMP_MS,
    TIMESTAMP_NS,
    TIMESTAMP_US,
    Unit,
    few_digits,
    zulu,
)
from floodmark.connectors.oracle.structures.table import Column
from floodmark.connectors.oracle.types.settings import OracleSettings

_MICROS = pa.timestamp("us")
_MICROS_WIDTH = len("2026-01-02 13:04:05.123456")
_SECONDS_WIDTH, _ZONE_WIDTH = len("2026-01-02 13:04:05"), len(" +05:30")
_MILLIS_DIGITS = 3
_NANOS_LIMIT = INT64_MAX // 1000
_EPOCH = "1970-01-01T00:00:00Z"


def moment(column: Column, settings: OracleSettings) -> Codec:
    """Return the codec of DATE or TIMESTAMP."""
    if settings.time_precision_mode == "isostring":
        return Codec(
            semantic("string", DEBEZIUM + "IsoTimestamp"),
            lambda text: quoted(zulu(few_digits(_with_t(text)))),
            f'"{_EPOCH}"',
            "null",
            _MICROS,
            _moments,
        )
    unit = _unit(0 if column.type == "DATE" else column.scale or 0, settings.time_precision_mode)
    return Codec(
        semantic(unit.kind, unit.name), lambda text: bare(_numbers(text, unit)), "0", "null", _MICROS, _moments
    )


def _unit(digits: int, mode: str) -> Unit:
    if mode == "connect":
        return TIMESTAMP_CONNECT
    if mode == "microseconds":
        return TIMESTAMP_US
    if mode == "nanoseconds" or digits > MICROS_DIGITS:
        return TIMESTAMP_NS
    return TIMESTAMP_MS if digits <= _MILLIS_DIGITS else TIMESTAMP_US


def zoned(column: Column, settings: OracleSettings) -> Codec:
    """Return the codec of TIMESTAMP WITH TIME ZONE, and WITH LOCAL TIME ZONE, whose text is in UTC."""
    del settings
    digits = MICROS_DIGITS if column.scale is None else column.scale

    def encode(text: pa.StringArray) -> pa.StringArray:
        whole = pc.replace_substring(_with_t(_with_digits(text, digits)), " ", "", max_replacements=1)
        # An offset of nothing is written as Z.
        at_utc = pc.ends_with(whole, "+00:00")
        return pc.if_else(at_utc, zulu(pc.utf8_slice_codeunits(whole, 0, -len("+00:00"))), whole)

    at_utc = pa.timestamp("us", tz="UTC")
    return Codec(
        semantic("string", DEBEZIUM + "ZonedTimestamp"),
        lambda text: quoted(encode(text)),
        f'"{_EPOCH}"',
        "null",
        at_utc,
        lambda text: _few_micros(encode(text)).cast(at_utc),
    )


def _with_digits(text: pa.StringArray, digits: int) -> pa.StringArray:
    """Return zoned times without digits of the fraction that their column doesn't have."""
    width = _SECONDS_WIDTH + (digits + 1 if digits else 0) + _ZONE_WIDTH
    if int(lengths_of(text).max(initial=0)) <= width:
        return text
    kept = rf"(\.\d{{{digits}}})\d+" if digits else r"()\.\d+"
    return pc.replace_substring_regex(text, kept, r"\1", max_replacements=1)


def _with_t(text: pa.StringArray) -> pa.StringArray:
    return pc.replace_substring(text, " ", "T", max_replacements=1)


def _few_micros(text: pa.StringArray) -> pa.StringArray:
    """Return zoned times without what is below a microsecond."""
    return pc.replace_substring_regex(text, r"(\.\d{6})\d+", r"\1")


def _moments(text: pa.StringArray) -> pa.TimestampArray:
    """Return times without what is below a microsecond."""
    longer = int(lengths_of(text).max(initial=0)) > _MICROS_WIDTH
    return (pc.utf8_slice_codeunits(text, 0, _MICROS_WIDTH) if longer else text).cast(_MICROS)


def _numbers(text: pa.StringArray, unit: Unit) -> pa.StringArray:
    """Return times as numbers of a unit; null where nanoseconds can't represent them, as in Debezium."""
    moments = _moments(text)
    micros = int64_values(moments)
    if unit.divisor:
        return int64_like(unit.of_column(micros), moments).cast(pa.string())
    beyond = (np.abs(micros) > _NANOS_LIMIT) & as_mask(pc.is_valid(moments))
    nanos = int64_values(without(text, beyond).cast(pa.timestamp("ns")))
    return without(int64_like(nanos, moments).cast(pa.string()), beyond)
