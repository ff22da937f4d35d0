"""Where a query ends that was asked to end by itself (``availableNow``)."""

from __future__ import annotations

import time

from floodmark.connectors.contract.source import LogSource


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

    def ask(self) -> None:
        """Let the query end where the log ends when the next micro-batch is planned."""
        self.wanted, self.target = True, None

    def fix(self) -> None:
        """Fix the end, if it is wanted and isn't fixed yet; the source must have been opened."""
        if self.wanted and self.target is None:
            self.target = self._log.end()

    def patience(self, seconds: float) -> float:
        """Return until when to wait, on the monotonic clock, for what another query would try again later.

        An empty micro-batch would end the query before it has delivered everything, so this one waits ``seconds``.
        """
        return time.monotonic() + (seconds if self.wanted else 0.0)
