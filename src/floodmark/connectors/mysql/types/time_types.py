"""Codecs of ``time``, whose hours go up to 838, in the representations of ``time.precision.mode``, and ``year``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import byte_at, int64_like, valid, without
from floodmark.codecs.codec import Codec, bare, quoted, semantic, unchanged
from floodmark.codecs.time_units import DEBEZIUM, TIME_CONNECT, TIME_NS, TIME_US, few_digits, zulu
from floodmark.connectors.mysql.types.settings import MysqlSettings

DAY_US = 86_400_000_000

_MINUTES_WIDTH = 6
_MILLION = 1_000_000
_MIDNIGHT = "00:00:00"
_ZERO, _MINUS = b"0-"


def time(digits: int, settings: MysqlSettings) -> Codec:
    """Return the codec of ``time`` with so many digits of a second's fraction.

    ``connect`` and ``isostring`` can't represent times below 0 or after 24:00:00: they are null, as in Debezium.
    """
    mode = settings.time_precision_mode
    if mode == "isostring":

        def encode(text: pa.StringArray) -> pa.StringArray:
            micros = span_micros(text, digits)
            within = without(text, valid(text) & ((micros < 0) | (micros > DAY_US)))
            return zulu(few_digits(pc.if_else(pa.array(micros == DAY_US), _MIDNIGHT, within)))

        return Codec(
            semantic("string", DEBEZIUM + "IsoTime"),
            lambda text: quoted(encode(text)),
            f'"{_MIDNIGHT}Z"',
            "null",
            pa.string(),
            unchanged,
        )
    unit = {"connect": TIME_CONNECT, "nanoseconds": TIME_NS}.get(mode, TIME_US)

    def numbers(text: pa.StringArray) -> pa.StringArray:
        micros = span_micros(text, digits)
        shown = int64_like(unit.of_column(micros), text).cast(pa.string())
        if unit is TIME_CONNECT:
            shown = without(shown, valid(text) & ((micros < 0) | (micros > DAY_US)))
        return shown

    return Codec(semantic(unit.kind, unit.name), lambda text: bare(numbers(text)), "0", "null", pa.string(), unchanged)


def span_micros(text: pa.StringArray, digits: int) -> NDArray[np.int64]:
    """Convert times as the server prints them to microseconds, shape (rows,); 0 for nulls."""
    # Digits are read from the end, since the number of hours has two or three, and a sign may precede it.
    tail = 1 + digits if digits else 0
    fraction = np.zeros(len(text), np.int64)
    for place in range(digits):
        fraction = fraction * 10 + _digit(text, place - digits)
    seconds = _two(text, -2 - tail) + 60 * _two(text, -5 - tail)
    hours = np.zeros(len(text), np.int64)
    for place, weight in ((2, 1), (3, 10), (4, 100)):
        hours += weight * _digit(text, -_MINUTES_WIDTH - tail + 1 - place)
    micros = (hours * 3600 + seconds) * _MILLION + fraction * 10 ** (6 - digits)
    signed: NDArray[np.int64] = np.where(byte_at(text, 0) == _MINUS, -micros, micros)
    return signed


def _two(text: pa.StringArray, at: int) -> NDArray[np.int64]:
    return _digit(text, at) * 10 + _digit(text, at + 1)


def _digit(text: pa.StringArray, at: int) -> NDArray[np.int64]:
    """Return the digit at a place from the end, 0 where there is none."""
    byte = byte_at(text, at).astype(np.int64)
    return np.where(byte >= _ZERO, byte - _ZERO, 0)


def year(settings: MysqlSettings) -> Codec:
    """Return the codec of ``year``."""
    zero = "2000" if settings.enable_time_adjuster else "0"
    return Codec(
        semantic("int32", DEBEZIUM + "Year"),
        lambda text: bare(pc.if_else(pc.equal(text, "0000"), zero, text)),
        "0",
        "null",
        pa.int32(),
        lambda text: text.cast(pa.int32()),
    )
