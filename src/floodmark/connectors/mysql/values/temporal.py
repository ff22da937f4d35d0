"""Decodes dates and times of row events to text, as the server prints them.

Source: MySQL, ``mysys/my_time.cc`` (``my_datetime_packed_from_binary`` and similar functions) for the forms with
fractions, ``sql/field.cc`` for the old ones; MariaDB, ``sql/field.cc``, ``Field_time_hires`` and similar classes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.connectors.mysql.values.column_bytes import (
    COLON,
    FOUR_DIGITS,
    MINUS,
    POINT,
    SPACE,
    THREE_DIGITS,
    TWO_DIGITS,
    big_endian,
    bytes_at,
    fixed_text,
    kept_text,
    little_endian,
)
from floodmark.connectors.mysql.values.layouts import Layout
from floodmark.connectors.mysql.values.row_images import Bytes, Mask, Pieces
from floodmark.errors import DecodeError

Numbers = NDArray[np.int64]

DAY_SECONDS = 86_400
_MILLION = 1_000_000
_DATE_WIDTH, _SECONDS_WIDTH = 10, 19
_MONTHS = 13
_MOST_MONTHS = 10_000 * _MONTHS
_LATEST_TIME = 838 * 3600 + 59 * 60 + 59
_CLOCK = np.empty((DAY_SECONDS, 8), np.uint8)
_CLOCK[:, [2, 5]] = COLON
for _at, _part in ((0, 3600), (3, 60), (6, 1)):
    _CLOCK[:, _at : _at + 2] = TWO_DIGITS[np.arange(DAY_SECONDS) // _part % (24 if _part == 3600 else 60)]


def dates(buf: Bytes, pieces: Pieces) -> pa.StringArray:
    """Return dates: three bytes with 5 bits of the day, 4 of the month, and the year in the others."""
    packed = little_endian(bytes_at(buf, pieces, 3))
    text = np.empty((len(packed), _DATE_WIDTH), np.uint8)
    _put_date(text, packed >> 9, packed >> 5 & 15, packed & 31)
    return fixed_text(text, pieces.valid)


def timestamps(buf: Bytes, pieces: Pieces, layout: Layout) -> pa.StringArray:
    """Return timestamps with fractions, in UTC; 0 is the zero timestamp."""
    raw = bytes_at(buf, pieces, layout.size)
    return _epochs(big_endian(raw[:, :4]), _micros(raw[:, 4:]), layout.scale, pieces.valid)


def old_timestamps(buf: Bytes, pieces: Pieces) -> pa.StringArray:
    """Return timestamps without fractions, in UTC."""
    seconds = little_endian(bytes_at(buf, pieces, 4))
    return _epochs(seconds, np.zeros(len(seconds), np.int64), 0, pieces.valid)


def hires_timestamps(buf: Bytes, pieces: Pieces, layout: Layout) -> pa.StringArray:
    """Return MariaDB's older timestamps with fractions, in UTC."""
    raw = bytes_at(buf, pieces, layout.size)
    micros = big_endian(raw[:, 4:]) * 10 ** (6 - layout.scale)
    return _epochs(big_endian(raw[:, :4]), _checked(micros, _MILLION), layout.scale, pieces.valid)


def datetimes(buf: Bytes, pieces: Pieces, layout: Layout) -> pa.StringArray:
    """Return datetimes with fractions: 1 sign bit, 17 bits of year * 13 + month, 5 day, 5 hour, 6 minute, 6 second."""
    raw = bytes_at(buf, pieces, layout.size)
    packed = big_endian(raw[:, :5]) - (1 << 39)
    micros = _micros(raw[:, 5:])
    day, clock = packed >> 17, packed & 0x1FFFF
    months = _checked(day >> 5, _MOST_MONTHS)
    parts = months // _MONTHS, months % _MONTHS, day & 31, clock >> 12, clock >> 6 & 63, clock & 63
    return _datetimes(parts, micros, layout.scale, pieces.valid)


