"""``floodmark run``: runs the query of a pipeline file until it ends or is stopped."""

from __future__ import annotations

import json
import time

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from floodmark.cli.progress import QueryProgress, SparkReport
from floodmark.cli.stopping import BatchEnd, StopRequest
from floodmark.cli.views import LiveView, LogView, View
from floodmark.spark.failures import explain
from floodmark.spark.pipeline import spark_properties, start_query
from floodmark.spark.pipeline_file import Pipeline
from floodmark.spark.places import refuse_shared_places
from floodmark.spark.session import spark_session

POLL_S = 0.25
STOP_POLL_S = 0.02
RUNNING_AFTER_S = 1.0
"""How long a micro-batch must have run for its rows to be shown before it has ended."""


def run(pipeline: Pipeline, verbose: bool = False) -> None:
    """Run a pipeline.

    Raises:
        ConfigError: one of its directories contains another.
        FloodmarkError: Spark does not start, or the query fails.
    """
    refuse_shared_places(pipeline.options.state_dir, pipeline.checkpoint, pipeline.sink.path)
    stop = StopRequest()
    stop.install()
    with _view(pipeline) as view:
        view.say("starting", master=pipeline.master, sink=pipeline.sink.type)
        progress = QueryProgress()
        with spark_session(spark_properties(pipeline), view.line, verbose) as spark:
            try:
                query = start_query(spark, pipeline)
                follow(query, view, progress, stop)
            except PySparkException as exc:
                raise explain(exc) from (exc if verbose else None)
        word = "stopped" if stop.requested else "finished"
        view.say(word, events=progress.events, batches=progress.batches, position=progress.position)


def follow(query: StreamingQuery, view: View, progress: QueryProgress, stop: StopRequest) -> None:
    """Show a query's progress until it ends by itself or may be stopped, as ``stop`` requests.

    Raises:
        PySparkException: the query failed.
    """
    reader, running = ProgressReader(query), RunningRows(query)
    batch: BatchEnd | None = None
    while query.isActive:
        reports = reader.new()
        for report in reports:
            progress.update(report)
        progress.update_running(running.read(ended=bool(reports)))
        view.show(progress)
        if progress.ended:
            break
        if not stop.wait(POLL_S):
            continue
        if batch is None:
            batch = BatchEnd(query)
            view.say("stopping after the current micro-batch; a second signal stops at once")
        if batch.reached():
            break
        time.sleep(STOP_POLL_S)
    failure = query.exception()
    if failure is not None:
        raise failure
    for report in reader.new():
        progress.update(report)
    view.show(progress)


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
    """

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
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
                self._rows[stage.stageId()] = max(stage.inputRecords(), self._rows.get(stage.stageId(), 0))
        except (Py4JError, TypeError, AttributeError):
            # An interface that Spark does not promise: without it, rows are shown when they are reported.
            return 0
        return sum(self._rows.values())


def _view(pipeline: Pipeline) -> View:
    """Return a live display if standard error is a terminal to which nothing else writes.

    Spark's console sink writes to the terminal directly, which would garble the display.
    """
    console = Console(stderr=True)
    if console.is_terminal and pipeline.sink.type != "console":
        return LiveView(pipeline.title, console)
    return LogView(pipeline.title)
