"""Putting off what would keep the stream waiting."""

from __future__ import annotations

import time

from floodmark.errors import StatementTimeoutError
from floodmark.logger import get_logger

log = get_logger(__name__)

PAUSE_S = 10.0


class PutOff:
    """Something that took too long at the source and is left alone for a while, since the stream waits for it.

    Args:
        pause_s: how long.
    """

    def __init__(self, pause_s: float = PAUSE_S) -> None:
        self._pause_s = pause_s
        self._until = 0.0

    def __bool__(self) -> bool:
        """Return whether it is still to be left alone."""
        return time.monotonic() < self._until

    def now(self, what: str, error: StatementTimeoutError) -> None:
        """Leave it alone from now on.

        Args:
            what: for the log.
            error: what happened.
        """
        self._until = time.monotonic() + self._pause_s
        log.warning("put_off", what=what, error=str(error), again_in_s=self._pause_s, meanwhile="the stream goes on")
