"""Record what Debezium answers to signals: its notifications, and the rows of incremental snapshots.

``python -m tests.conformance.record_signals``
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conformance.debezium.debezium import Debezium, Record, postgres_options, schemas
from tests.conformance.golden import GOLDENS, PREFIX
from tests.conformance.recorders.postgres import TIMEOUT_S, catch_up, wait_for_slot

NOTIFICATIONS = "notifications"
BIG = f"{PREFIX}.public.big"
IN_BIG = 'current_collection_in_progress":"public.big'
WINDOW = '"type":"snapshot-window-'

SETUP = (
    "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))",
    "INSERT INTO signals VALUES ('before', 'log', '{\"message\": \"before the start\"}')",
    "CREATE TABLE a (id integer PRIMARY KEY, note text)",
    "INSERT INTO a SELECT n, 'a' || n FROM generate_series(1, 7) n",
    "CREATE TABLE b (code text, id bigint, PRIMARY KEY (code, id))",
    "INSERT INTO b VALUES ('x', 1), ('x', 2), ('ä,', 3)",
    "CREATE TABLE nokey (id integer)",
    "INSERT INTO nokey VALUES (1), (2)",
    "CREATE TABLE nothing (id integer PRIMARY KEY)",
    "CREATE TABLE keys (n numeric(6,2), t timestamptz, s timestamp, d date, u uuid, f float8, "
    "PRIMARY KEY (n, t, s, d, u, f))",
    "INSERT INTO keys VALUES (1.50, '2024-02-29 13:14:15.5+02', '2024-02-29 13:14:15', '2024-02-29', "
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 1e7)",
    "CREATE TABLE big (id integer PRIMARY KEY)",
    "INSERT INTO big SELECT n FROM generate_series(1, 3000) n",
)


def main() -> None:
    """Record the goldens."""
    with EmbeddedPostgres(18, {"timezone": "UTC"}) as server:
        for name, record, options in (
            ("signals", _every_signal, {}),
            ("signals_schemas", _one_table, {**schemas(True), "table.include.list": "public.b"}),
            ("signals_no_data", _nothing, {"snapshot.mode": "no_data"}),
        ):
            with _run(server, name, options) as run:
                record(run)
                run.save(name)
                print(f"{name}: {len(run.lines)} records", flush=True)


class Run:
    """A connector that streams, and the records it has delivered, step by step."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]], debezium: Debezium) -> None:
        self.lines: list[str] = []
        self._connection = connection
        self._debezium = debezium
        self._seen = 0

    def execute(self, statement: str) -> None:
        """Run a statement in a transaction of its own."""
        self._connection.execute(statement.encode())

    def signal(self, name: str, kind: str, **data: Any) -> None:
        """Write a signal into the table."""
        text = json.dumps({field.replace("_", "-"): value for field, value in data.items()})
        self._connection.execute("INSERT INTO signals VALUES (%s, %s, %s)", [name, kind, text])

    def wait(self, kind: str, name: str | None = None) -> None:
        """Wait until this step has a notification of a type, of a signal if one is named."""

        def arrived() -> bool:
            values = [json.loads(one.value or "{}") for one in self._new() if one.topic == NOTIFICATIONS]
            found = [(value.get("payload", value)["type"], value.get("payload", value)["id"]) for value in values]
            return any(one_kind == kind and name in (None, one_name) for one_kind, one_name in found)

        _wait(arrived, f"{kind} {name}")

    def end_step(self, step: str) -> None:
        """Keep what was delivered since the last step, after everything that is committed so far."""
        catch_up(self._connection, self._debezium, step)
        new = self._new()
        self._seen += len(new)
        new = _without_repetition([one for one in new if one.topic not in (f"{PREFIX}.message", BIG)])
        self.lines += [
            json.dumps({"step": step, "topic": one.topic, "key": one.key, "value": one.value}, ensure_ascii=False)
            for one in new
        ]

    def save(self, name: str) -> None:
        """Write the golden file."""
        (GOLDENS / f"{name}.jsonl").write_text("\n".join(self.lines) + "\n", encoding="utf-8")

    def _new(self) -> list[Record]:
        return self._debezium.records()[self._seen :]


