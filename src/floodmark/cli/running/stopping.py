"""Stops a query on SIGINT and SIGTERM: first after the current micro-batch, then at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_BUSY = "Processing new data"


class StoppedAtOnce(BaseException):
    """The second signal was received: exit without waiting for anything."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class StopRequest:
    """Remembers that a signal requested to stop."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def requested(self) -> bool:
        """Whether a signal was received."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for a signal; return whether one was received."""
        return self._event.wait(seconds)

    def install(self) -> None:
        """Install the signal handlers."""
        for number in SIGNALS:
            signal.signal(number, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - Python's interface
        if self.requested:
            raise StoppedAtOnce(number)
        self._event.set()


class BatchEnd:
    """Detects the end of the micro-batch that a query is running now."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._last = self._last_batch()

    def reached(self) -> bool:
        """Return whether the micro-batch has ended."""
        return self._query.status["message"] != _BUSY or self._last_batch() > self._last

    def _last_batch(self) -> int:
        last = self._query.lastProgress
        return -1 if last is None else int(last["batchId"])
