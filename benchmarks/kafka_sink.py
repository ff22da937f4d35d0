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

from benchmarks import engine, reference
from benchmarks.chain.connect import Connect
from benchmarks.common import LEG_TIMEOUT_S, Leg, Result, Scale, database, wait_until
from benchmarks.engine import START_TIMEOUT_S, Amount, QueryProcess, process_peaks, source_options
from benchmarks.mirror_chain import START_UP, TRANSACTION, update
from benchmarks.query import Spec
from benchmarks.workload import create_tables, fill, slot_active

PARTITIONS = 2
TABLE = "public.t"
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
    """Load the table with both, let updates wait in the log, and follow them with both."""
    result = Result("kafka_sink", scale.name, f"PostgreSQL {postgres}")
    rows = scale.snapshot_rows
    with ExitStack() as stack:
        server, connection = stack.enter_context(database(postgres))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        create_tables(connection, ["t"])
        fill(connection, "t", 1, rows)
        connection.execute("VACUUM ANALYZE t")
        broker = stack.enter_context(running_broker(scratch / "broker"))
        sampler = stack.enter_context(TreeSampler(broker.pid))
        specs = {}
        for number, (name, made) in enumerate(OURS.items()):
            prefix = f"floodmark_kafka_{number}"
            options = source_options(server, TABLE, prefix, scratch / f"state_{number}", "initial")
            sink = {"kafka.bootstrap.servers": broker.servers, **SETTINGS, **made}
            checkpoint = str(scratch / f"checkpoint_{number}")
            blocks = {} if "engine" in made else BLOCKS
            specs[name] = Spec(options | {"topic.prefix": prefix} | blocks, checkpoint, "kafka", json.dumps(sink))
            if made != MADE:
                broker.create(f"{prefix}.{TABLE}", PARTITIONS)
        loaded = Amount("rows/s", rows, rows)
        theirs = None
        if scale.debezium:
            connect = stack.enter_context(Connect(broker.servers, scratch / "connect"))
            theirs = _Connector(connect, broker, sampler, reference.debezium_options(server, TABLE, THEIRS))
            broker.create(theirs.topic, PARTITIONS)
            connect.start(theirs.options)
            leg = theirs.measure(rows, loaded, partial(_has_records, theirs))
            result.legs.append(_leg("first load", leg, loaded))
            connect.stop(theirs.name)
            wait_until(lambda: not slot_active(connection, THEIRS), 60, "Debezium rests")
        queries = [*specs.values(), *specs.values()]
        query = stack.enter_context(QueryProcess(queries, scratch / "query.log", environment=_environment()))
        for name, spec in specs.items():
            leg = _ours(query, name, sampler, loaded, lambda: engine.copies(connection))
            result.legs.append(_leg("first load", leg, loaded))
            _expect(broker, f"{spec.options['topic.prefix']}.{TABLE}", rows)
        updates = update(connection, rows, scale.mirror_updates)
        changed = Amount("changes/s", updates, updates)
        for name, spec in specs.items():
            slot = spec.options["slot.name"]
            leg = _ours(query, name, sampler, changed, partial(slot_active, connection, slot))
            result.legs.append(_leg("updates", leg, changed))
            _expect(broker, f"{spec.options['topic.prefix']}.{TABLE}", rows + updates)
        if theirs is not None:
            theirs.connect.resume(theirs.name)
            leg = theirs.measure(rows + updates, changed, lambda: slot_active(connection, THEIRS))
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
    """

    connect: Connect
    broker: Broker
    sampler: TreeSampler
    options: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.options["name"]

    @property
    def topic(self) -> str:
        return f"{self.options['topic.prefix']}.{TABLE}"

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
