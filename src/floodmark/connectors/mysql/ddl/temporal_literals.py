"""Converts dates and times of DEFAULT clauses, which servers read in many forms, to the one that they store."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_CENTURY_TURNS = 70
_PARTS = 6
_LONG_YEARS = (4, 8)
_LONGEST = 14
_LONG_NUMBER = 11
_NUMBER_LENGTHS = (6, 8, 12, _LONGEST)
_BETWEEN = re.compile(r"[\W_]+|T(?=\d)")
_DIGITS = re.compile(r"\d*")
_TIME = re.compile(r"(-|\+)?\s*(?:(\d+)\s+(?=\d+:))?(\d+)(?::(\d+))?(?::(\d+))?(?:\.(\d*))?.*", re.DOTALL)
_SECOND = 10**6
_NANO = Decimal("1e-9")
_MOMENT = re.compile(r"\d+[^\w\s:]\d+[^\w\s:]\d+([\sT])")
_SHORTEST_MOMENT = 12
_OFFSET = re.compile(r"([+-])(\d{1,2}):(\d{2})")
_WITH_OFFSET = re.compile(r"(.*\d:\d+:\d+(?:\.\d*)?)([+-])(\d\d):(\d\d)", re.DOTALL)


@dataclass(frozen=True)
class Clock:
    """How a server converts times in a session's literals.

    Attributes:
        rounds: whether fractions of seconds that a type has no room for are rounded, rather than cut off.
        zone: the session's time zone, to which MySQL converts times that have an offset; None if it isn't known.
        letter: whether a T may separate date and time where the time alone is meant, as on MariaDB.
    """

    rounds: bool = False
    zone: tzinfo | None = None
    letter: bool = False


USUAL = Clock()
"""The clock of a session that cuts fractions off and whose time zone isn't known."""


def time_zone(name: str, system: str) -> tzinfo | None:
    """Return a session's time zone; None if it isn't known here.

    Args:
        name: as ``SET time_zone`` takes it.
        system: the operating system's name of the server's time zone, for ``SYSTEM``.
    """
    name = system if name.upper() == "SYSTEM" else name
    found = _OFFSET.fullmatch(name)
    if found is not None:
        return timezone(_offset(*found.groups()))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _offset(sign: str, hours: str, minutes: str) -> timedelta:
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return -offset if sign == "-" else offset


def _without_offset(text: str) -> tuple[str, timedelta | None]:
    """Split a date and time from its offset, if it has one (MySQL 8.0.19 and later).

    Source: MySQL's documentation, "Date and Time Literals".
    """
    found = _WITH_OFFSET.fullmatch(text)
    if found is None:
        return text, None
    return found[1], _offset(*found.groups()[1:])


def _numbers(parts: Sequence[str]) -> list[int]:
    """Return year, month, day, hour, minute and second, with the century of years of two digits."""
    numbers = [int(part) for part in parts] + [0] * (_PARTS - len(parts))
    if len(parts[0]) == 2 and any(numbers):
        numbers[0] += 2000 if numbers[0] < _CENTURY_TURNS else 1900
    return numbers


def _local(numbers: Sequence[int], offset: timedelta, zone: tzinfo | None) -> list[int]:
    """Convert a date and time with an offset to a time zone.

    Raises:
        ValueError: the time zone isn't known.
    """
    if zone is None:
        raise ValueError(offset)
    return _parts_of(datetime(*numbers, tzinfo=timezone(offset)).astimezone(zone))  # type: ignore[arg-type, misc]


def _parts_of(moment: datetime) -> list[int]:
    return [moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second]


def date_time(type_: str, text: str, quoted: bool, digits: int, clock: Clock) -> str:
    """Return a ``date``, ``datetime`` or ``timestamp`` in the form that the server stores.

    Args:
        quoted: whether it is in quotes, rather than a number.
        digits: how many digits of a second's fraction are stored.
        clock: the session's.

    Raises:
        ValueError: the text is no date, or has an offset and the session's time zone isn't known.
    """
    text, offset = _without_offset(text.strip() if quoted else _of_number(text))
    parts, fraction = _parts(text, quoted)
    numbers = _numbers(parts)
    micros, kept = _kept(fraction, digits, clock.rounds)
    if micros >= _SECOND:
        # Where rounding carries into the next second, MySQL ignores the offset.
        numbers = _parts_of(datetime(*numbers) + timedelta(seconds=1))  # type: ignore[arg-type]
    elif offset is not None:
        numbers = _local(numbers, offset, clock.zone)
    date = "{:04d}-{:02d}-{:02d}".format(*numbers[:3])
    return date if type_ == "date" else date + " {:02d}:{:02d}:{:02d}".format(*numbers[3:]) + kept


