"""The names, types and units that events use for dates and times (``time.precision.mode``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import replaced, valid

DEBEZIUM = "io.debezium.time."
CONNECT = "org.apache.kafka.connect.data."
MICROS_DIGITS = 6
"""Digits of a second's fraction in microseconds."""


@dataclass(frozen=True)
class Unit:
    """How a time or a timestamp is written as a number.

    Attributes:
        name: the schema's semantic name.
        kind: Connect's type.
        divisor: microseconds in one unit; 0 for nanoseconds.
    """

    name: str
    kind: str
    divisor: int

    def of_micros(self, micros: int) -> int:
        """Convert microseconds to this unit, rounding towards minus infinity."""
        return micros * 1000 if self.divisor == 0 else micros // self.divisor

    def of_column(self, micros: NDArray[np.int64]) -> NDArray[np.int64]:
        """Convert microseconds to this unit, rounding towards minus infinity, shape (rows,)."""
        if self.divisor == 1:
            return micros
        return micros * 1000 if self.divisor == 0 else micros // self.divisor


TIME_MS = Unit(DEBEZIUM + "Time", "int32", 1000)
TIME_US = Unit(DEBEZIUM + "MicroTime", "int64", 1)
TIME_NS = Unit(DEBEZIUM + "NanoTime", "int64", 0)
TIME_CONNECT = Unit(CONNECT + "Time", "int32", 1000)
TIMESTAMP_MS = Unit(DEBEZIUM + "Timestamp", "int64", 1000)
TIMESTAMP_US = Unit(DEBEZIUM + "MicroTimestamp", "int64", 1)
TIMESTAMP_NS = Unit(DEBEZIUM + "NanoTimestamp", "int64", 0)
TIMESTAMP_CONNECT = Unit(CONNECT + "Timestamp", "int64", 1000)


def zulu(text: pa.StringArray) -> pa.StringArray:
    """Append ISO 8601's sign of UTC to dates and times."""
    return pc.binary_join_element_wise(text, "Z", "")


def few_digits(text: pa.StringArray) -> pa.StringArray:
    """Return times without zeros at the end of a second's fraction."""
    point = pc.find_substring(text, ".").fill_null(-1).to_numpy()
    fractional = (point >= 0) & valid(text)
    if not fractional.any():
        return text
    shorter = pc.ascii_rtrim(pc.ascii_rtrim(text.filter(pa.array(fractional)), "0"), ".")
    return replaced(text, fractional, shorter)
