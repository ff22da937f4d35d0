"""Derives the state of a running query from Spark's progress reports."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from floodmark.cli.status.progress_from_offsets import phase_of
from floodmark.cli.status.tables import TableProgress, table_progress

RATE_WINDOW_S = 5.0
FIRST = "first micro-batch"
"""The phase while rows are read and Spark hasn't reported anything yet."""
LETS_THE_LOG_WAIT = ("initial snapshot", "blocking snapshot")


@dataclass
class QueryProgress:
    """The state of a query after its newest micro-batch, and its totals.

    Attributes:
        events: number of events in micro-batches that have ended.
        running: how many rows the running micro-batch has read so far.
        ended: whether nothing will follow (``snapshot.mode=initial_only``), though the query goes on.
    """

    batch: int = -1
    batches: int = 0
    events: int = 0
    running: int = 0
    phase: str = "starting"
    position: str = ""
    lag_bytes: int | None = None
    lag_seconds: float | None = None
    tables: tuple[TableProgress, ...] = ()
    ended: bool = False
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def update(self, report: Mapping[str, Any], now: float | None = None) -> None:
        """Apply one of Spark's progress reports, a JSON object."""
        moment = time.monotonic() if now is None else now
        source = (report.get("sources") or [{}])[0]
        rows = int(report.get("numInputRows") or 0)
        if report["batchId"] != self.batch and rows:
            self.batches += 1
        self.batch = report["batchId"]
        self.events += rows
        # Some of the rows have been counted already, while they were read.
        self._recent.append((moment, max(rows - self.running, 0)))
        self.running = 0
        self._take_end(_as_object(source.get("endOffset")))
        self._take_latest(_as_object(source.get("latestOffset")))

    def update_running(self, rows: int, now: float | None = None) -> None:
        """Apply the number of rows that the running micro-batch has read; fewer than before mean another one."""
        moment = time.monotonic() if now is None else now
        if not self._recent or rows > self.running:
            self._recent.append((moment, max(rows - self.running, 0) if self._recent else 0))
        self.running = rows
        if rows and self.batch < 0:
            self.phase = FIRST

    @property
    def seen(self) -> int:
        """Events that have been delivered or are being read."""
        return self.events + self.running

    @property
    def rows_left(self) -> int | None:
        """Roughly how many rows a snapshot still has to read before the log goes on; None if unknown or no snapshot."""
        left = [table for table in self.tables if not table.finished]
        if self.phase not in LETS_THE_LOG_WAIT or not left:
            return None
        known = [round(table.estimate * (1 - (table.share or 0.0))) for table in left if table.estimate is not None]
        return sum(known) if len(known) == len(left) else None

    def rate(self, now: float | None = None) -> float:
        """Return the events per second of the last few seconds."""
        moment = time.monotonic() if now is None else now
        while len(self._recent) > 1 and self._recent[0][0] < moment - RATE_WINDOW_S:
            self._recent.popleft()
        if len(self._recent) < 2:
            return 0.0
        # The first report only marks where the time starts: its rows came before.
        rows = sum(count for _, count in list(self._recent)[1:])
        return rows / max(moment - self._recent[0][0], 0.001)

    def _take_end(self, end: Mapping[str, Any]) -> None:
        self.position = str(end.get("log") or self.position)
        if self.position:
            self.phase = phase_of(end)
        self.tables = table_progress(end)
        self.ended = bool(end.get("ended"))

    def _take_latest(self, latest: Mapping[str, Any]) -> None:
        lag_bytes, lag_seconds = latest.get("lag_bytes"), latest.get("lag_seconds")
        self.lag_bytes = None if lag_bytes is None else int(lag_bytes)
        self.lag_seconds = None if lag_seconds is None else float(lag_seconds)


def _as_object(offset: Any) -> Mapping[str, Any]:
    """Return an offset as an object; Spark passes it as JSON text or as parsed JSON."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return {}
    return offset if isinstance(offset, Mapping) else {}
