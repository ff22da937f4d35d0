"""Parses and writes dates and timestamps that Arrow cannot parse: infinite, before year 1, after year 9999.

Years are those of the proleptic Gregorian calendar, as in PostgreSQL; year 0 is 1 BC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DAY_US = 86_400_000_000
INT64_MAX = (1 << 63) - 1
INT64_MIN = -(1 << 63)
INT32_MAX = (1 << 31) - 1
INT32_MIN = -(1 << 31)

INFINITE_US = {"infinity": 9_223_372_036_825_200_000, "-infinity": -9_223_372_036_832_400_000}
"""Infinite timestamps in microseconds: the PostgreSQL driver's constants, which Debezium passes on."""

INFINITE_DAYS = {"infinity": INT32_MAX, "-infinity": INT32_MIN}

_TEXT = re.compile(
    r"(\d+)-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?)?)?( BC)?"
)
_DAYS_TO_EPOCH = 719_468
"""From 0000-03-01, where the algorithm below begins its years, to 1970-01-01."""


@dataclass(frozen=True)
class Moment:
    """A date and a time of day in UTC.

    Attributes:
        days: days since 1970-01-01.
        micros: microseconds of the day.
    """

    days: int
    micros: int = 0

    @property
    def epoch_us(self) -> int:
        """Microseconds since 1970-01-01."""
        return self.days * DAY_US + self.micros

    @classmethod
    def at(cls, epoch_us: int) -> Moment:
        """Return the moment at a number of microseconds since 1970-01-01."""
        return cls(*divmod(epoch_us, DAY_US))

    def date(self) -> str:
        """Return the date as ISO 8601 text: a year past 9999 has ``+``, one before 0 ``-``."""
        year, month, day = year_month_day(self.days)
        sign = "-" if year < 0 else "+" if year > 9999 else ""
        return f"{sign}{abs(year):04}-{month:02}-{day:02}"

    def time(self, digits: int | None = None) -> str:
        """Return the time of day with this number of fractional digits; None for as few as needed."""
        seconds, micros = divmod(self.micros, 1_000_000)
        fraction = f"{micros:06}".rstrip("0") if digits is None else f"{micros:06}"[:digits]
        text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f"{text}.{fraction}" if fraction else text


def parse(text: str) -> Moment:
    """Return the moment of a finite date or timestamp as PostgreSQL writes it.

    Raises:
        ValueError: the text is not a date or timestamp.
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is not a date or timestamp.")
    year, month, day, hour, minute, second, fraction, sign, *offset, bc = found.groups()
    days = days_of(1 - int(year) if bc else int(year), int(month), int(day))
    seconds = _seconds(hour, minute, second)
    shift = _seconds(*offset)
    micros = (seconds + (shift if sign == "-" else -shift)) * 1_000_000 + int((fraction or "0").ljust(6, "0"))
    return Moment.at(days * DAY_US + micros)


def _seconds(hour: str | None, minute: str | None, second: str | None) -> int:
    return int(hour or 0) * 3600 + int(minute or 0) * 60 + int(second or 0)


def days_of(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date of the proleptic Gregorian calendar.

    Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", ``days_from_civil``.
    """
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - _DAYS_TO_EPOCH


def year_month_day(days: int) -> tuple[int, int, int]:
    """Return the year, month and day of a number of days since 1970-01-01, in the proleptic Gregorian calendar.

    Source: as ``days_of``, ``civil_from_days``.
    """
    era, day_of_era = divmod(days + _DAYS_TO_EPOCH, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def saturated(number: int) -> int:
    """Return the int64 that is nearest to a number."""
    return max(INT64_MIN, min(INT64_MAX, number))
