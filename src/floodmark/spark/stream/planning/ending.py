"""Where a query ends that was asked to end by itself (``availableNow``)."""

from __future__ import annotations

import time

from floodmark.connectors.contract.source import LogSource
from floodmark.logger import get_logger

log = get_logger(__name__)

LINGERS_S = 60.0
"""How long a query may go on after its end before that is taken for a mistake."""


class Ending:
    """The end of a query.

    Args:
        log: the source's log.

    Attributes:
        wanted: whether the query is to end by itself.
        target: the position at which it ends; None: it doesn't, or its end hasn't been fixed yet.
    """

    def __init__(self, log: LogSource) -> None:
        self._log = log
        self.wanted = False
        self.target: str | None = None
        self._over_at: float | None = None

    def ask(self) -> None:
        """Let the query end where the log ends when the next micro-batch is planned."""
        self.wanted, self.target, self._over_at = True, None, None

    def withdraw(self) -> None:
        """Let the query go on: only one micro-batch was to be planned as if it ended."""
        self.wanted, self.target, self._over_at = False, None, None

    def fix(self) -> None:
        """Fix the end, if it is wanted and isn't fixed yet; the source must have been opened."""
        if self.wanted and self.target is None:
            self.target = self._log.end()

    def patience(self, seconds: float) -> float:
        """Return until when to wait, on the monotonic clock, for what another query would try again later.

        An empty micro-batch would end the query before it has delivered everything, so this one waits ``seconds``.
        """
        return time.monotonic() + (seconds if self.wanted else 0.0)

    def reached(self) -> None:
        """Note that nothing is left to deliver; warn once if the query goes on for long nevertheless.

        Spark ends a query with ``availableNow``. One with ``trigger.available.now`` has to be stopped: as long as it
        runs, it delivers nothing and holds the source's log.
        """
        if not self.wanted:
            return
        now = time.monotonic()
        if self._over_at is None:
            self._over_at = now
        elif now - self._over_at > LINGERS_S:
            self._over_at = float("inf")
            log.warning(
                "query_goes_on_after_its_end",
                position=self.target,
                next="stop the query, or leave out trigger.available.now: with it, later changes are not delivered",
            )
