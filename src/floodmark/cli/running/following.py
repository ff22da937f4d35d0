"""Follows running queries until they end, fail, or may be stopped."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from floodmark.cli.running.progress import QueryProgress, SparkReport
from floodmark.cli.running.stopping import BatchEnd, StopRequest
from floodmark.cli.running.views import View
from floodmark.spark.pipelines.file import ErrorPolicy

POLL_S = 0.25
STOP_POLL_S = 0.02
RUNNING_AFTER_S = 1.0
"""How long a micro-batch must have run for its rows to be shown before it has ended."""
FAILED = "failed"
"""The phase of a query that has failed."""


class RunningQuery:
    """A query, and what is known of it.

    Args:
        query: the query; None if it could not be started.
        label: the sink's name among several; empty if there is only one.
        failure: why it could not be started.

    Attributes:
        failure: why it ended, unless it ended by itself or was stopped.
        ended: whether it is followed no more.
        stopped: whether it was stopped before it ended by itself.
    """

    def __init__(self, query: StreamingQuery | None, label: str = "", failure: Exception | None = None) -> None:
        self.label = label
        self.progress = QueryProgress()
        self.failure = failure
        self.ended = query is None
        self.stopped = False
        self._query = query
        self._batch: BatchEnd | None = None
        if query is not None:
            self._reader = ProgressReader(query)
            self._running = RunningRows(query, among_others=bool(label))
        if failure is not None:
            self.progress.phase = FAILED

    def update(self) -> None:
        """Read its progress, and notice its end."""
        assert self._query is not None, "a query that was not started has ended"
        active = self._query.isActive
        reports = self._reader.new()
        for report in reports:
            self.progress.update(report)
        if active:
            self.progress.update_running(self._running.read(ended=bool(reports)))
            return
        self.ended = True
        self.failure = self._query.exception()
        if self.failure is not None and self.label:
            self.progress.phase = FAILED

    def await_batch_end(self) -> None:
        """Remember the micro-batch that runs now, as the last one."""
        if self._batch is None and self._query is not None:
            self._batch = BatchEnd(self._query)

    def may_stop(self) -> bool:
        """Return whether nothing is to follow, or the last micro-batch has ended."""
        return self.progress.ended or (self._batch is not None and self._batch.reached())

    def stop(self) -> None:
        """Stop it now; what can't be stopped is stopped with Spark."""
        assert self._query is not None, "a query that was not started has ended"
        with contextlib.suppress(PySparkException, Py4JError):
            self._query.stop()


def follow(
    queries: Sequence[RunningQuery],
    view: View,
    stop: StopRequest,
    errors: ErrorPolicy = "stop",
    failed: Callable[[RunningQuery], None] = lambda _: None,
) -> None:
    """Show the progress of queries until they end by themselves or may be stopped.

    Args:
        queries: the queries; those that fail keep their ``failure``.
        view: where they are shown.
        stop: whether to stop them.
        errors: whether the others are stopped, too, when one fails.
        failed: called with each query that fails, when it does.
    """
    announced = False
    while True:
        for one in [one for one in queries if not one.ended]:
            _look(one, view, failed)
        one_failed = errors == "stop" and any(one.failure is not None for one in queries)
        stopping = one_failed or stop.requested
        running = [one for one in queries if not one.ended]
        if stopping and running and not announced:
            announced = True
            others = "stopping the other sinks after their current micro-batches"
            first = "stopping after the current micro-batch; a second signal stops at once"
            view.say(others if one_failed else first)
        for one in running:
            if stopping:
                one.await_batch_end()
            if one.may_stop():
                _look(one, view, failed)
                one.stopped = stopping
                _stop(one, queries)
        if all(one.ended for one in queries):
            return
        if stopping:
            time.sleep(STOP_POLL_S)
        else:
            stop.wait(POLL_S)


def _look(one: RunningQuery, view: View, failed: Callable[[RunningQuery], None]) -> None:
    one.update()
    view.show(one.progress, one.label)
    if one.failure is not None:
        failed(one)


def _stop(one: RunningQuery, queries: Sequence[RunningQuery]) -> None:
    """Stop a query while others run; the last one is stopped with Spark, whose log is silent then."""
    if not one.ended and any(not other.ended for other in queries if other is not one):
        one.stop()
    one.ended = True


class ProgressReader:
    """Returns each progress report of a query once."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._newest = ""

    def new(self) -> list[SparkReport]:
        """Return the reports since the last call."""
        # PySpark's recentProgress fetches every field of the last hundred reports in a call of its own:
        # a second's work. The JVM's reports give their JSON in one call each.
        recent = self._query._jsq.recentProgress()
        new: list[SparkReport] = []
        for index in range(len(recent) - 1, -1, -1):
            report = SparkReport.from_json(json.loads(recent[index].json()))
            if report.timestamp <= self._newest:
                break
            new.append(report)
        if new:
            self._newest = new[0].timestamp
        return new[::-1]


class RunningRows:
    """Counts the rows that the micro-batch of a query has read so far, from Spark's own statistics of its tasks.

    Spark reports a micro-batch when it has ended, and the first one of a snapshot can take minutes.

    Args:
        query: the query.
        among_others: whether other queries run in the same application, whose tasks don't count.
    """

    def __init__(self, query: StreamingQuery, among_others: bool = False) -> None:
        self._query = query
        self._run = str(query.runId) if among_others else ""
        self._begun = time.monotonic()
        self._rows: dict[int, int] = {}

    def read(self, ended: bool) -> int:
        """Return the number of rows; 0 while the micro-batch has run for less than ``RUNNING_AFTER_S``.

        Args:
            ended: whether a micro-batch has ended since the last call.
        """
        now = time.monotonic()
        if ended:
            self._begun = now
            self._rows.clear()
        if now - self._begun < RUNNING_AFTER_S:
            return 0
        try:
            store = self._query._jsq.sparkSession().sparkContext().statusStore()
            stages = store.activeStages()
            for index in range(stages.size()):
                stage = stages.apply(index)
                # Spark describes a stage by its query's name, id, run and micro-batch.
                if self._run and self._run not in str(stage.description()):
                    continue
                self._rows[stage.stageId()] = max(stage.inputRecords(), self._rows.get(stage.stageId(), 0))
        except (Py4JError, TypeError, AttributeError):
            # An interface that Spark does not promise: without it, rows are shown when they are reported.
            return 0
        return sum(self._rows.values())
