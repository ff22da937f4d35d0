"""The session's settings that values are written by."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta, timezone

from tests.support.oracle.model.values import Moment

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


@dataclass
class Formats:
    """``NLS_DATE_FORMAT`` and the like; those of a new session are Oracle's defaults for America."""

    date_format: str = "DD-MON-RR"
    timestamp_format: str = "DD-MON-RR HH.MI.SSXFF AM"
    zoned_format: str = "DD-MON-RR HH.MI.SSXFF AM TZR"
    zone: timezone = timezone(timedelta())

    def date(self, value: Moment) -> str:
        """Return a DATE."""
        return self._text(value, self.date_format, 0)

    def timestamp(self, value: Moment, digits: int) -> str:
        """Return a TIMESTAMP with as many digits of the fraction as its column has."""
        return self._text(value, self.timestamp_format, digits)

    def zoned(self, value: Moment, digits: int) -> str:
        """Return a TIMESTAMP WITH TIME ZONE."""
        return self._text(value, self.zoned_format, digits)

    def shown(self, value: Moment, pattern: str) -> str:
        """Return a moment in a format, with all digits of the fraction."""
        return self._text(value, pattern, 9)

    def _text(self, value: Moment, pattern: str, digits: int) -> str:
        time = value.time
        offset = time.utcoffset() or timedelta()
        minutes = int(offset.total_seconds()) // 60
        sign, minutes = ("-", -minutes) if minutes < 0 else ("+", minutes)
        fraction = value.fraction[:digits]
        parts = {
            "YYYY": f"{time.year:04d}",
            "RR": f"{time.year % 100:02d}",
            "MON": _MONTHS[time.month - 1],
            "MM": f"{time.month:02d}",
            "DD": f"{time.day:02d}",
            "HH24": f"{time.hour:02d}",
            "HH": f"{(time.hour - 1) % 12 + 1:02d}",
            "MI": f"{time.minute:02d}",
            "SS": f"{time.second:02d}",
            "XFF": f".{fraction}",
            ".FF9": f".{fraction}",
            "AM": "AM" if time.hour < 12 else "PM",
            "TZH": f"{sign}{minutes // 60:02d}",
            "TZM": f"{minutes % 60:02d}",
            "TZR": f"{sign}{minutes // 60:02d}:{minutes % 60:02d}",
        }
        text, at = "", 0
        names = sorted(parts, key=len, reverse=True)
        while at < len(pattern):
            name = next((one for one in names if pattern.startswith(one, at)), None)
            text += pattern[at] if name is None else parts[name]
            at += 1 if name is None else len(name)
        return text
