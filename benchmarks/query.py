"""The measured process: one Spark session and streaming queries, as a user would write them.

Its arguments are `Spec`s as JSON. They run one after the other, each when a line of standard input says so. It
reports on standard output, one JSON object a line. A query that is not ``available_now`` runs until standard
input ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.support.available_now import ENDING, start_to_end

from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.spark.pipelines.query import LOCAL_CHECKPOINTS, LOCAL_SOCKETS
from floodmark.spark.sinks.kafka_writer import kafka_writer
from floodmark.spark.sinks.mirrors import jdbc, mirror

SPARK_CONF = {
    "spark.ui.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    "spark.log.level": "ERROR",
    **LOCAL_CHECKPOINTS,
    **LOCAL_SOCKETS,
}
WARM_UP_BATCHES = 3


@dataclass(frozen=True)
class Spec:
    """A query to run.

    Args:
        options: the source's options.
        checkpoint: the query's checkpoint location.
        sink: ``noop``, ``parquet``, ``mirror``, ``jdbc``, ``kafka``, ``latency`` or ``mixed``.
        output: the folder of a parquet sink or of mirrors, or the file for the other sinks' lines, or the options of
            the sinks ``jdbc`` and ``kafka`` as JSON.
        available_now: end when what is there now has been delivered.
        trigger: the interval of a processing-time trigger; empty: micro-batches follow one another.
        commit_s: how long the sink's commit takes, whatever the rows, in seconds (``mixed`` only).
        mirror: options of a mirror.
        warm_up: options of another query of the same source that runs first, until it has delivered its first
            micro-batches, so that what is measured does not depend on how much of it is warm-up.
    """

    options: dict[str, str]
    checkpoint: str
    sink: str = "noop"
    output: str = ""
    available_now: bool = True
    trigger: str = ""
    commit_s: float = 0.0
    warm_up: dict[str, str] | None = None
    mirror: dict[str, str] | None = None

    def dumps(self) -> str:
        """Return the spec as the process's argument."""
        return json.dumps(asdict(self))


def main() -> None:
    """Run the queries of the command line's specs."""
    protocol = open_protocol()
    spark = (
        SparkSession.builder.master("local[2]").appName("floodmark-benchmark").config(map={**SPARK_CONF}).getOrCreate()
    )
    session_at = time.time()
    for argument in sys.argv[1:]:
        sys.stdin.readline()
        spec = Spec(**json.loads(argument))
        if spec.warm_up is not None:
            _warm_up(spark, spec.warm_up, f"{spec.checkpoint}_of_warm_up")
        began_at = time.time()
        writer = _writer(spark, spec)
        say(protocol, event="start", session_at=session_at, load_s=time.time() - began_at)
        query = start_to_end(writer) if spec.available_now else writer.start()
        if not spec.available_now:
            sys.stdin.read()
            query.stop()
        query.awaitTermination()
        say(protocol, event="finished", progress=progress_of(query))
    spark.stop()


def _writer(spark: SparkSession, spec: Spec) -> DataStreamWriter:
    ending = ENDING if spec.available_now else {}
    frame = spark.readStream.format("floodmark").options(**spec.options, **ending).load()
    writer = _sink(frame, spec).option("checkpointLocation", spec.checkpoint)
    return writer.trigger(processingTime=spec.trigger) if spec.trigger else writer


def _warm_up(spark: SparkSession, options: dict[str, str], checkpoint: str) -> None:
    frame = spark.readStream.format("floodmark").options(**options).load()
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    while sum(report["numInputRows"] > 0 for report in progress_of(query)) < WARM_UP_BATCHES:
        if query.awaitTermination(1):
            raise RuntimeError("the query that warms up has ended")
    query.stop()


def _sink(frame: DataFrame, spec: Spec) -> DataStreamWriter:
    if spec.sink == "parquet":
        return frame.writeStream.format("parquet").option("path", spec.output)
    if spec.sink == "mirror":
        return mirror(frame, spec.output, spec.options, spec.mirror)
    if spec.sink == "jdbc":
        return jdbc(frame, spec.options, json.loads(spec.output))
    if spec.sink == "kafka":
        return kafka_writer(
            frame, KafkaOptions.parse(json.loads(spec.output)), frame.sparkSession.sparkContext.defaultParallelism
        )
    if spec.sink == "latency":
        return frame.writeStream.foreachBatch(_LatencySink(Path(spec.output)))
    if spec.sink == "mixed":
        return frame.writeStream.foreachBatch(_MixedSink(Path(spec.output), spec.commit_s))
    return frame.writeStream.format(spec.sink)


class _LatencySink:
    """Writes, for each event, its commit time and the time at which the callback held it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, frame: DataFrame, batch: int) -> None:
        events = frame.where("value IS NOT NULL").selectExpr(
            "unix_micros(source_ts) AS committed", "get_json_object(value, '$.after.written_at') AS written"
        )
        rows = events.toArrow()
        received = time.time_ns() // 1000
        with self._path.open("a", encoding="utf-8") as out:
            for committed, written in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                line = {"batch": batch, "written": written, "committed": committed, "received": received}
                out.write(json.dumps(line) + "\n")


class _MixedSink:
    """Writes, for each micro-batch, how many read events it had, and the commit times of its other events."""

    def __init__(self, path: Path, commit_s: float) -> None:
        self._path = path
        self._commit_s = commit_s

    def __call__(self, frame: DataFrame, batch: int) -> None:
        committed = "CASE WHEN op <> 'r' THEN unix_micros(source_ts) END"
        rows = frame.selectExpr("op", f"{committed} AS committed").toArrow()
        time.sleep(self._commit_s)
        line = {
            "batch": batch,
            "received": time.time_ns() // 1000,
            "reads": pc.sum(pc.equal(rows.column("op"), "r")).as_py() or 0,
            "committed": rows.column("committed").drop_null().to_pylist(),
        }
        with self._path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")


def open_protocol() -> IO[str]:
    """Return what reports are written to; anything else that is printed goes to standard error."""
    protocol = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return protocol


def progress_of(query: StreamingQuery) -> list[dict[str, Any]]:
    """Return a query's progress reports."""
    return [json.loads(progress.json) for progress in query.recentProgress]


def say(protocol: IO[str], **message: Any) -> None:
    """Write a report."""
    protocol.write(json.dumps({"at": time.time(), **message}) + "\n")
    protocol.flush()


if __name__ == "__main__":
    main()
