"""Load a table into Kafka and follow its changes, beside Debezium in Kafka Connect's own runtime."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.conformance.debezium.usage import TreeSampler
from tests.support.kafka import Broker, running_broker, spark_jars
from tests.support.mysql import Flavor

from benchmarks import engine, reference
from benchmarks.chain.connect import Connect
from benchmarks.common import LEG_TIMEOUT_S, Leg, Result, Scale, wait_until
from benchmarks.engine import START_TIMEOUT_S, Amount, QueryProcess, process_peaks
from benchmarks.kafka_sources import KafkaSource, mysql_source, postgres_source
from benchmarks.mirror_chain import START_UP, TRANSACTION
from benchmarks.query import Spec

PARTITIONS = 2
THEIRS = "debezium_kafka"
MADE = {
    "topic.creation.default.partitions": str(PARTITIONS),
    "topic.creation.default.replication.factor": "1",
}
OURS: dict[str, dict[str, str]] = {
    "Floodmark": {},
    "Floodmark, makes topics": MADE,
    "Floodmark, uncompressed": {"kafka.compression.type": "none"},
    "Floodmark, engine=spark": {"engine": "spark"},
}
"""Our queries, with their sinks' options."""
BLOCKS = {"event.blocks": str(os.cpu_count())}
"""The source's option that a pipeline sets for Floodmark's own engine."""
SETTINGS = {"kafka.acks": "all"}
"""As Kafka Connect sets them; the rest is the default of each. That of the sink compresses, Debezium's doesn't."""
BROKER = "of Kafka"


def run(scale: Scale, postgres: int) -> Result:
    """Load a table of PostgreSQL with both, let updates wait in the log, and follow them with both."""
    with postgres_source(scale.snapshot_rows, postgres) as source:
        return _both("kafka_sink", scale, source)


def binlog(scale: Scale, flavor: Flavor) -> Result:
    """Do the same with MySQL or MariaDB."""
    with mysql_source(scale.snapshot_rows, flavor) as source:
        return _both(f"{flavor}_kafka_sink", scale, source)


def _both(name: str, scale: Scale, source: KafkaSource) -> Result:
    result = Result(name, scale.name, source.version)
    rows = scale.snapshot_rows
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(running_broker(scratch / "broker"))
        # Without its thread: the broker is one process, and only its CPU time is asked for.
        sampler = TreeSampler(broker.pid)
        specs = {}
        for number, (query_name, made) in enumerate(OURS.items()):
            prefix = f"floodmark_kafka_{number}"
            options = source.options(prefix, scratch / f"state_{number}")
            sink = {"kafka.bootstrap.servers": broker.servers, **SETTINGS, **made}
            checkpoint = str(scratch / f"checkpoint_{number}")
            blocks = {} if "engine" in made else BLOCKS
            own = options | {"topic.prefix": prefix} | blocks
            specs[query_name] = (prefix, Spec(own, checkpoint, "kafka", json.dumps(sink)))
            if made != MADE:
                broker.create(f"{prefix}.{source.table}", PARTITIONS)
        loaded = Amount("rows/s", rows, rows)
        theirs = None
        if scale.debezium:
            connect = stack.enter_context(Connect(broker.servers, scratch / "connect", classes=source.classes))
            given = source.debezium(THEIRS, scratch)
            theirs = _Connector(connect, broker, sampler, given, f"{given['topic.prefix']}.{source.table}")
            broker.create(theirs.topic, PARTITIONS)
            connect.start(theirs.options)
            leg = theirs.measure(rows, loaded, partial(_has_records, theirs))
            result.legs.append(_leg("first load", leg, loaded))
            connect.stop(theirs.name)
        queries = [spec for _, spec in specs.values()]
        query = stack.enter_context(
            QueryProcess([*queries, *queries], scratch / "query.log", environment=_environment())
        )
        for query_name, (prefix, _) in specs.items():
            leg = _ours(query, query_name, sampler, loaded, source.reads())
            result.legs.append(_leg("first load", leg, loaded))
            _expect(broker, f"{prefix}.{source.table}", rows)
        updates = source.update(rows, scale.mirror_updates)
        changed = Amount("changes/s", updates, updates)
        for query_name, (prefix, _) in specs.items():
            leg = _ours(query, query_name, sampler, changed, source.streams(prefix))
            result.legs.append(_leg("updates", leg, changed))
            _expect(broker, f"{prefix}.{source.table}", rows + updates)
        if theirs is not None:
            streams = source.streams(THEIRS)
            theirs.connect.resume(theirs.name)
            leg = theirs.measure(rows + updates, changed, streams)
            result.legs.append(_leg("updates", leg, changed))
    result.notes.append(f"{rows:,} rows, and {updates:,} updates of random ones, {TRANSACTION} in a transaction")
    result.notes.append(f"topics of {PARTITIONS} partitions, one broker; CPU s includes the broker's")
    for what, amount in (("first load", loaded), ("updates", changed)):
        for figure in (amount.unit, _per_cpu(amount)):
            result.add_ratio(figure, f"{figure}, x Debezium, {what}", f"{reference.DEBEZIUM}, {what}")
    return result


