"""Dates and times of DEFAULT clauses, which the servers read in many forms and keep in one."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

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


def date_time(type_: str, text: str, quoted: bool, digits: int, rounds: bool) -> str:
    """Return a ``date``, ``datetime`` or ``timestamp`` as the server keeps it.

    Args:
        quoted: whether it stands in quotes, rather than as a number.
        digits: those of a second's fraction that are kept.
        rounds: whether the fraction is rounded rather than cut off.

    Raises:
        ValueError: it is none.
    """
    parts, fraction = _parts(text.strip(), quoted)
    numbers = [int(part) for part in parts] + [0] * (_PARTS - len(parts))
    if len(parts[0]) == 2 and any(numbers):
        numbers[0] += 2000 if numbers[0] < _CENTURY_TURNS else 1900
    micros, kept = _kept(fraction, digits, rounds)
    if micros >= _SECOND:
        later = datetime(*numbers) + timedelta(seconds=1)  # type: ignore[arg-type]
        numbers = [later.year, later.month, later.day, later.hour, later.minute, later.second]
    date = "{:04d}-{:02d}-{:02d}".format(*numbers[:3])
    return date if type_ == "date" else date + " {:02d}:{:02d}:{:02d}".format(*numbers[3:]) + kept


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


def time_of_day(text: str, digits: int, rounds: bool) -> str:
    """Return a ``time`` as the server keeps it; the arguments are those of :func:`date_time`."""
    text = text.strip()
    if re.match(r"\d+-\d+-\d+\D", text):
        # The time of a date and time.
        text = text.partition(" ")[2]
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(text)
    sign, days, *clock, fraction = found.groups()
    if clock[1] is None and days is None:
        # Longer ones are a date and time, too.
        together = clock[0].zfill(_PARTS) if len(clock[0]) < _LONG_NUMBER else clock[0][-_PARTS:]
        clock = [together[:-4], together[-4:-2], together[-2:]]
    hours, minutes, seconds = (int(part or 0) for part in clock)
    micros, kept = _kept(fraction or "", digits, rounds)
    whole = ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds + (micros >= _SECOND)
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    negative = sign == "-" and (whole > 0 or micros % _SECOND > 0)
    return f"{'-' if negative else ''}{hours:02d}:{minutes:02d}:{seconds:02d}{kept}"


def _kept(fraction: str, digits: int, rounds: bool) -> tuple[int, str]:
    """Return a second's fraction as it is kept: in microseconds, and as text with its point."""
    nanos = int(fraction[:9].ljust(9, "0"))
    unit = 10 ** (9 - digits)
    nanos = (nanos + unit // 2 if rounds else nanos) // unit * unit
    micros = nanos // 1000
    return micros, f".{micros % _SECOND:06d}"[: digits + 1] if digits else ""
