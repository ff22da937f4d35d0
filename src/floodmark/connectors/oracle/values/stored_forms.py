"""Values as Oracle stores them, which LogMiner shows in hexadecimal digits if it doesn't know a column's type.

The forms are those of Oracle's documentation of the call interface ("Oracle External Data Types"), and of ``DUMP``:
NUMBER has an exponent of 100 and digits of that base; DATE one byte for each part; a TIMESTAMP also has nanoseconds;
binary numbers have bits turned so that their bytes sort as they do. They are decoded one by one, each distinct value
once: only what was logged before its table was altered, and is read afterwards, comes so.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Context, Decimal

from floodmark.errors import DecodeError

_ZERO = 0x80
_POSITIVE, _NEGATIVE = 193, 62
_END_OF_NEGATIVE = 102
_CENTURY = 100
_EXACT = Context(prec=50)
"""More digits than any NUMBER has."""
_DATE_BYTES, _TIMESTAMP_BYTES, _ZONED_BYTES = 7, 11, 13
_HOUR_ZERO, _MINUTE_ZERO = 20, 60
_OF_REGION = 0x80
"""The bit that says that a zone is the number of a region."""


def number(digits: str) -> str:
    """Return the NUMBER or FLOAT of hexadecimal digits.

    Raises:
        DecodeError: they aren't one.
    """
    raw = _bytes(digits)
    if raw == bytes([_ZERO]):
        return "0"
    if raw[0] & _ZERO:
        power, pairs = raw[0] - _POSITIVE, [one - 1 for one in raw[1:]]
    else:
        power, pairs = _NEGATIVE - raw[0], [101 - one for one in raw[1:] if one != _END_OF_NEGATIVE]
    if not pairs or not all(0 <= one < _CENTURY for one in pairs):
        raise _wrong("NUMBER")
    places = tuple(int(place) for one in pairs for place in f"{one:02d}")
    # Not by arithmetic, which rounds to 28 digits.
    return f"{Decimal((int(not raw[0] & _ZERO), places, 2 * (power - len(pairs) + 1))).normalize(_EXACT):f}"


def moment(digits: str) -> str:
    """Return the DATE or TIMESTAMP of hexadecimal digits, as LogMiner writes them.

    Raises:
        DecodeError: they aren't one, or its zone is the name of a region, for which the server has a table.
    """
    raw = _bytes(digits)
    if len(raw) not in (_DATE_BYTES, _TIMESTAMP_BYTES, _ZONED_BYTES):
        raise _wrong("DATE or TIMESTAMP")
    century, year, month, day, hour, minute, second = raw[:_DATE_BYTES]
    try:
        time = datetime((century - _CENTURY) * _CENTURY + year - _CENTURY, month, day, hour - 1, minute - 1, second - 1)
    except ValueError:
        raise _wrong("DATE or TIMESTAMP") from None
    fraction = f".{int.from_bytes(raw[7:11], 'big'):09d}" if len(raw) > _DATE_BYTES else ""
    if len(raw) < _ZONED_BYTES:
        return f"{_shown(time)}{fraction}"
    if raw[11] & _OF_REGION:
        raise DecodeError("A TIMESTAMP WITH TIME ZONE names its zone, which only the server knows.")
    minutes = (raw[11] - _HOUR_ZERO) * 60 + raw[12] - _MINUTE_ZERO
    sign, offset = "-" if minutes < 0 else "+", f"{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    try:
        local = time + timedelta(minutes=minutes)
    except OverflowError:
        raise _wrong("TIMESTAMP WITH TIME ZONE") from None
    return f"{_shown(local)}{fraction} {sign}{offset}"


def _shown(time: datetime) -> str:
    return time.isoformat(sep=" ", timespec="seconds")


def binary_float(digits: str) -> str:
    """Return the BINARY_FLOAT of hexadecimal digits; see ``number``."""
    return _binary(digits, ">f")


def binary_double(digits: str) -> str:
    """Return the BINARY_DOUBLE of hexadecimal digits; see ``number``."""
    return _binary(digits, ">d")


def no_form(digits: str) -> str:
    """Raise an error: an interval has no form that is known, and a local time is in the database's own zone."""
    del digits
    raise DecodeError("A value was logged before its table was altered, and what its digits mean isn't known.")


def decoder_of(kind: str) -> Callable[[str], str]:
    """Return what decodes the values of a type, such as ``TIMESTAMP WITH TIME ZONE``."""
    if kind in ("NUMBER", "FLOAT"):
        return number
    if kind in ("BINARY_FLOAT", "BINARY_DOUBLE"):
        return binary_float if kind == "BINARY_FLOAT" else binary_double
    return moment if kind in ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE") else no_form


def _binary(digits: str, form: str) -> str:
    raw = _bytes(digits)
    plain = bytes([raw[0] & 0x7F]) + raw[1:] if raw[0] & 0x80 else bytes(255 - one for one in raw)
    try:
        return repr(struct.unpack(form, plain)[0])
    except struct.error:
        raise _wrong("binary number") from None


def _bytes(digits: str) -> bytes:
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        raise _wrong("value") from None
    if not raw:
        raise _wrong("value")
    return raw


def _wrong(what: str) -> DecodeError:
    return DecodeError(f"The digits of a value in SQL_REDO aren't those of a {what}.")
