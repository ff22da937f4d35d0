"""``floodmark run``: runs the queries of a pipeline file until they end or are stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from rich.console import Console

from floodmark.cli.running import failures
from floodmark.cli.running.following import RunningQuery, follow
from floodmark.cli.running.stopping import StopRequest
from floodmark.cli.running.views import LiveView, LogView, View
from floodmark.errors import ConfigError, FloodmarkError
from floodmark.spark.failures import explain
from floodmark.spark.pipelines.checkpoints import refuse_places
from floodmark.spark.pipelines.file import PipelineFile
from floodmark.spark.pipelines.model import Pipeline
from floodmark.spark.pipelines.query import POOL, prepared, spark_properties, started
from floodmark.spark.session import spark_session


def run(file: PipelineFile, verbose: bool = False) -> None:
    """Run a pipeline.

    Raises:
        ConfigError: one of its directories contains another, or a transform is wrong.
        FloodmarkError: Spark does not start, or a query fails.
    """
    refuse_places(file)
    stop = StopRequest()
    stop.install()
    with _view(file) as view:
        view.say("starting", master=file.pipelines[0].master, **_sinks(file))
        with spark_session(spark_properties(*file.pipelines), view.line, verbose) as spark:
            report = _Reports(file, view)
            queries = _started(spark, file, report, verbose)
            follow(queries, view, stop, file.errors, report)
            failure = queries[0].failure
            if failure is not None and not file.several:
                raise explain(failure) from (failure if verbose else None)
        for one in queries:
            if one.failure is None:
                _say_end(view, one, "stopped" if one.stopped or stop.requested else "finished")
    _raise_failures(queries, verbose)


class _Reports:
    """Shows and remembers each of several sinks that fails."""

    def __init__(self, file: PipelineFile, view: View) -> None:
        self._pipelines = {one.label: one for one in file.pipelines if one.label}
        self._view = view

    def __call__(self, one: RunningQuery) -> None:
        if one.failure is not None and one.label:
            error = explain(one.failure)
            self._view.fail(one.label, error)
            failures.remember(self._pipelines[one.label], error)


def _started(
    spark: SparkSession, file: PipelineFile, report: Callable[[RunningQuery], None], verbose: bool
) -> list[RunningQuery]:
    """Start the queries, after everything has been checked that can be without running them.

    Raises:
        ConfigError: the file is wrong.
        FloodmarkError: a query can't be started; one of several only if ``errors`` is ``stop``.
    """
    writers = [_prepared(spark, file, pipeline, verbose) for pipeline in file.pipelines]
    queries: list[RunningQuery] = []
    for pipeline, writer in zip(file.pipelines, writers, strict=True):
        try:
            if isinstance(writer, FloodmarkError):
                raise writer
            if file.several:
                failures.forget(pipeline)
                # Each sink has its share of the cores.
                spark.sparkContext.setLocalProperty(POOL, pipeline.label)
            queries.append(RunningQuery(started(writer, pipeline), pipeline.label))
        except (PySparkException, Py4JError, FloodmarkError) as exc:
            if not file.several:
                raise explain(exc) from (exc if verbose else None)
            queries.append(RunningQuery(None, pipeline.label, exc))
            report(queries[-1])
            if file.errors == "stop":
                break
    return queries


def _prepared(
    spark: SparkSession, file: PipelineFile, pipeline: Pipeline, verbose: bool
) -> DataStreamWriter | FloodmarkError:
    """Return a sink's query, or what keeps it from being started if the others go on without it."""
    try:
        return prepared(spark, pipeline)
    except (PySparkException, Py4JError, FloodmarkError) as exc:
        error = explain(exc)
        # A mistake in the file is mended before anything runs.
        if file.errors == "stop" or isinstance(error, ConfigError):
            raise named_error(error, pipeline.label) from (exc if verbose else None)
        return error


def _say_end(view: View, one: RunningQuery, word: str) -> None:
    sink = {"sink": one.label} if one.label else {}
    progress = one.progress
    view.say(word, **sink, events=progress.events, batches=progress.batches, position=progress.position)


def _raise_failures(queries: Sequence[RunningQuery], verbose: bool) -> None:
    """Raise the error of the first sink that has failed, with those of the others."""
    failed = [(one.label, one.failure) for one in queries if one.failure is not None]
    if not failed:
        return
    (label, first), *others = failed
    error = named_error(explain(first), label)
    if others:
        also = " ".join(str(named_error(explain(exc), name)) for name, exc in others)
        error = type(error)(error.what, f"{error.cure} {also}".strip())
    raise error from (first if verbose else None)


def named_error(error: FloodmarkError, label: str) -> FloodmarkError:
    """Return an error that says which sink it is about, if there are several."""
    if not label or f"'sinks.{label}." in error.what:
        return error
    return type(error)(f"Sink '{label}': {error.what}", error.cure)


def _sinks(file: PipelineFile) -> dict[str, object]:
    if not file.several:
        return {"sink": file.only.sink.type}
    return {"sinks": ", ".join(f"{one.label} ({one.sink.type})" for one in file.pipelines), "errors": file.errors}


def _view(file: PipelineFile) -> View:
    """Return a live display if standard error is a terminal to which nothing else writes.

    Spark's console sink writes to the terminal directly, which would garble the display.
    """
    console = Console(stderr=True)
    if console.is_terminal and all(one.sink.type != "console" for one in file.pipelines):
        return LiveView(file.title, console)
    return LogView(file.title)
