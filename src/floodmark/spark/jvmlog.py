"""Forwards what Spark's processes write to standard error, without lines that only repeat an error."""

from __future__ import annotations

import os
import re
import select
import threading
from collections import deque
from collections.abc import Callable, Iterator

_RECORD = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d [A-Z]+ |Exception in thread ")
_TRACE = re.compile(r"\s|Caused by: |Suppressed: |\.\.\. \d+ more|SQLSTATE|===|Traceback|[\w.]*(Exception|Error)\b")
_LAUNCH_NOISE = (
    "WARNING: Using incubator modules",
    "Using Spark's default log4j profile",
    "Setting default log level to",
    "To adjust logging level use",
    "Setting Spark log level to",
)
_REPORTED_BY_THE_QUERY = ("floodmark.errors.", "terminated with error")
_KEPT_LINES = 200
_RECORD_LINES = 2
_QUIET_S = 0.3


class JvmLog:
    """Reads the standard error of the JVM and of the Python workers, whose lines the JVM passes on.

    A log record of the JVM is forwarded as its first two lines (the message and the exception), unless
    it repeats the error that the query ends with anyway. Lines of other programs are forwarded unchanged.

    Args:
        emit: receives each line; called in a thread.
        verbose: whether everything is forwarded, including stack traces.
    """

    def __init__(self, emit: Callable[[str], None], verbose: bool = False) -> None:
        self._emit = emit
        self._verbose = verbose
        self._started = False
        self._silent = False
        self._record: list[str] = []
        self._kept: deque[str] = deque(maxlen=_KEPT_LINES)
        self._reader, self._writer = os.pipe()
        self._thread = threading.Thread(target=self._pump, name="jvm-log", daemon=True)
        self._thread.start()

    @property
    def writer(self) -> int:
        """The file descriptor for the JVM to write to."""
        return self._writer

    def launched(self) -> None:
        """Record that Spark has started: what it wrote until now concerned its start, and is dropped."""
        self._started = True
        # With our copy closed, the pipe ends when the JVM and its workers do.
        os.close(self._writer)

    def failed(self) -> str:
        """Record that the JVM did not start; return the last lines that it wrote."""
        os.close(self._writer)
        self.wait(5)
        return self.recent()

    def recent(self) -> str:
        """Return the last lines received, including those that were not forwarded."""
        return "\n".join(self._kept)

    def wait(self, seconds: float) -> None:
        """Wait until every process that writes here has ended."""
        self._thread.join(seconds)

    def silence(self) -> None:
        """Drop everything from now on: Spark's threads log errors when they are stopped at work."""
        self._silent = True

    def _pump(self) -> None:
        for line in self._lines():
            if line is None:
                self._end_record()
            else:
                self._kept.append(line)
                self._take(line)
        self._end_record()
        os.close(self._reader)

    def _lines(self) -> Iterator[str | None]:
        """Yield the lines as they arrive, and None when a log record is open and nothing follows for a moment."""
        rest = b""
        while True:
            if not select.select([self._reader], [], [], _QUIET_S if self._record else None)[0]:
                yield None
                continue
            data = os.read(self._reader, 1 << 16)
            if not data:
                break
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                yield line.decode("utf-8", "replace").rstrip("\r")
        if rest:
            yield rest.decode("utf-8", "replace")

    def _take(self, line: str) -> None:
        if self._verbose:
            self._emit(line)
        elif self._silent:
            return
        elif _RECORD.match(line):
            self._end_record()
            self._record = [line] if self._started else []
        elif not line or _TRACE.match(line):
            self._record.append(line)
        else:
            self._end_record()
            if self._started and not line.startswith(_LAUNCH_NOISE):
                self._emit(line)

    def _end_record(self) -> None:
        record, self._record = self._record, []
        if self._silent or not record or not _RECORD.match(record[0]):
            return
        repeats = any(phrase in line for line in record for phrase in _REPORTED_BY_THE_QUERY)
        if not repeats:
            self._emit(" ".join(line.strip() for line in record[:_RECORD_LINES]))