def _without_repetition(records: list[Record]) -> list[Record]:
    """Keep one report of the progress of the large table, and the windows of the small ones only."""
    first, kept = True, []
    for one in records:
        large = f'"{IN_BIG}"' in (one.value or "")
        if (large and not first) or (WINDOW in (one.value or "") and not first):
            continue
        first = first and not large
        kept.append(one)
    return kept


def _every_signal(run: Run) -> None:
    run.end_step("initial")
    run.execute("INSERT INTO a VALUES (8, 'streamed')")
    run.signal("log", "log", message="at {}")
    run.end_step("streamed")
    for step, tables in {
        "two tables": ["public.a", "public\\.b"],
        "empty": ["public.nothing"],
        "keyless": ["public.nokey"],
        "unknown": ["public.unknown"],
        "keys": ["public.keys"],
        "mixed": ["public.nokey", "public.nothing", "public.b", "public.a"],
    }.items():
        run.signal(step, "execute-snapshot", data_collections=tables)
        run.wait("COMPLETED", step)
        run.end_step(step)
    condition = {"data-collection": "public.a", "filter": "id > 5"}
    run.signal("filtered", "execute-snapshot", data_collections=["public.a"], additional_conditions=[condition])
    run.wait("COMPLETED", "filtered")
    run.execute("UPDATE a SET note = 'after' WHERE id = 1")
    run.end_step("filtered")
    run.signal("blocking", "execute-snapshot", type="blocking", data_collections=["public.a", "public.b"])
    run.wait("COMPLETED")
    run.end_step("blocking")
    for step, kind in {"nothing to stop": "stop-snapshot", "nothing to pause": "pause-snapshot"}.items():
        run.signal(step, kind)
        run.end_step(step)
    run.signal("paused", "execute-snapshot", data_collections=["public.big", "public.a", "public.b"])
    run.wait("IN_PROGRESS", "paused")
    run.signal("pause", "pause-snapshot")
    run.wait("PAUSED")
    run.end_step("pause")
    run.signal("added", "execute-snapshot", data_collections=["public.nothing"])
    run.end_step("added while paused")
    run.signal("resume", "resume-snapshot")
    run.wait("RESUMED")
    run.end_step("resume")
    run.signal("stop-some", "stop-snapshot", type="incremental", data_collections=["public.b", "public.nokey"])
    run.wait("ABORTED")
    run.end_step("stop some")
    run.signal("stop-current", "stop-snapshot", type="incremental", data_collections=["public.big"])
    run.wait("ABORTED")
    run.wait("COMPLETED")
    run.end_step("stop current")
    run.signal("again", "execute-snapshot", data_collections=["public.big", "public.a"])
    run.wait("IN_PROGRESS", "again")
    run.signal("stop-all", "stop-snapshot", type="incremental")
    run.wait("ABORTED")
    run.end_step("stop all")


def _one_table(run: Run) -> None:
    run.end_step("initial")
    run.signal("one", "execute-snapshot", data_collections=["public.b"])
    run.wait("COMPLETED", "one")
    run.end_step("one table")


def _nothing(run: Run) -> None:
    run.end_step("initial")


@contextmanager
def _run(server: EmbeddedPostgres, name: str, options: dict[str, str]) -> Iterator[Run]:
    """Start a connector on a database of its own."""
    with psycopg.connect(server.conninfo(), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    with psycopg.connect(server.conninfo(name), autocommit=True) as connection:
        for statement in SETUP:
            connection.execute(statement.encode())
        everything = {
            **postgres_options("127.0.0.1", server.port, server.user, name),
            "topic.prefix": PREFIX,
            "slot.name": name,
            "publication.name": name,
            "poll.interval.ms": "20",
            "signal.data.collection": "public.signals",
            "incremental.snapshot.chunk.size": "3",
            "notification.enabled.channels": "sink",
            "notification.sink.topic.name": NOTIFICATIONS,
            **options,
        }
        with tempfile.TemporaryDirectory() as scratch:
            output = Path(scratch) / "records.jsonl"
            with Debezium(everything, output, jvm_args=("-Duser.timezone=UTC",)) as debezium:
                wait_for_slot(connection, name)
                catch_up(connection, debezium, "streaming")
                yield Run(connection, debezium)
        connection.execute("SELECT pg_drop_replication_slot(%s)", [name])


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Debezium did not deliver {what}")
        time.sleep(0.02)


if __name__ == "__main__":
    main()