def old_datetimes(buf: Bytes, pieces: Pieces) -> pa.StringArray:
    """Return datetimes without fractions: one number with the decimal digits ``YYYYMMDDhhmmss``."""
    number = numbers_of(buf, pieces)
    date, clock = number // _MILLION, number % _MILLION
    parts = date // 10_000, date // 100 % 100, date % 100, clock // 10_000, clock // 100 % 100, clock % 100
    return _datetimes(parts, np.zeros(len(number), np.int64), 0, pieces.valid)


def hires_datetimes(buf: Bytes, pieces: Pieces, layout: Layout) -> pa.StringArray:
    """Return MariaDB's older datetimes with fractions: one number in units of the last digit."""
    number, micros = _split_fraction(big_endian(bytes_at(buf, pieces, layout.size)), layout.scale)
    months = _checked(number // (32 * DAY_SECONDS), _MOST_MONTHS)
    day, clock = number // DAY_SECONDS % 32, number % DAY_SECONDS
    parts = months // _MONTHS, months % _MONTHS, day, clock // 3600, clock // 60 % 60, clock % 60
    return _datetimes(parts, micros, layout.scale, pieces.valid)


def times(buf: Bytes, pieces: Pieces, layout: Layout) -> pa.StringArray:
    """Return times with fractions: sign and 23 bits of hours, minutes, seconds, then the fraction, as one number."""
    size = layout.size - 3
    packed = big_endian(bytes_at(buf, pieces, layout.size)) - (1 << 23 + 8 * size)
    magnitude = np.abs(packed)
    clock = magnitude >> 8 * size
    fraction = (magnitude & (1 << 8 * size) - 1) * 10 ** (6 - 2 * size)
    seconds = (clock >> 12) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)
    _checked(clock >> 6 & 63, 60)
    _checked(clock & 63, 60)
    return _times(packed < 0, seconds, _checked(fraction, _MILLION), layout.scale, pieces.valid)


def old_times(buf: Bytes, pieces: Pieces) -> pa.StringArray:
    """Return times without fractions: one signed number with the decimal digits ``hhmmss``."""
    number = little_endian(bytes_at(buf, pieces, 3))
    # Extend the sign of the 24-bit number.
    number -= number >> 23 << 24
    clock = np.abs(number)
    seconds = clock // 10_000 * 3600 + clock // 100 % 100 * 60 + clock % 100
    return _times(number < 0, seconds, np.zeros(len(clock), np.int64), 0, pieces.valid)


def hires_times(buf: Bytes, pieces: Pieces, layout: Layout) -> pa.StringArray:
    """Return MariaDB's older times with fractions: one number in units of the last digit, offset to be positive."""
    number = big_endian(bytes_at(buf, pieces, layout.size)) - (_LATEST_TIME + 1) * 10**layout.scale
    seconds, micros = _split_fraction(np.abs(number), layout.scale)
    return _times(number < 0, seconds, micros, layout.scale, pieces.valid)


def numbers_of(buf: Bytes, pieces: Pieces) -> Numbers:
    """Return little-endian numbers of eight bytes."""
    return little_endian(bytes_at(buf, pieces, 8))


def _epochs(seconds: Numbers, micros: Numbers, digits: int, valid: Mask | None) -> pa.StringArray:
    """Return seconds since 1970 and microseconds as text."""
    text = _frame(len(seconds), _SECONDS_WIDTH, digits)
    day = seconds // DAY_SECONDS
    first, last = (int(day.min()), int(day.max())) if len(day) else (0, 0)
    # Format each day of the range once, and look the rows' days up.
    days = np.arange(first, last + 1).astype("datetime64[D]").astype("S10")
    text[:, :_DATE_WIDTH] = days.view(np.uint8).reshape(-1, _DATE_WIDTH)[day - first]
    text[:, _DATE_WIDTH] = SPACE
    text[:, _DATE_WIDTH + 1 : _SECONDS_WIDTH] = _CLOCK[seconds - day * DAY_SECONDS]
    zero = seconds == 0
    if zero.any():
        text[zero, :_SECONDS_WIDTH] = np.frombuffer(b"0000-00-00 00:00:00", np.uint8)
    _put_fraction(text, _SECONDS_WIDTH, micros, digits)
    return fixed_text(text, valid)


