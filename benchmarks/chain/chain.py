"""The chain as a whole: it loads a table and follows its changes, and is measured meanwhile."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.conformance.debezium.usage import TreeSampler
from tests.support import iceberg_spark
from tests.support.delta_spark import delta_environment, delta_jars
from tests.support.kafka import Broker, running_broker, spark_jars

from benchmarks.chain.connect import Connect
from benchmarks.chain.merging import MergeSpec
from benchmarks.common import LEG_TIMEOUT_S, Leg, wait_until
from benchmarks.engine import START_TIMEOUT_S, QueryProcess, durations, process_peaks
from floodmark.spark.sinks.kafka import kafka_package

CHAIN = "Debezium, Kafka, MERGE"
PARTITIONS = 2
IN_KAFKA = "s to Kafka"
OF_OTHERS = ("CPU s of Debezium", "of Kafka")


class Chain:
    """The processes of the chain, of which each part waits for its turn.

    Args:
        broker: the broker.
        connect: the worker.
        query: Spark.
        sampler: the broker's.
        options: the connector's.
        topic: where its events go.
        folders: folders of the query, each with the one to which it is copied before it follows changes, for a query
            with small micro-batches.
    """

    def __init__(
        self,
        broker: Broker,
        connect: Connect,
        query: QueryProcess,
        sampler: TreeSampler,
        options: Mapping[str, str],
        topic: str,
        folders: Mapping[Path, Path],
    ) -> None:
        self._broker = broker
        self._connect = connect
        self._query = query
        self._options = options
        self._name = options["name"]
        self._topic = topic
        self._folders = folders
        self._samplers = [sampler, connect.sampler, query.sampler]

    def load(self, rows: int) -> Leg:
        """Take Debezium's snapshot, merge it, and let the connector rest.

        Args:
            rows: how many rows the table has.
        """
        self._connect.start(self._options)
        leg = self._measured("rows/s", rows, lambda: self._broker.count(self._topic) > 0)
        self._connect.stop(self._name)
        for one, copy in self._folders.items():
            shutil.copytree(one, copy)
        return leg

    def follow(self, changes: int, streaming: Callable[[], bool]) -> Leg:
        """Let the connector go on, and merge what it delivers.

        Args:
            changes: how many wait in the log.
            streaming: whether the server sees that the connector reads; what comes before is start-up.
        """
        self._connect.resume(self._name)
        return self._measured("changes/s", changes, streaming)

    def follow_in_parts(self, changes: int, followed: Leg) -> Leg:
        """Merge what is in the topic in small micro-batches.

        Args:
            changes: how many they are.
            followed: what ``follow`` measured, which says what it took to get them there.
        """
        begin, mark = time.monotonic(), self._samplers[-1].now()
        self._query.start_next()
        progress = self._query.wait("finished", LEG_TIMEOUT_S)["progress"]
        merging = time.monotonic() - begin
        usage = self._samplers[-1].usage(since=mark)
        _expect(progress, changes)
        into_kafka = {name: float(followed.figures[name] or 0) for name in (IN_KAFKA, *OF_OTHERS)}
        seconds = into_kafka[IN_KAFKA] + merging
        cpu_s = sum(into_kafka[name] for name in OF_OTHERS) + usage.cpu_s
        figures = {
            "changes/s": changes / seconds,
            "seconds": seconds,
            "CPU s": cpu_s,
            "s to Delta": merging,
            "of Spark": usage.cpu_s,
            "batches": len(progress),
        }
        return Leg(CHAIN, {**figures, **into_kafka}, process_peaks(usage), durations(progress))

    def _measured(self, unit: str, amount: int, begun: Callable[[], bool]) -> Leg:
        before = self._broker.count(self._topic)
        wait_until(begun, START_TIMEOUT_S, "Debezium reads", 0.02)
        begin, marks = time.monotonic(), [sampler.now() for sampler in self._samplers]

        def produced() -> bool:
            self._connect.check(self._name)
            return self._broker.count(self._topic) >= before + amount

        in_kafka = wait_until(produced, LEG_TIMEOUT_S, "Debezium's events are in the topic", 0.5) - begin
        self._query.start_next()
        progress = self._query.wait("finished", LEG_TIMEOUT_S)["progress"]
        seconds = time.monotonic() - begin
        usages = [sampler.usage(since=mark) for sampler, mark in zip(self._samplers, marks, strict=True)]
        _expect(progress, amount)
        broker, connect, spark = (usage.cpu_s for usage in usages)
        figures = {
            unit: amount / seconds,
            "seconds": seconds,
            "CPU s": broker + connect + spark,
            "peak MB": sum(usage.peak_memory for usage in usages) >> 20,
            IN_KAFKA: in_kafka,
            "s to Delta": seconds - in_kafka,
            OF_OTHERS[0]: connect,
            OF_OTHERS[1]: broker,
            "of Spark": spark,
        }
        return Leg(CHAIN, dict(figures), process_peaks(usages[2]), durations(progress))


def _expect(progress: Sequence[Mapping[str, Any]], records: int) -> None:
    seen = sum(report["numInputRows"] for report in progress)
    if seen != records:
        raise RuntimeError(f"{seen:,} records were merged, {records:,} were expected")


@contextmanager
def delta_chain(
    options: Mapping[str, str], table: str, target: Path, parts: Path, limit: int, scratch: Path
) -> Iterator[Chain]:
    """Start the broker, Kafka Connect and Spark, which merges into Delta.

    Args:
        options: the connector's, with its ``name`` and ``topic.prefix``.
        table: the source's table with its schema.
        target: the Delta table's folder.
        parts: the folder of the one that small micro-batches are merged into.
        limit: how many records such a micro-batch has.
        scratch: a folder for everything else.
    """
    conf = {"spark.jars": ",".join(map(str, [*delta_jars(), *spark_jars()]))}
    checkpoint, copied = scratch / "checkpoint", scratch / "copied"

    def specs(servers: str, topic: str) -> list[MergeSpec]:
        spec = MergeSpec(conf, servers, topic, f"delta.`{target}`", str(checkpoint))
        return [spec, spec, spec, replace(spec, table=f"delta.`{parts}`", checkpoint=str(copied), limit=limit)]

    folders = {target: parts, checkpoint: copied}
    with _running(options, table, specs, delta_environment(), folders, scratch) as chain:
        yield chain


@contextmanager
def iceberg_chain(
    options: Mapping[str, str], table: str, target: str, conf: Mapping[str, str], scratch: Path
) -> Iterator[Chain]:
    """Start the broker, Kafka Connect and Spark, which merges into Iceberg.

    Args:
        options: the connector's, with its ``name`` and ``topic.prefix``.
        table: the source's table with its schema.
        target: the Iceberg table's name.
        conf: Spark's properties, with the catalogue.
        scratch: a folder for everything else.
    """
    packages = {**conf, "spark.jars.packages": kafka_package(iceberg_spark.SPARK)}

    def specs(servers: str, topic: str) -> list[MergeSpec]:
        spec = MergeSpec(packages, servers, topic, target, str(scratch / "checkpoint"), format="iceberg")
        return [spec, spec, spec]

    environment = iceberg_spark.iceberg_environment()
    with _running(options, table, specs, environment, {}, scratch) as chain:
        yield chain


@contextmanager
def _running(
    options: Mapping[str, str],
    table: str,
    specs: Callable[[str, str], list[MergeSpec]],
    environment: Mapping[str, str],
    folders: Mapping[Path, Path],
    scratch: Path,
) -> Iterator[Chain]:
    topic = f"{options['topic.prefix']}.{table}"
    with running_broker(scratch / "broker") as broker:
        broker.create(topic, PARTITIONS)
        queries, log = specs(broker.servers, topic), scratch / "spark.log"
        with (
            TreeSampler(broker.pid) as sampler,
            Connect(broker.servers, scratch / "connect") as connect,
            QueryProcess(queries, log, "benchmarks.chain.merging", environment) as query,
        ):
            # Of an empty topic, so that what is measured has no start of Spark in it.
            query.start_next()
            query.wait("finished", START_TIMEOUT_S)
            yield Chain(broker, connect, query, sampler, options, topic, folders)