def plain_number(text: str) -> str:
    """Return a number without an exponent, with the digits of the floating-point number that one with an exponent is.

    Raises:
        ArithmeticError: it is too large for a date or a time.
    """
    number = Decimal(float(text)).quantize(_NANO) if "e" in text.lower() else Decimal(text)
    return f"{number or abs(number):f}"


def _of_number(text: str) -> str:
    """Return the digits of a date, or of a date and a time, out of those of a number."""
    whole, _, fraction = text.partition(".")
    if not whole.strip("0"):
        return f"{'0' * _LONGEST}.{fraction}"
    # A number that is too short for a time has no fraction either.
    return text if len(whole) > _LONG_YEARS[1] else whole


def _parts(text: str, quoted: bool) -> tuple[list[str], str]:
    """Return the digits of year, month and so on, as many as there are, and those of the second's fraction."""
    leading = _DIGITS.match(text)[0]  # type: ignore[index]
    rest = text[len(leading) :]
    together = rest[:1] in ("", ".", "T")
    if not leading:
        raise ValueError(text)
    if not quoted:
        leading = leading.zfill(next((length for length in _NUMBER_LENGTHS if len(leading) <= length), 0))
        text = leading + rest
    long_year = len(leading) in _LONG_YEARS or len(leading) >= _LONGEST
    widths = [4 if long_year else 2, *[2] * (_PARTS - 1)]
    parts: list[str] = []
    at = 0
    while at < len(text) and len(parts) < _PARTS:
        part = _DIGITS.match(text, at, at + widths[len(parts)] if together else len(text))[0]  # type: ignore[index]
        if not part:
            break
        parts.append(part)
        at += len(part)
        between = _BETWEEN.match(text, at)
        if between is not None and len(parts) < _PARTS:
            at = between.end()
    fraction = _DIGITS.match(text, at + 1)[0] if text[at : at + 1] == "." else ""  # type: ignore[index]
    return parts, fraction


def time_of_day(text: str, digits: int, clock: Clock) -> str:
    """Return a ``time`` in the form that the server stores; the arguments are those of :func:`date_time`."""
    text = text.strip()
    moment = _MOMENT.match(text)
    if moment is not None and len(text) >= _SHORTEST_MOMENT and (moment[1] != "T" or clock.letter):
        text, offset = _without_offset(text)
        parts_of_date, digits_behind = _parts(text, True)
        numbers = _numbers(parts_of_date)
        local = numbers if offset is None else _local(numbers, offset, clock.zone)
        text = "{}:{}:{}.".format(*local[3:]) + digits_behind
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(text)
    sign, days, *parts, fraction = found.groups()
    if parts[1] is None and days is None:
        # A longer number is a date and time; the time is at its end.
        together = parts[0].zfill(_PARTS) if len(parts[0]) < _LONG_NUMBER else parts[0][-_PARTS:]
        parts = [together[:-4], together[-4:-2], together[-2:]]
    hours, minutes, seconds = (int(part or 0) for part in parts)
    micros, kept = _kept(fraction or "", digits, clock.rounds)
    whole = ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds + (micros >= _SECOND)
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    negative = sign == "-" and (whole > 0 or micros % _SECOND > 0)
    return f"{'-' if negative else ''}{hours:02d}:{minutes:02d}:{seconds:02d}{kept}"


def _kept(fraction: str, digits: int, rounds: bool) -> tuple[int, str]:
    """Return a second's fraction with so many digits: in microseconds, and as text with its point."""
    nanos = int(fraction[:9].ljust(9, "0"))
    unit = 10 ** (9 - digits)
    nanos = (nanos + unit // 2 if rounds else nanos) // unit * unit
    micros = nanos // 1000
    return micros, f".{micros % _SECOND:06d}"[: digits + 1] if digits else ""
