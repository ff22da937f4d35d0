"""How many rows of incremental snapshots a micro-batch reads: as many as fit into the time that it may take."""

from __future__ import annotations

import time
from dataclasses import dataclass

FIRST_CHUNKS = 8
MARGIN = 0.9
FIXED_SHARE = 0.7
MOST_FIXED = 0.5
GROWTH = 3.0
STEP_AHEAD = 0.5


@dataclass(frozen=True)
class Pace:
    """How much an incremental snapshot reads in a micro-batch.

    Attributes:
        target_s: how long a micro-batch should take.
        least: rows of the smallest chunk.
        most: most rows in a micro-batch.
        tasks: chunks that are read at a time.
    """

    target_s: float
    least: int
    most: int
    tasks: int


class BatchRows:
    """Adapts the number of rows to how long micro-batches take.

    Attributes:
        number: rows of the next micro-batch.
    """

    def __init__(self, pace: Pace) -> None:
        # One that takes longer delays the log more than a shorter one saves.
        self._target_s = MARGIN * pace.target_s
        self._least = pace.least
        self._most = max(pace.most, pace.least)
        self.number = min(FIRST_CHUNKS * pace.least * pace.tasks, self._most)
        self._began_at: float | None = None
        self._planned = 0
        self._shortest_s = float("inf")

    def begin(self) -> None:
        """Take the time that the last micro-batch took, before any work is done for the next one.

        Part of the time doesn't depend on the rows; the shortest micro-batch so far shows about how much.
        """
        now = time.monotonic()
        if self._began_at is not None and self._planned > 0:
            took = max(now - self._began_at, 0.001)
            self._shortest_s = min(self._shortest_s, took)
            fixed = min(FIXED_SHARE * self._shortest_s, MOST_FIXED * self._target_s)
            factor = min(max((self._target_s - fixed) / (took - fixed), 0.5), GROWTH)
            # The rows of the next micro-batch may have been read while this one's were delivered, so that the time is
            # both's, and the new number counts for the one after it: a full step up would overshoot, and swing.
            wanted = factor * (self._planned + self.number) / 2
            step = STEP_AHEAD if wanted > self.number != self._planned else 1
            number = self.number + step * (wanted - self.number)
            self.number = int(min(max(number, self._least), self._most))
        self._began_at, self._planned = now, 0

    def planned(self, number: int) -> None:
        """Say that the micro-batch has its rows; until then it may begin again.

        Args:
            number: what ``number`` was when they were read, maybe before the last micro-batch ended.
        """
        self._planned = number

    def idle(self) -> None:
        """Say that there is nothing to read, so that the time until there is tells nothing."""
        self._began_at = None

    def halve(self) -> None:
        """Take fewer rows."""
        self.number = max(self.number // 2, self._least)
