"""Follow a large table in another database, beside Debezium, Kafka and Debezium's JDBC sink connector."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psycopg
from tests.conformance.debezium.usage import TreeSampler
from tests.support.kafka import running_broker
from tests.support.maven import unpacked

from benchmarks import engine, reference
from benchmarks.chain.connect import Connect
from benchmarks.common import LEG_TIMEOUT_S, Connection, Leg, Result, Scale, database, wait_until
from benchmarks.engine import SINKS, START_TIMEOUT_S, Amount, QueryProcess, process_peaks, source_options
from benchmarks.equality import expect_same
from benchmarks.mirror_chain import TRANSACTION, leg_of, update
from benchmarks.query import Spec
from benchmarks.workload import create_tables, fill, slot_active
from floodmark.demo.embedded import EmbeddedPostgres

PARTITIONS = 2
TABLE = "public.t"
SLOT, SINK = "debezium_jdbc", "debezium_jdbc_sink"
OURS, THEIRS = "ours", "theirs"
"""The target databases."""
# The newest release; the connector of the source is the reference's.
PLUGIN = "io/debezium/debezium-connector-jdbc/3.6.0.Final/debezium-connector-jdbc-3.6.0.Final-plugin.tar.gz"
PLUGIN_DIGEST = "c23af8d416f0f801ffb0271b1a8fd9b5360ff8d66b0dd650e066bb56ecfddc05"
# The sink needs the records' schemas. Without a registry they are in each record.
CONVERTERS = {
    f"{part}.converter{name}": value
    for part in ("key", "value")
    for name, value in (("", "org.apache.kafka.connect.json.JsonConverter"), (".schemas.enable", "true"))
}
LAST = 50
"""Rows whose change is the end, in all partitions."""


def run(scale: Scale, postgres: int) -> Result:
    """Load the table with both, let updates wait in the log, and follow them with both."""
    result = Result("jdbc_chain", scale.name, f"PostgreSQL {postgres}")
    rows = scale.snapshot_rows
    with ExitStack() as stack:
        server, connection = stack.enter_context(database(postgres))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        create_tables(connection, ["t"])
        fill(connection, "t", 1, rows)
        connection.execute("VACUUM ANALYZE t")
        for name in (OURS, THEIRS):
            connection.execute(f"CREATE DATABASE {name}".encode())
        loaded = Amount("rows/s", rows, rows)
        theirs = stack.enter_context(_Theirs(server, scratch)) if scale.debezium else None
        if theirs is not None:
            theirs.start()
            result.legs.append(leg_of("first load", theirs.measure(loaded, theirs.has_records, rows), loaded))
            theirs.stop()
            wait_until(lambda: not slot_active(connection, SLOT), 60, "Debezium rests")
        options = source_options(server, TABLE, OURS, scratch / "state", "initial") | SINKS["jdbc"]
        spec = Spec(options, str(scratch / "checkpoint"), "jdbc", json.dumps(_sink_options(server, OURS)))
        query = stack.enter_context(QueryProcess([spec, spec], scratch / "query.log"))
        leg = engine.measure(query, "Floodmark, jdbc", lambda: engine.copies(connection), loaded)
        result.legs.append(leg_of("first load", leg, loaded))
        updates = update(connection, rows, scale.mirror_updates) + _end(connection)
        changed = Amount("changes/s", updates, updates)
        leg = engine.measure(query, "Floodmark, jdbc", lambda: slot_active(connection, OURS), changed)
        result.legs.append(leg_of("updates", leg, changed))
        expect_same(server, "t", OURS, "public_t")
        if theirs is not None:
            theirs.resume()
            leg = theirs.measure(changed, partial(slot_active, connection, SLOT), None)
            result.legs.append(leg_of("updates", leg, changed))
            expect_same(server, "t", THEIRS, "t")
    result.notes.append(f"{rows:,} rows, and {updates:,} updates of random ones, {TRANSACTION} in a transaction")
    result.notes.append("both targets are databases of the source's server; records are JSON with their schemas")
    for what, amount in (("first load", loaded), ("updates", changed)):
        for figure in (amount.unit, _per_cpu(amount)):
            result.add_ratio(figure, f"{figure}, x Debezium, {what}", f"{reference.DEBEZIUM}, {what}")
    return result


def _sink_options(server: EmbeddedPostgres, database: str) -> dict[str, str]:
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/{database}"
    return {"connection.url": url, "connection.username": server.user}


def _end(connection: Connection) -> int:
    connection.execute("UPDATE t SET note = 'the end' WHERE id <= %s", [LAST])
    return LAST


class _Theirs:
    """Kafka Connect's worker with both connectors, and a broker; use it as a context manager."""

    def __init__(self, server: EmbeddedPostgres, scratch: Path) -> None:
        self._server = server
        self._scratch = scratch
        self._options: Mapping[str, str] = {
            **reference.debezium_options(server, TABLE, SLOT),
            **CONVERTERS,
        }
        self._name = self._options["name"]
        self._topic = f"{self._options['topic.prefix']}.{TABLE}"

    def __enter__(self) -> _Theirs:
        self._stack = ExitStack()
        try:
            self._broker = self._stack.enter_context(running_broker(self._scratch / "broker"))
            self._broker.create(self._topic, PARTITIONS)
            plugin = unpacked(PLUGIN, PLUGIN_DIGEST, "connect")
            connect = Connect(self._broker.servers, self._scratch / "connect", plugin)
            self._connect = self._stack.enter_context(connect)
            sampler = self._stack.enter_context(TreeSampler(self._broker.pid))
            self._samplers = (self._connect.sampler, sampler)
            self._target = self._stack.enter_context(psycopg.connect(self._server.conninfo(THEIRS), autocommit=True))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def start(self) -> None:
        """Start both connectors."""
        sink = {
            "name": SINK,
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "tasks.max": str(PARTITIONS),
            "topics": self._topic,
            "insert.mode": "upsert",
            "delete.enabled": "true",
            "primary.key.mode": "record_key",
            "schema.evolution": "basic",
            "collection.name.format": "t",
            "use.reduction.buffer": "true",
            # More than the 500 that the consumer takes by itself.
            "batch.size": "5000",
            "consumer.override.max.poll.records": "5000",
            "connection.password": "",
            **_sink_options(self._server, THEIRS),
            **CONVERTERS,
        }
        self._connect.start(sink)
        self._connect.start(self._options)

    def stop(self) -> None:
        """Let the source's connector rest."""
        self._connect.stop(self._name)

    def resume(self) -> None:
        """Let it go on."""
        self._connect.resume(self._name)

    def has_records(self) -> bool:
        """Return whether the connector reads."""
        return self._broker.count(self._topic) > 0

    def measure(self, amount: Amount, begun: Callable[[], bool], rows: int | None) -> Leg:
        """Measure both from when the source's connector reads until the target has everything.

        Args:
            amount: what they must get through.
            begun: whether the connector reads; what comes before is start-up.
            rows: how many rows the target has in the end; None: those that are changed at last are its end.
        """
        wait_until(begun, START_TIMEOUT_S, "Debezium reads", 0.02)
        begin, marks = time.monotonic(), [one.now() for one in self._samplers]
        seconds = wait_until(lambda: self._is_done(rows), LEG_TIMEOUT_S, "the target has all", 0.2) - begin
        usages = [one.usage(since=mark) for one, mark in zip(self._samplers, marks, strict=True)]
        figures: dict[str, float | int | str | None] = {
            amount.unit: amount.counted / seconds,
            "seconds": seconds,
            "CPU s": sum(one.cpu_s for one in usages),
            "peak MB": sum(one.peak_memory for one in usages) >> 20,
            "of Kafka": usages[1].cpu_s,
        }
        return Leg(reference.DEBEZIUM, figures, process_peaks(usages[0]))

    def _is_done(self, rows: int | None) -> bool:
        for name in (self._name, SINK):
            self._connect.check(name)
        if rows is None:
            query, values = "SELECT count(*) FROM t WHERE id <= %s AND note = 'the end'", [LAST]
            wanted = LAST
        else:
            # It costs nothing to ask, but is told a second late.
            query, values = "SELECT coalesce(sum(n_tup_ins), 0) FROM pg_stat_user_tables WHERE relname = 't'", []
            wanted = rows
        row = self._target.execute(query.encode(), values).fetchone()
        assert row is not None
        return int(row[0]) >= wanted


def _per_cpu(amount: Amount) -> str:
    return f"{amount.unit.removesuffix('/s')} per CPU s"