def _datetimes(parts: tuple[Numbers, ...], micros: Numbers, digits: int, valid: Mask | None) -> pa.StringArray:
    """Return years, months, days, hours, minutes, seconds and microseconds as text."""
    year, month, day, hour, minute, second = parts
    text = _frame(len(year), _SECONDS_WIDTH, digits)
    _put_date(text, year, month, day)
    text[:, _DATE_WIDTH] = SPACE
    hour, minute, second = _checked(hour, 24), _checked(minute, 60), _checked(second, 60)
    text[:, _DATE_WIDTH + 1 : _SECONDS_WIDTH] = _CLOCK[hour * 3600 + minute * 60 + second]
    _put_fraction(text, _SECONDS_WIDTH, micros, digits)
    return fixed_text(text, valid)


def _times(negative: Mask, seconds: Numbers, micros: Numbers, digits: int, valid: Mask | None) -> pa.StringArray:
    """Return times as text: a sign if they are negative, two digits of hours or three if needed."""
    hours = _checked(seconds // 3600, 1000)
    text = _frame(len(seconds), 10, digits)
    text[:, 0] = MINUS
    text[:, 1:4] = THREE_DIGITS[hours]
    text[:, 4:10] = _CLOCK[seconds % 3600, 2:]
    _put_fraction(text, 10, micros, digits)
    keep = np.ones(text.shape, bool)
    keep[:, 0] = negative
    keep[:, 1] = hours >= 100
    return kept_text(text, keep, valid)


def _frame(rows: int, width: int, digits: int) -> Bytes:
    """Return an uninitialized matrix for text of a width, and a fraction."""
    return np.empty((rows, width + (1 + digits if digits else 0)), np.uint8)


def _put_date(text: Bytes, year: Numbers, month: Numbers, day: Numbers) -> None:
    text[:, 0:4] = FOUR_DIGITS[_checked(year, 10_000)]
    text[:, 4] = text[:, 7] = MINUS
    text[:, 5:7] = TWO_DIGITS[_checked(month, 13)]
    text[:, 8:10] = TWO_DIGITS[_checked(day, 32)]


def _put_fraction(text: Bytes, at: int, micros: Numbers, digits: int) -> None:
    if not digits:
        return
    text[:, at] = POINT
    high = THREE_DIGITS[micros // 1000]
    text[:, at + 1 : at + 1 + min(3, digits)] = high[:, :digits]
    if digits > 3:
        text[:, at + 4 : at + 1 + digits] = THREE_DIGITS[micros % 1000, : digits - 3]


def _micros(raw: Bytes) -> Numbers:
    """Return the microseconds of fractions that take a byte per pair of digits."""
    size = raw.shape[1]
    return _checked(big_endian(raw) * 10 ** (6 - 2 * size), _MILLION)


def _split_fraction(number: Numbers, digits: int) -> tuple[Numbers, Numbers]:
    """Return the seconds and the microseconds of numbers in units of the last digit."""
    unit = 10**digits
    return number // unit, number % unit * 10 ** (6 - digits)


def _checked(numbers: Numbers, limit: int) -> Numbers:
    """Verify that numbers are not negative and below a limit; return them.

    Raises:
        DecodeError: a number is out of range.
    """
    if len(numbers) and (int(numbers.min()) < 0 or int(numbers.max()) >= limit):
        raise DecodeError("A date or time holds a part that is out of its range.")
    return numbers
