"""Builds and starts the query that a pipeline file describes."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from functools import partial
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from floodmark.config.columns import in_small_letters
from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.spark.delta.runtime import ARTIFACT, EXTENSIONS, SETTINGS, delta_package
from floodmark.spark.iceberg import runtime as iceberg
from floodmark.spark.ordering import order_by_key
from floodmark.spark.pipelines.model import DEFAULT_MASTER, Pipeline, Trigger
from floodmark.spark.pipelines.transform import require_kafka_columns, require_typed_columns, transformed
from floodmark.spark.sinks import late_writers
from floodmark.spark.sinks.kafka import ARTIFACT as KAFKA_ARTIFACT
from floodmark.spark.sinks.kafka import kafka_package
from floodmark.spark.sinks.kafka_writer import kafka_writer
from floodmark.spark.sinks.mirrors import jdbc, mirror
from floodmark.spark.versions import CHECKPOINT_PACKAGE, GIVES_START

LOCAL_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"org.apache.spark.sql.execution.streaming.{CHECKPOINT_PACKAGE}FileSystemBasedCheckpointFileManager"
    )
}
"""Without Hadoop's native library, Spark's default runs about twenty shell commands per micro-batch."""
LOCAL_SOCKETS = {"spark.python.unix.domain.socket.enabled": "true"}
"""With TCP a task often waits 40 ms for an acknowledgment that the other side delays."""
POOL = "spark.scheduler.pool"
"""The property of a thread that names the pool in which Spark runs the queries that it starts."""
CONSOLE_COLUMNS = ("position", "op", "topic", "key", "value")


def spark_properties(*pipelines: Pipeline) -> dict[str, str]:
    """Return the Spark properties of the queries of a file: those of the file override Floodmark's defaults."""
    pipeline = pipelines[0]
    properties = {
        "spark.master": DEFAULT_MASTER,
        "spark.app.name": pipeline.title,
        "spark.sql.session.timeZone": "UTC",
        # Spark refuses to sort a stream, since it cannot know that each micro-batch is sorted by itself. With the
        # sort in the query, not in foreachBatch, the sinks keep their own guarantees: exactly once, with files.
        "spark.sql.streaming.unsupportedOperationCheck": "false",
        # How often an idle query reports its lag.
        "spark.sql.streaming.noDataProgressEventInterval": "2000",
        **(LOCAL_SOCKETS if os.name == "posix" else {}),
        **(LOCAL_CHECKPOINTS if _is_local(pipeline.checkpoint) else {}),
        # Otherwise the tasks of a query's snapshot would go before those of all others.
        **({"spark.scheduler.mode": "FAIR"} if pipeline.label else {}),
        **pipeline.spark,
    }
    sinks = [one.sink for one in pipelines]
    if any(sink.type == "kafka" for sink in sinks):
        properties = {**late_writers.PROPERTIES, **properties}
    if any(sink.needs_connector for sink in sinks):
        properties["spark.jars.packages"] = _with_package(properties, KAFKA_ARTIFACT, kafka_package())
    if any(sink.needs_delta for sink in sinks) and EXTENSIONS not in pipeline.spark:
        properties = {**SETTINGS, **properties}
        properties["spark.jars.packages"] = _with_package(properties, ARTIFACT, delta_package())
    if any(sink.needs_iceberg for sink in sinks):
        properties["spark.jars.packages"] = _with_package(properties, iceberg.ARTIFACT, iceberg.iceberg_package())
    return {name: value for name, value in properties.items() if value}


def _is_local(path: str) -> bool:
    return urlsplit(path).scheme in ("", "file")


def start_query(spark: SparkSession, pipeline: Pipeline) -> StreamingQuery:
    """Start the query of a pipeline.

    Within a micro-batch, all events of a key are written by one task in the order of their positions.

    Raises:
        ConfigError: an option or the transform is wrong, or a package is missing.
    """
    return started(prepared(spark, pipeline), pipeline)


def prepared(spark: SparkSession, pipeline: Pipeline) -> DataStreamWriter:
    """Return the query of a pipeline for ``started``, with everything checked that can be without running it."""
    writer = _sink_writer(spark, pipeline, _events(spark, pipeline))
    return writer.queryName(pipeline.query_name).option("checkpointLocation", pipeline.checkpoint)


