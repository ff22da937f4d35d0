"""Retries after the connection to the source is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

from floodmark.config.common import CommonOptions
from floodmark.errors import CaptureError, ConnectError, LoginError
from floodmark.logger import get_logger

log = get_logger(__name__)

BUSY_POLL_S = 0.5

T = TypeVar("T")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and when to reconnect.

    Attributes:
        max_retries: failed attempts in a row before giving up; -1: no limit.
        initial_s: wait before the first attempt; it doubles each time.
        max_s: longest wait.
        busy_retries: attempts while another connection reads the log.
        busy_wait_s: wait between those.
    """

    max_retries: int
    initial_s: float
    max_s: float
    busy_retries: int = 0
    busy_wait_s: float = BUSY_POLL_S

    @classmethod
    def from_options(cls, options: CommonOptions, busy_s: float = 0.0) -> Self:
        """Return the policy that the options define.

        Args:
            options: the source's options.
            busy_s: how long to wait in total while another connection reads the log.
        """
        fixed = options.retriable_restart_wait_ms
        return cls(
            options.errors_max_retries,
            (fixed or options.errors_retry_delay_initial_ms) / 1000,
            (fixed or options.errors_retry_delay_max_ms) / 1000,
            round(busy_s / BUSY_POLL_S),
        )

    def delay_s(self, failures: int) -> float:
        """Return how long to wait after this number of failures in a row."""
        return min(self.initial_s * float(2 ** min(failures - 1, 20)), self.max_s)

    def gave_up(self, failures: int) -> bool:
        """Return whether this number of failures in a row exceeds the limit."""
        return 0 <= self.max_retries < failures

    def run(self, action: Callable[[], T], doing: str, is_final: Callable[[ConnectError], bool] = lambda _: False) -> T:
        """Run an action and return its result, repeating it while the source can't be reached.

        Args:
            action: can be repeated from its beginning.
            doing: what the action does, for the log and the error.
            is_final: returns whether a retry can't help against an error; such errors are raised at once.

        Raises:
            CaptureError: the source can't be reached, and the retries are used up.
        """
        failures = 0
        while True:
            try:
                return action()
            except LoginError:
                raise
            except ConnectError as exc:
                if is_final(exc):
                    raise
                failures += 1
                if self.gave_up(failures):
                    raise CaptureError(f"Gave up {doing} after {self.max_retries} retries. Last error: {exc}") from None
                delay = self.delay_s(failures)
                log.warning("source_is_away", doing=doing, error=str(exc), retry=failures, delay_s=delay)
                time.sleep(delay)
