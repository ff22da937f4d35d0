"""See what thousands of tables cost: offsets, memory, a snapshot, and micro-batches that hold next to nothing."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from tests.support.mysql import MysqlServer

from benchmarks.common import Leg, Result, Scale, wait_until
from benchmarks.engine import SINKS, START_TIMEOUT_S, QueryProcess, process_peaks
from benchmarks.query import Spec
from floodmark.demo.embedded import EmbeddedPostgres

WORDS = ("orders", "customers", "invoices", "line_items", "payments", "products", "stock", "audits", "events", "roles")
ROWS = 10
CREATED_AT_ONCE = 200
STREAMED_S = 30.0
BUSY_TABLES = 5
WARM_UP_BATCHES = 10
SNAPSHOT_TIMEOUT_S = 3600.0
PROCESSES = {"planner": "python_streaming_source_runner", "driver": "SparkSubmit", "workers": "pyspark.daemon"}
Execute = Callable[[list[str]], None]


def run(scale: Scale, postgres: int) -> Result:
    """Take a snapshot of ever more tables and stream changes of some of them, from PostgreSQL and MySQL."""
    result = Result("tables", scale.name, f"PostgreSQL {postgres}, MySQL 9.7")
    result.notes.append(f"each table has {ROWS} rows; offsets in characters; memory as each process's peak")
    for count in scale.table_counts:
        for name, source in (("PostgreSQL", postgres_tables), ("MySQL", _mysql)):
            with source(count, postgres) as (options, execute), tempfile.TemporaryDirectory() as scratch:
                result.legs.append(measure(f"{name}, {count:,} tables", options, execute, Path(scratch)))
    return result


def names(count: int) -> list[str]:
    """Return the names of the tables of many tenants."""
    return [f"tenant_{number // len(WORDS):04}_{WORDS[number % len(WORDS)]}" for number in range(count)]


@contextmanager
def postgres_tables(count: int, version: int) -> Iterator[tuple[dict[str, str], Execute]]:
    """Yield the options of a source with so many tables, and what runs statements there."""
    settings = {"max_locks_per_transaction": "1024", "autovacuum": "off", "synchronous_commit": "off", "fsync": "off"}
    with (
        EmbeddedPostgres(version, settings) as server,
        psycopg.connect(server.conninfo(), autocommit=True) as connection,
    ):

        def execute(statements: list[str]) -> None:
            for statement in statements:
                connection.execute(statement)

        for first in range(0, count, CREATED_AT_ONCE):
            part = names(count)[first : first + CREATED_AT_ONCE]
            made = (
                f"CREATE TABLE {name} (id integer PRIMARY KEY, v integer, at timestamptz DEFAULT now());"
                f"INSERT INTO {name} SELECT generate_series(1, {ROWS}), 0"
                for name in part
            )
            execute([";".join(made)])
        yield {**server.options(), "slot.name": "tables", "table.include.list": r"public\.tenant_.*"}, execute


@contextmanager
def _mysql(count: int, _: int) -> Iterator[tuple[dict[str, str], Execute]]:
    settings = {"table_open_cache": "4000", "table_definition_cache": "12000"}
    with MysqlServer("mysql", **settings) as server, server.connect(autocommit=True) as connection:

        def execute(statements: list[str]) -> None:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)

        execute(["CREATE DATABASE shop", "USE shop"])
        rows = ", ".join(f"({number}, 0)" for number in range(1, ROWS + 1))
        for name in names(count):
            execute([f"CREATE TABLE {name} (id int PRIMARY KEY, v int)", f"INSERT INTO {name} VALUES {rows}"])
        yield {**server.options(), "database.include.list": "shop"}, execute


def measure(name: str, options: dict[str, str], execute: Execute, scratch: Path, sink: str = "noop") -> Leg:
    """Let a query take a snapshot, and then stream changes of some of the tables for a while."""
    given = {**options, **SINKS.get(sink, {}), "topic.prefix": "bench", "state.dir": str(scratch / "state")}
    spec = Spec(given, str(scratch / "checkpoint"), sink, str(scratch / "output"), available_now=False)
    with QueryProcess([spec], scratch / "query.log") as query:
        begun = query.start_next()["at"]
        offsets = _Offsets(scratch / "checkpoint")

        def streaming() -> bool:
            query.check()
            return offsets.streaming()

        wait_until(streaming, SNAPSHOT_TIMEOUT_S, "the snapshot ends", 0.2)
        read_s = time.time() - begun
        in_snapshot, batches_in_snapshot = offsets.largest(), offsets.count
        until = time.monotonic() + STREAMED_S
        while time.monotonic() < until:
            execute([f"UPDATE {table} SET v = v + 1" for table in names(BUSY_TABLES)])
            time.sleep(0.2)
        offsets.streaming()
        usage = query.sampler.usage()
        query.end_input()
        progress = query.wait("finished", START_TIMEOUT_S)["progress"]
    streamed = [
        report["durationMs"]
        for report in progress
        if report["numInputRows"] and report["batchId"] > batches_in_snapshot + WARM_UP_BATCHES
    ]
    planning = [durations.get("latestOffset", 0) for durations in streamed]
    peaks = process_peaks(usage)
    figures: dict[str, float | int | str | None] = {
        "snapshot s": read_s,
        "its batches": batches_in_snapshot,
        "largest offset": in_snapshot,
        "offset, streaming": offsets.last_size,
        "s a batch": statistics.median(durations["triggerExecution"] for durations in streamed) / 1000,
        "s planning": statistics.median(planning) / 1000,
        "longest": max(planning) / 1000,
        **{f"{shown} MB": _peak_mb(peaks, name) for shown, name in PROCESSES.items()},
    }
    return Leg(name, figures, peaks)


def _peak_mb(peaks: dict[str, int], name: str) -> int:
    return max(size for process, size in peaks.items() if name in process) >> 20


class _Offsets:
    """What the checkpoint's offset log holds; old files are removed while the query runs.

    Args:
        checkpoint: the query's checkpoint location.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._folder = checkpoint / "offsets"
        self._sizes: dict[int, int] = {}
        self.last_size = 0
        self.count = 0

    def streaming(self) -> bool:
        """Look at new files; return whether the newest is of no snapshot."""
        newest = ""
        for path in sorted(self._folder.glob("[0-9]*"), key=lambda path: int(path.name)):
            if int(path.name) not in self._sizes:
                text = path.read_text().splitlines()[-1]
                self._sizes[int(path.name)] = len(text)
                self.count = max(self.count, int(path.name))
                newest, self.last_size = text, len(text)
        return bool(newest) and json.loads(newest)["snapshot"] is None

    def largest(self) -> int:
        """Return the size of the largest so far."""
        return max(self._sizes.values())
