"""Derives the state of a running query from Spark's progress reports."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from floodmark.cli.status.progress_from_offsets import phase_of
from floodmark.cli.status.tables import TableProgress, table_progress
from floodmark.errors import FloodmarkError
from floodmark.json_data import Json, JsonObject
from floodmark.spark.sinks.mirrors import OBSERVED, ROWS

RATE_WINDOW_S = 5.0
FIRST = "first micro-batch"
"""The phase while rows are read and Spark hasn't reported anything yet."""
LETS_THE_LOG_WAIT = ("initial snapshot", "blocking snapshot")


@dataclass(frozen=True)
class SparkReport:
    """What is used of one of Spark's progress reports.

    Attributes:
        batch: the micro-batch's number.
        rows: how many rows it had.
        timestamp: when it began; later ones sort behind earlier ones.
        end: the offset that it ended with; empty if it isn't known.
        lag_bytes: how much log there was beyond that.
        lag_seconds: how old the oldest change in it was.
    """

    batch: int
    rows: int
    timestamp: str
    end: Mapping[str, Json]
    lag_bytes: int | None
    lag_seconds: float | None

    @classmethod
    def from_json(cls, content: Json) -> Self:
        """Return the report that Spark wrote.

        Raises:
            FloodmarkError: the content is something else.
        """
        report = JsonObject(content, "Spark's progress report", _unknown_report)
        # A query has one source, and reports none before it has begun.
        sources = report.members("sources") if report.value("sources") else []
        source = sources[0] if sources else JsonObject({}, "A source", _unknown_report)
        latest = JsonObject(_as_object(source.value("latestOffset")), "The latest offset", _unknown_report)
        return cls(
            report.integer("batchId"),
            _rows(report),
            report.optional_text("timestamp") or "",
            _as_object(source.value("endOffset")),
            None if latest.value("lag_bytes") is None else latest.integer("lag_bytes"),
            None if latest.value("lag_seconds") is None else latest.number("lag_seconds"),
        )


def _rows(report: JsonObject) -> int:
    """Return how many rows a micro-batch had; of a mirror those of the tables, if there were any."""
    metrics = JsonObject(_as_object(report.value("observedMetrics")), "Spark's metrics", _unknown_report)
    observed = JsonObject(_as_object(metrics.value(OBSERVED)), "A mirror's metrics", _unknown_report)
    return report.integer("numInputRows", 0) if observed.value(ROWS) is None else observed.integer(ROWS)


def _unknown_report(problem: str) -> FloodmarkError:
    return FloodmarkError(f"{problem}.", "`floodmark check` shows which versions of Spark are supported.")


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

    def update(self, report: SparkReport, now: float | None = None) -> None:
        """Apply one of Spark's progress reports."""
        moment = time.monotonic() if now is None else now
        if report.batch != self.batch and report.rows:
            self.batches += 1
        self.batch = report.batch
        self.events += report.rows
        # Some of the rows have been counted already, while they were read.
        self._recent.append((moment, max(report.rows - self.running, 0)))
        self.running = 0
        self._take_end(report.end)
        self.lag_bytes, self.lag_seconds = report.lag_bytes, report.lag_seconds

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

    def _take_end(self, end: Mapping[str, Json]) -> None:
        self.position = str(end.get("log") or self.position)
        if self.position:
            self.phase = phase_of(end)
        self.tables = table_progress(end)
        self.ended = bool(end.get("ended"))


def _as_object(offset: Json) -> Mapping[str, Json]:
    """Return an offset as an object; Spark passes it as JSON text or as parsed JSON."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return {}
    return offset if isinstance(offset, Mapping) else {}
