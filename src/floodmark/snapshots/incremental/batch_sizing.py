"""Decides how many rows of incremental snapshots a micro-batch reads: as many as fit into its target time.

The time of a micro-batch is what its rows cost and everything else: planning, Spark's own work, the sink's commit, and
the wait for the query's trigger. Only the former depends on the rows. Where everything else alone exceeds the target
time, fewer rows would gain nothing; there the rows may take as long again, so that half of the time is theirs, up to
``LONGEST`` times the target.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

FIRST_CHUNKS = 8
MARGIN = 0.9
LEAST_SHARE = 0.5
GROWTH = 3.0
MOST_GROWTH = 10.0
LONGEST = 10.0
LEAST_S = 0.001


@dataclass(frozen=True)
class BatchSizing:
    """How much an incremental snapshot reads in a micro-batch.

    Attributes:
        target_s: how long a micro-batch should take.
        least: number of rows of the smallest chunk.
        most: maximum number of rows in a micro-batch.
        tasks: number of chunks that are read in parallel.
    """

    target_s: float
    least: int
    most: int
    tasks: int


class BatchRows:
    """Adapts the number of rows to how long micro-batches take.

    Attributes:
        number: number of rows for the next micro-batch.
    """

    def __init__(self, sizing: BatchSizing) -> None:
        # A micro-batch that takes too long delays the log more than a shorter one saves.
        self._target_s = MARGIN * sizing.target_s
        self._longest_s = LONGEST * self._target_s
        self._least = sizing.least
        self._most = max(sizing.most, sizing.least)
        self.number = min(FIRST_CHUNKS * sizing.least * sizing.tasks, self._most)
        self._began_at: float | None = None
        self._planned = 0
        self._own_s = 0.0
        self._tasks_s: float | None = None

    def begin(self, ahead: int = 0, ahead_s: float = 0.0) -> None:
        """Adapt ``number`` to the time that the last micro-batch took, before any work is done for the next one.

        Args:
            ahead: number of rows of the next one that were read while the tasks of the last one ran.
            ahead_s: how long it took to read them, in seconds.
        """
        now = time.monotonic()
        if self._began_at is not None and self._planned > 0 and self._tasks_s is not None:
            took = max(now - self._began_at, LEAST_S)
            others_s = max(took - self._own_s - self._tasks_s, 0.0)
            # Half of the total, not as much as the rest took: that would make the rows and the wait for a trigger
            # alternate.
            allowed_s = max(self._target_s - others_s, min(took / 2, self._longest_s), LEAST_SHARE * self._target_s)
            wanted = allowed_s * self._planned / max(self._own_s + self._tasks_s, LEAST_S)
            if ahead:
                # Reading ahead runs in parallel with everything else.
                allowed_s = max(self._target_s, min(others_s, self._longest_s))
                wanted = min(wanted, allowed_s * ahead / max(ahead_s, LEAST_S))
            # With a trigger of a minute there are few steps, so they may be larger.
            growth = min(GROWTH * max(others_s / self._target_s, 1.0), MOST_GROWTH)
            wanted = min(max(wanted, self.number / 2), growth * self.number)
            self.number = int(min(max(wanted, self._least), self._most))
        self._began_at, self._planned, self._own_s, self._tasks_s = now, 0, 0.0, None

    def planned(self, number: int, own_s: float = 0.0) -> None:
        """Record that the micro-batch has its rows; until then ``begin`` may be called again.

        Args:
            number: what ``number`` was when they were read, maybe before the last micro-batch ended.
            own_s: how long it took to find or read them while nothing else was done, in seconds.
        """
        self._planned, self._own_s = number, own_s

    def delivered(self, tasks_s: float | None) -> None:
        """Record how long the tasks of the micro-batch took, in seconds; None if that is unknown."""
        self._tasks_s = tasks_s

    def idle(self) -> None:
        """Record that there is nothing to read, so that the time until there is doesn't count."""
        self._began_at = None

    def halve(self) -> None:
        """Halve the number of rows, down to the smallest chunk."""
        self.number = max(self.number // 2, self._least)
