"""The clock of the database: system change numbers, and the times that belong to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.support.oracle.errors import OracleError

START = datetime(2026, 11, 20, 10, 0, 0, tzinfo=UTC)
FIRST_SCN = 1_000_000
PER_SECOND = 1000


class Clock:
    """Counts changes. Times follow from the numbers alone, so that a scenario always has the same.

    Attributes:
        scn: the newest system change number.
    """

    def __init__(self) -> None:
        self.scn = FIRST_SCN

    def advance(self, count: int = 1) -> int:
        """Return the next number, or the one after some."""
        self.scn += count
        return self.scn

    def jump(self, scn: int) -> None:
        """Go on at a later number."""
        if scn <= self.scn:
            raise ValueError(f"The clock is at {self.scn} already, after {scn}.")
        self.scn = scn

    def now(self) -> datetime:
        """Return the time of the newest number."""
        return self.time_of(self.scn)

    def time_of(self, scn: int) -> datetime:
        """Return the time of a number."""
        if not 0 < scn <= self.scn:
            raise OracleError(8181)
        return START + timedelta(seconds=(scn - FIRST_SCN) / PER_SECOND)

    def scn_of(self, time: datetime) -> int:
        """Return the number that was the newest at a time."""
        return FIRST_SCN + int((time - START).total_seconds() * PER_SECOND)