def _has_records(connector: _Connector) -> bool:
    return connector.broker.count(connector.topic) > 0


def _environment() -> dict[str, str]:
    """Return what lets the query's Spark have its connector, and sort a stream."""
    jars = ",".join(map(str, spark_jars()))
    checks = "spark.sql.streaming.unsupportedOperationCheck=false"
    return {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--jars {jars} --conf {checks} pyspark-shell"}


def _ours(query: QueryProcess, name: str, broker: TreeSampler, amount: Amount, begun: Callable[[], bool]) -> Leg:
    mark = broker.now()
    leg = engine.measure(query, name, begun, amount)
    return _with_broker(leg, broker.usage(since=mark).cpu_s)


@dataclass(frozen=True)
class _Connector:
    """Debezium's, in its worker.

    Attributes:
        connect: the worker.
        broker: where it writes.
        sampler: the broker's.
        options: the connector's.
        topic: the table's.
    """

    connect: Connect
    broker: Broker
    sampler: TreeSampler
    options: Mapping[str, str]
    topic: str

    @property
    def name(self) -> str:
        return self.options["name"]

    def measure(self, expected: int, amount: Amount, begun: Callable[[], bool]) -> Leg:
        """Measure it from when it reads until its events are in the topic.

        Args:
            expected: how many there are then.
            amount: what it must get through.
            begun: whether it reads; what comes before is start-up.
        """
        wait_until(begun, START_TIMEOUT_S, "Debezium reads", 0.02)
        begin, mark, of_broker = time.monotonic(), self.connect.sampler.now(), self.sampler.now()

        def produced() -> bool:
            self.connect.check(self.name)
            return self.broker.count(self.topic) >= expected

        seconds = wait_until(produced, LEG_TIMEOUT_S, "Debezium's events are in the topic", 0.2) - begin
        usage = self.connect.sampler.usage(since=mark)
        figures: dict[str, float | int | str | None] = {
            amount.unit: amount.counted / seconds,
            "seconds": seconds,
            "CPU s": usage.cpu_s,
            "peak MB": usage.peak_memory >> 20,
        }
        leg = Leg(reference.DEBEZIUM, figures, process_peaks(usage))
        return _with_broker(leg, self.sampler.usage(since=of_broker).cpu_s)


def _with_broker(leg: Leg, cpu_s: float) -> Leg:
    figures = {**leg.figures, "CPU s": float(leg.figures["CPU s"] or 0) + cpu_s, BROKER: cpu_s}
    return Leg(leg.name, figures, leg.processes, leg.batches)


def _leg(what: str, leg: Leg, amount: Amount) -> Leg:
    shown = {name: figure for name, figure in leg.figures.items() if name not in START_UP}
    shown[_per_cpu(amount)] = amount.counted / float(leg.figures["CPU s"] or 0)
    return Leg(f"{leg.name}, {what}", shown, leg.processes, leg.batches)


def _per_cpu(amount: Amount) -> str:
    return f"{amount.unit.removesuffix('/s')} per CPU s"


def _expect(broker: Broker, topic: str, records: int) -> None:
    found = broker.count(topic)
    if found != records:
        raise RuntimeError(f"{topic} has {found:,} records, {records:,} were expected")