def prove_transform(spark: SparkSession, pipeline: Pipeline) -> None:
    """Check the transform of a pipeline that has one, without its sink.

    Raises:
        ConfigError: it is wrong.
    """
    _transformed(spark, pipeline, _events(spark, pipeline))


def _events(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    source = in_small_letters(pipeline.source)
    if _ends_itself(pipeline):
        source = {**source, "trigger.available.now": "true"}
    if pipeline.sink.takes_blocks:
        source = {**source, "event.blocks": str(spark.sparkContext.defaultParallelism)}
    return spark.readStream.format("floodmark").options(**source).load()


def started(writer: DataStreamWriter, pipeline: Pipeline) -> StreamingQuery:
    """Start a query that ``prepared`` has returned."""
    if _ends_itself(pipeline):
        return stopping_at_end(writer.start())
    return triggered(writer, pipeline.trigger).start()


def _ends_itself(pipeline: Pipeline) -> bool:
    """Return whether a source ends its query, with a version of Spark that doesn't."""
    return pipeline.trigger.available_now and not GIVES_START


def stopping_at_end(query: StreamingQuery) -> StreamingQuery:
    """Stop a query that has ``trigger.available.now`` when it has delivered everything, and return it at once."""

    def stop() -> None:
        # Whoever waits for the query learns why it failed.
        with contextlib.suppress(PySparkException, Py4JError):
            query.processAllAvailable()
            query.stop()

    threading.Thread(target=stop, daemon=True).start()
    return query


def triggered(writer: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    """Return a query's writer with a trigger; without one, a micro-batch follows the other."""
    if trigger.processing_time is not None:
        return writer.trigger(processingTime=trigger.processing_time)
    if trigger.available_now:
        return writer.trigger(availableNow=True)
    return writer.trigger(once=True) if trigger.once else writer


def _sink_writer(spark: SparkSession, pipeline: Pipeline, events: DataFrame) -> DataStreamWriter:
    sink = pipeline.sink
    if sink.type == "mirror" and sink.path is not None:
        return mirror(events, sink.path, pipeline.source, sink.mirror_options)
    options = dict(sink.options)
    if sink.type == "jdbc":
        return jdbc(events, pipeline.source, options)
    parallelism = spark.sparkContext.defaultParallelism
    if sink.type == "kafka":
        transform = None if sink.transform is None else partial(_transformed, spark, pipeline)
        return kafka_writer(events, KafkaOptions.parse(options), parallelism, transform)
    is_events = pipeline.options.format == "events"
    if is_events and sink.type != "noop":
        events = order_by_key(events, parallelism)
    if sink.transform is not None:
        events = _transformed(spark, pipeline, events)
    elif sink.type == "console" and is_events:
        events = events.select(*CONSOLE_COLUMNS)
    if sink.type == "console":
        options.setdefault("truncate", "false")
    elif sink.path is not None:
        options["path"] = sink.path
    return events.writeStream.format(sink.type).outputMode("append").options(**options)


def _transformed(spark: SparkSession, pipeline: Pipeline, events: DataFrame) -> DataFrame:
    """Return what a sink's transform makes of events; the sink takes its columns."""
    sink, key = pipeline.sink, f"{pipeline.sink_key}.transform"
    assert sink.transform is not None
    result = transformed(spark, events, sink.transform, key)
    if sink.type == "kafka":
        require_kafka_columns(result, "topic" in map(str.lower, sink.options), key)
    elif sink.type == "parquet":
        require_typed_columns(result, key)
    return result


def _with_package(properties: Mapping[str, str], artifact: str, wanted: str) -> str:
    """Return the packages, adding one unless a release of it is given.

    Args:
        artifact: its name.
        wanted: its coordinates, for the running version of Spark.
    """
    packages = properties.get("spark.jars.packages", "")
    if artifact in packages or artifact in properties.get("spark.jars", ""):
        return packages
    return f"{packages},{wanted}" if packages else wanted
