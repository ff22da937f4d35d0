"""Postpones work that would keep the stream waiting."""

from __future__ import annotations

import time

from floodmark.errors import StatementTimeoutError
from floodmark.logger import get_logger

log = get_logger(__name__)

PAUSE_S = 10.0


class PutOff:
    """Work that took too long at the source and is postponed, since the stream waits for it.

    Args:
        pause_s: for how long, in seconds.
    """

    def __init__(self, pause_s: float = PAUSE_S) -> None:
        self._pause_s = pause_s
        self._until = 0.0

    def __bool__(self) -> bool:
        """Return whether it is still postponed."""
        return time.monotonic() < self._until

    def now(self, what: str, error: StatementTimeoutError) -> None:
        """Postpone it from now on.

        Args:
            what: its description, for the log.
            error: the timeout that it caused.
        """
        self._until = time.monotonic() + self._pause_s
        log.warning("put_off", what=what, error=str(error), again_in_s=self._pause_s, meanwhile="the stream goes on")
