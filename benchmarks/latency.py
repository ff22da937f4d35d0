"""Measure the time from a transaction's commit to the sink's callback, at a steady rate."""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from tests.conformance.debezium.debezium import Debezium

from benchmarks import reference
from benchmarks.common import Connection, Leg, Result, Scale, database, wait_until
from benchmarks.engine import START_TIMEOUT_S, QueryProcess, process_peaks, source_options
from benchmarks.query import Spec
from benchmarks.workload import PUBLICATION, create_slot, drop_slot, slot_active
from floodmark.demo.embedded import EmbeddedPostgres

RATE = 500
"""Transactions a second."""

TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, note text, written_at timestamptz)"
INSERT = "INSERT INTO t VALUES (%s, repeat('x', 60), clock_timestamp())"

Session = Callable[[], AbstractContextManager[Callable[[int], object]]]


def postgres_session(server: EmbeddedPostgres, statement: LiteralString) -> Session:
    """Return what opens sessions of a PostgreSQL server; the statement's only parameter is the number."""

    @contextmanager
    def session() -> Iterator[Callable[[int], object]]:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            yield lambda number: connection.execute(statement, [number], prepare=True)

    return session


class Writer:
    """Commits single-row transactions at a steady rate from a thread.

    Args:
        session: opens a session, which commits the transaction that it is called with the number of.
        first: the first transaction's number.
    """

    def __init__(self, session: Session, first: int = 1) -> None:
        self._session = session
        self._first = first
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.count = 0
        self.late_s = 0.0

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stopping.set()
        self._thread.join()

    def run_until(self, moment: float) -> None:
        """Let the writer go on until a time of the epoch."""
        self._stopping.wait(max(0.0, moment - time.time()))

    def _write(self) -> None:
        with self._session() as commit:
            start = time.monotonic()
            while not self._stopping.is_set():
                commit(self._first + self.count)
                self.count += 1
                ahead = start + self.count / RATE - time.monotonic()
                self.late_s = max(self.late_s, -ahead)
                if ahead > 0:
                    time.sleep(ahead)


def run(scale: Scale, postgres: int) -> Result:
    """Measure Floodmark with the default trigger, and Debezium with its defaults."""
    result = Result("latency", scale.name, f"PostgreSQL {postgres}")
    result.notes.append(f"{RATE} transactions/s for {scale.latency_s} s after {scale.latency_warm_up_s} s of warm-up")
    with database(postgres, synchronous_commit="on") as (server, connection):
        connection.execute(TABLE)
        connection.execute(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE t")
        if scale.debezium:
            result.legs.append(_debezium(server, connection, scale))
        result.legs.append(_floodmark(server, connection, scale))
    return result


def _floodmark(server: EmbeddedPostgres, connection: Connection, scale: Scale) -> Leg:
    with tempfile.TemporaryDirectory() as directory, new_slot(connection, "floodmark_latency") as slot:
        scratch = Path(directory)
        events = scratch / "events.jsonl"
        options = source_options(server, "public.t", slot, scratch / "state")
        spec = Spec(options, str(scratch / "checkpoint"), "latency", str(events), available_now=False)
        with QueryProcess([spec], scratch / "query.log") as query, _inserts(server, connection) as writer:
            query.start_next()

            def delivers() -> bool:
                query.check()
                return events.exists() and events.stat().st_size > 0

            wait_until(delivers, START_TIMEOUT_S, "the query delivers its first batch")
            begin = time.time() + scale.latency_warm_up_s
            end = begin + scale.latency_s
            writer.run_until(begin)
            mark = query.sampler.now()
            writer.run_until(end)
            usage = query.sampler.usage(since=mark)
            wait_until(lambda: _last_commit(events) > end, 60, "the query is through", 0.2)
            query.end_input()
            query.wait("finished", 60)
        measured = [line for line in read_lines(events) if begin <= line["committed"] / 1e6 <= end]
    figures = quantiles((line["received"] - line["committed"]) / 1000 for line in measured)
    drift = max(abs(line["committed"] - _micros(line["written"])) / 1000 for line in measured)
    batches = len({line["batch"] for line in measured})
    figures |= {
        "batches/s": batches / scale.latency_s,
        "CPU share": usage.cpu_s / usage.wall_s,
        "peak MB": usage.peak_memory >> 20,
        "writer's largest lag ms": writer.late_s * 1000,
        "row's clock to commit, largest ms": drift,
    }
    return Leg("Floodmark, foreachBatch", figures, process_peaks(usage))


def _debezium(server: EmbeddedPostgres, connection: Connection, scale: Scale) -> Leg:
    with tempfile.TemporaryDirectory() as directory, new_slot(connection, "debezium_latency") as slot:
        events = Path(directory) / "events.jsonl"
        options = reference.debezium_options(server, "public.t", slot) | {"snapshot.mode": "no_data"}
        with Debezium(options, events, timestamps=True) as debezium, _inserts(server, connection) as writer:
            debezium.wait_records(1, START_TIMEOUT_S)
            begin = time.time() + scale.latency_warm_up_s
            end = begin + scale.latency_s
            writer.run_until(begin)
            mark = debezium.sampler.now()
            writer.run_until(end)
            usage = debezium.sampler.usage(since=mark)
            written = writer.count
            debezium.wait_records(written, 60)
            records = [
                (json.loads(record.value)["source"]["ts_us"], record.received_ms)
                for record in debezium.records()
                if record.value is not None and record.received_ms is not None
            ]
    delays = (received - committed / 1000 for committed, received in records if begin <= committed / 1e6 <= end)
    figures = quantiles(delays) | {
        "CPU share": usage.cpu_s / usage.wall_s,
        "peak MB": usage.peak_memory >> 20,
        "writer's largest lag ms": writer.late_s * 1000,
    }
    return Leg(reference.DEBEZIUM, figures)


def _inserts(server: EmbeddedPostgres, connection: Connection) -> Writer:
    row = connection.execute("SELECT coalesce(max(id), 0) FROM t").fetchone()
    assert row is not None
    return Writer(postgres_session(server, INSERT), int(row[0]) + 1)


@contextmanager
def new_slot(connection: Connection, name: str) -> Iterator[str]:
    """Create a slot, and drop it at the end."""
    create_slot(connection, name)
    try:
        yield name
    finally:
        wait_until(lambda: not slot_active(connection, name), 60, "the slot is free")
        drop_slot(connection, name)


def quantiles(delays_ms: Iterable[float]) -> dict[str, float | int | str | None]:
    """Return how many delays there are, and some of their quantiles."""
    delays = sorted(delays_ms)
    cuts = statistics.quantiles(delays, n=100, method="inclusive")
    return {
        "events": len(delays),
        "p50 ms": cuts[49],
        "p90 ms": cuts[89],
        "p99 ms": cuts[98],
        "max ms": delays[-1],
    }


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON lines that a query has written in full so far."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def _last_commit(path: Path) -> float:
    return float(max(line["committed"] for line in read_lines(path))) / 1e6


def _micros(text: str) -> int:
    return round(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1e6)
