"""Values in Oracle's own binary forms, as rows and the network protocol have them.

The forms of NUMBER and DATE are those that Oracle's documentation of ``DUMP`` and of its call interface describes.
"""

from __future__ import annotations

import struct
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tests.support.oracle.model.types import OracleType
from tests.support.oracle.model.values import Moment, moment

PAIRS = 20


def raw_value(type_: OracleType, value: Any) -> bytes | None:
    """Return a column's value; None for null."""
    if value is None:
        return None
    base = type_.base
    if base in {"NUMBER", "FLOAT"}:
        return number(Decimal(value))
    if base == "DATE":
        return date(moment(value))
    if base == "TIMESTAMP":
        return timestamp(moment(value))
    if base == "TIMESTAMP WITH TIME ZONE":
        return zoned(moment(value))
    if base == "TIMESTAMP WITH LOCAL TIME ZONE":
        # In the session's zone; those of connectors are at UTC.
        return timestamp(_at_utc(moment(value)))
    if base in {"NCHAR", "NVARCHAR2"}:
        return (str(value).ljust(type_.length) if base == "NCHAR" else str(value)).encode("utf-16-be")
    if base in {"RAW", "BLOB"}:
        return bytes(value)
    if base == "BINARY_FLOAT":
        return _binary(struct.pack(">f", value))
    if base == "BINARY_DOUBLE":
        return _binary(struct.pack(">d", value))
    text = str(value)
    return (text.ljust(type_.length) if base == "CHAR" else text).encode()


def number(value: Decimal) -> bytes:
    """Return a NUMBER: an exponent of 100 and up to 20 digits of that base."""
    if not value:
        return b"\x80"
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    if exponent % 2:
        text, exponent = text + "0", exponent - 1
    if len(text) % 2:
        text = "0" + text
    pairs = [int(text[at : at + 2]) for at in range(0, len(text), 2)]
    power = exponent // 2 + len(pairs) - 1
    while pairs[-1] == 0:
        pairs.pop()
    if not sign:
        return bytes([193 + power, *(pair + 1 for pair in pairs)])
    end = [102] if len(pairs) < PAIRS else []
    return bytes([62 - power, *(101 - pair for pair in pairs), *end])


def number_of(raw: bytes) -> Decimal:
    """Return the NUMBER that ``number`` encoded."""
    if raw == b"\x80":
        return Decimal(0)
    if raw[0] & 0x80:
        power, pairs, sign = raw[0] - 193, [one - 1 for one in raw[1:]], 0
    else:
        power, pairs, sign = 62 - raw[0], [101 - one for one in raw[1:] if one != 102], 1
    digits = tuple(int(digit) for pair in pairs for digit in f"{pair:02d}")
    # Not by arithmetic, which rounds to 28 digits.
    return Decimal((sign, digits, 2 * (power - len(pairs) + 1)))


def date(value: Moment) -> bytes:
    """Return a DATE."""
    time = value.time
    return bytes(
        [
            time.year // 100 + 100,
            time.year % 100 + 100,
            time.month,
            time.day,
            time.hour + 1,
            time.minute + 1,
            time.second + 1,
        ]
    )


def timestamp(value: Moment) -> bytes:
    """Return a TIMESTAMP: a DATE and nanoseconds."""
    return date(value) + struct.pack(">I", int(value.fraction))


def zoned(value: Moment) -> bytes:
    """Return a TIMESTAMP WITH TIME ZONE: a TIMESTAMP in UTC, and the zone's offset."""
    offset = value.time.utcoffset() or timedelta()
    minutes = int(offset.total_seconds()) // 60
    hours, rest = divmod(abs(minutes), 60)
    sign = -1 if minutes < 0 else 1
    return timestamp(_at_utc(value)) + bytes([20 + sign * hours, 60 + sign * rest])


def _at_utc(value: Moment) -> Moment:
    offset = value.time.utcoffset() or timedelta()
    return Moment((value.time - offset).replace(tzinfo=None), value.nanos)


def _binary(raw: bytes) -> bytes:
    """Return a binary number so that its bytes sort as the numbers do."""
    if raw[0] & 0x80:
        return bytes(255 - one for one in raw)
    return bytes([raw[0] | 0x80]) + raw[1:]
