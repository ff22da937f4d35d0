"""The offsets of a time zone at many times at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

_DAY_S = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR, _LAST_YEAR = 1800, 2500
"""Zones' clocks were set before the first year as in it, and repeat their rules long before the last."""
_CYCLE_S = 146_097 * _DAY_S
"""400 years, after which the calendar repeats itself, days of the week included."""


class Zone:
    """A time zone.

    Args:
        name: of the zone.
        fixed: its offset in seconds, if that doesn't depend on the time.
    """

    def __init__(self, name: str, fixed: int | None) -> None:
        self._name = name
        self._fixed = fixed

    def at_instants(self, seconds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the offsets at instants.

        Args:
            seconds: since 1970 in UTC, shape (rows,).

        Returns:
            Seconds east of UTC, shape (rows,).
        """
        return self._offsets(seconds, by_clock=False)

    def at_clocks(self, seconds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the offsets at times of the zone's clocks; where they are set, the offset before that.

        Args:
            seconds: since 1970 on the clock, shape (rows,).

        Returns:
            Seconds east of UTC, shape (rows,).
        """
        return self._offsets(seconds, by_clock=True)

    def _offsets(self, seconds: NDArray[np.int64], by_clock: bool) -> NDArray[np.int64]:
        if self._fixed is not None or not len(seconds):
            return np.full(len(seconds), self._fixed or 0, np.int64)
        first, last = _start_of(_FIRST_YEAR), _start_of(_LAST_YEAR)
        folded = np.maximum(seconds, first)
        folded -= np.where(folded >= last, -(-(folded - last + 1) // _CYCLE_S) * _CYCLE_S, 0)
        years = folded.astype("M8[s]").astype("M8[Y]")
        table = _table(self._name, *(int(year.astype(int)) + 1970 for year in (years.min(), years.max())))
        offsets: NDArray[np.int64] = table.offsets[
            np.searchsorted(table.clocks if by_clock else table.instants, folded, side="right")
        ]
        return offsets


class _Table(NamedTuple):
    """Times at which clocks are set.

    Attributes:
        instants: in UTC, shape (times,).
        clocks: the first times on the clock for which the later offset counts, shape (times,).
        offsets: before the first of them, and from each on, shape (times + 1,).
    """

    instants: NDArray[np.int64]
    clocks: NDArray[np.int64]
    offsets: NDArray[np.int64]


@lru_cache(maxsize=32)
def _table(name: str, first: int, last: int) -> _Table:
    """Return when a zone's clocks are set, from the year before the first to that behind the last."""
    years = range(first - 1, last + 2)
    found = [one for year in years for one in _settings_of(name, year)]
    instants = np.array([instant for instant, _, _ in found], np.int64)
    before = np.array([old for _, old, _ in found], np.int64)
    after = np.array([new for _, _, new in found], np.int64)
    begin = _offset(ZoneInfo(name), _start_of(first - 1))
    return _Table(instants, instants + np.maximum(before, after), np.concatenate(([begin], after)).astype(np.int64))


@lru_cache(maxsize=4096)
def _settings_of(name: str, year: int) -> tuple[tuple[int, int, int], ...]:
    """Return when clocks are set in a year in UTC: each second, and the offsets before and from then on."""
    zone = ZoneInfo(name)
    days = [*range(_start_of(year), _start_of(year + 1), _DAY_S), _start_of(year + 1)]
    offsets = [_offset(zone, day) for day in days]
    found = []
    for place in range(len(days) - 1):
        if offsets[place] != offsets[place + 1]:
            low, high = days[place], days[place + 1]
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == offsets[place] else (low, middle)
            found.append((high, offsets[place], offsets[place + 1]))
    return tuple(found)


def _start_of(year: int) -> int:
    return int((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())


def _offset(zone: ZoneInfo, second: int) -> int:
    found = (_EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()
    return 0 if found is None else int(found.total_seconds())
