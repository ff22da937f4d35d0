"""``floodmark run`` with several sinks: each is right by itself, whatever happens to the others and to the process."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.demo.event_tail import EventTail
from tests.integration.test_run import AVAILABLE_NOW, PATIENCE_S, Pipeline, conn, streams, wait_for
from tests.support.cli import CLI
from tests.support.jdbc import target_on
from tests.support.planting import Planter

pytestmark = pytest.mark.slow
__all__ = ["conn"]
GUIDE = (Path(__file__).parents[2] / "docs" / "sinks.md").read_text(encoding="utf-8")
SLOTS = "SELECT slot_name FROM pg_replication_slots WHERE database = %s ORDER BY 1"


def rows_of(table: Path) -> list[dict[str, Any]]:
    """Return the rows of a Delta table; none if it isn't there yet."""
    if not (table / "_delta_log").is_dir():
        return []
    query = QueryBuilder().register("t", DeltaTable(str(table))).execute("SELECT * FROM t")
    found: list[dict[str, Any]] = pa.table(query.read_all()).to_pylist()
    return found


class Several(Pipeline):
    """A pipeline file with a mirror, and a sink of files that a transform leaves three columns of."""

    def __init__(self, server: EmbeddedPostgres, dbname: str, directory: Path) -> None:
        super().__init__(server, dbname, directory)
        del self.content["sink"]
        transform = (
            "SELECT key, op, position FROM events\nLATERAL VIEW explode(array(1, 2)) AS n\nWHERE op <> 'd' AND n = 1"
        )
        self.content["sinks"] = {
            "lake": {"type": "mirror", "path": str(directory / "lake")},
            "events": {"type": "json", "path": str(directory / "events"), "transform": transform},
        }

    def lake(self) -> list[int]:
        return sorted(row["id"] for row in rows_of(self.directory / "lake" / "public.orders"))

    def events(self) -> list[int]:
        """Return the keys of the finished files' events."""
        found = [json.loads(line) for line in EventTail(self.directory / "events").new()]
        assert all(set(event) == {"key", "op", "position"} for event in found)
        return sorted(json.loads(event["key"])["id"] for event in found)

    def has(self, upto: int) -> bool:
        wanted = list(range(1, upto + 1))
        return self.lake() == wanted and self.events() == wanted

    def told(self, command: str, *options: str) -> tuple[int, Any]:
        """Run a command that prints JSON; return its exit code and what it prints."""
        done = subprocess.run(
            [*CLI, command, str(self.directory / "pipeline.yaml"), *options],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def breaks_events(self) -> None:
        """Let a file be where the directory of the sink of files should be."""
        place = self.directory / "events"
        if place.is_dir():
            place.rename(self.directory / "saved")
        place.write_text("")

    def mends_events(self) -> None:
        (self.directory / "events").unlink()
        if (self.directory / "saved").is_dir():
            (self.directory / "saved").rename(self.directory / "events")


@pytest.fixture
def several(pg18: EmbeddedPostgres, conn: psycopg.Connection[Any], tmp_path: Path) -> Several:
    return Several(pg18, conn.info.dbname, tmp_path)


@pytest.fixture
def server(pg18: EmbeddedPostgres) -> EmbeddedPostgres:
    return pg18


def insert(conn: psycopg.Connection[Any], first: int, last: int) -> None:
    conn.execute("INSERT INTO orders SELECT n, 'more' FROM generate_series(%s::int, %s::int) n", (first, last))


def test_a_sink_that_fails_stops_all_and_catches_up(several: Several, conn: psycopg.Connection[Any]) -> None:
    several.breaks_events()
    assert several.finish(trigger=AVAILABLE_NOW) == (1, "")
    *lines, error = several.stderr.splitlines()
    assert error.startswith("error: Sink 'events': "), several.stderr
    failed = [json.loads(line) for line in lines if '"sink failed"' in line]
    assert [(entry["sink"], entry["error"] in error) for entry in failed] == [("events", True)]
    _, shown = several.told("status", "--json")
    assert {one["sink"]: one["failed"] and one["failed"]["error"] for one in shown["sinks"]} == {
        "events": failed[0]["error"],
        "lake": None,
    }
    several.mends_events()
    insert(conn, 101, 110)
    assert several.finish(trigger=AVAILABLE_NOW)[0] == 0, several.stderr
    assert several.has(110)
    slots = [row[0] for row in conn.execute(SLOTS, [conn.info.dbname]).fetchall()]
    assert slots == [f"{conn.info.dbname}_events", f"{conn.info.dbname}_lake"]
    code, shown = several.told("status", "--json")
    assert code == 0
    assert [(one["sink"], one["failed"], one["phase"]) for one in shown["sinks"]] == [
        ("events", None, "streaming"),
        ("lake", None, "streaming"),
    ]


@pytest.mark.long
def test_nothing_is_lost_when_all_is_killed_or_a_sink_is_isolated(
    several: Several, conn: psycopg.Connection[Any]
) -> None:
    with several.started() as process:
        wait_for(lambda: several.has(100), process)
        insert(conn, 101, 120)
        process.kill()
        process.wait()
    insert(conn, 121, 130)
    with several.started(errors="isolate") as process:
        wait_for(lambda: several.has(130), process)
        several.breaks_events()
        insert(conn, 131, 140)
        wait_for(lambda: "sink failed" in several.stderr, process)
        insert(conn, 141, 150)
        wait_for(lambda: several.lake() == list(range(1, 151)), process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 1, several.stderr
    *lines, error = several.stderr.splitlines()
    assert error.startswith("error: Sink 'events': "), several.stderr
    stopped = [json.loads(line) for line in lines if '"stopped"' in line]
    assert [entry["sink"] for entry in stopped] == ["lake"]
    several.mends_events()
    with several.started() as process:
        wait_for(lambda: several.has(150), process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, several.stderr
    assert {entry["sink"] for entry in several.log() if entry["event"] == "stopped"} == {"lake", "events"}


@pytest.mark.long
def test_targets_are_verified_and_rebuilt_by_the_sinks_name(
    several: Several, conn: psycopg.Connection[Any], pg16: EmbeddedPostgres
) -> None:
    """A mirror and the sink jdbc among several: each command means one of them, and signals reach all."""
    with target_on(pg16) as target:
        several.content["sinks"] |= {"reports": {"type": "jdbc", "options": target.options}}
        several.content["source"]["signal.poll.interval.ms"] = "200"
        file = several.directory / "pipeline.yaml"
        lake = several.directory / "lake" / "public.orders"

        def call(*arguments: str) -> tuple[int, str]:
            command = [*CLI, arguments[0], str(file), *arguments[1:]]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return done.returncode, " ".join(f"{done.stdout}{done.stderr}".split())

        def reports() -> int:
            there = "public_orders" in target.tables()
            return len(target.rows("SELECT id FROM public_orders")) if there else 0

        with several.started() as process:
            wait_for(lambda: several.has(100) and reports() == 100, process)
            code, shown = call("verify")
            assert code == 2
            assert "several sinks whose targets can be verified: lake, reports. Name one of them with --sink." in shown
            Planter(lake).add(10, id=-1)
            target.execute("DELETE FROM public_orders WHERE id = 7")
            code, shown = call("verify", "--sink", "lake")
            assert (code, "surplus id=-1" in shown) == (1, True), shown
            code, shown = call("verify", "--sink", "reports")
            assert (code, "missing id=7" in shown) == (1, True), shown
            assert call("verify", "--sink", "reports", "--repair")[0] == 0
            code, shown = call("rebuild", "--table", "public.orders")
            assert (code, "targets can be rebuilt: lake, reports. Name one" in shown) == (1, True), shown
            target.execute("DELETE FROM public_orders WHERE id = 9")
            for sink in ("lake", "reports"):
                code, shown = call("rebuild", "--table", "public.orders", "--sink", sink)
                assert (code, "public.orders: is rebuilt" in shown) == (0, True), shown
            assert (several.lake(), reports()) == (list(range(1, 101)), 100)
            # What is asked of one sink's query reaches no other.
            target.execute("DELETE FROM public_orders WHERE id = 8")
            assert call("signal", "execute-snapshot", "--table", "public\\.orders", "--sink", "reports")[0] == 0
            wait_for(lambda: reports() == 100, process)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0, several.stderr


def test_the_example_of_the_guide(
    pg18: EmbeddedPostgres, conn: psycopg.Connection[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs as it is written, but for the address, and a transform keeps the order of a row's changes."""
    found = re.search(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    monkeypatch.setenv("PASSWORD", "secret")
    conn.execute("CREATE ROLE several SUPERUSER LOGIN PASSWORD 'secret'")
    conn.execute("CREATE TABLE customers (id int PRIMARY KEY)")
    conn.execute("INSERT INTO customers VALUES (1)")
    place = f"database.hostname: 127.0.0.1\n  database.port: {pg18.port}\n  database.dbname: {conn.info.dbname}"
    text = found[1].replace("database.user: cdc", "database.user: several")
    text = re.sub(r"database\.hostname: db\n  database\.dbname: shop", place, text)
    for directory in ("/shared", "/lake"):
        text = text.replace(f": {directory}", f": {tmp_path}{directory}")
    file = tmp_path / "pipeline.yaml"
    file.write_text(text + "spark: {spark.master: 'local[1]'}\n", encoding="utf-8")

    def lake() -> list[tuple[str, int]]:
        tables = [(name, rows_of(tmp_path / "lake" / "shop" / f"public.{name}")) for name in ("orders", "customers")]
        return [(name, sum(row.get("note") != "second" for row in rows)) for name, rows in tables]

    def changes() -> int:
        return len(list(EventTail(tmp_path / "lake" / "changes").new()))

    process = subprocess.Popen([*CLI, "run", str(file)], stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: lake() == [("orders", 100), ("customers", 1)], process)
        wait_for(lambda: streams(tmp_path / "shared" / "checkpoints" / "shop" / "changes"), process)
        conn.execute("UPDATE orders SET note = 'second' WHERE id <= 50")
        conn.execute("UPDATE orders SET note = 'third' WHERE id <= 50")
        conn.execute("INSERT INTO customers VALUES (2)")
        wait_for(lambda: lake() == [("orders", 100), ("customers", 2)] and changes() == 100, process)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, errors
    finally:
        process.kill()
        process.wait()
    written = [json.loads(line) for line in EventTail(tmp_path / "lake" / "changes").new()]
    assert {tuple(event) for event in written} == {("topic", "key", "value", "position")}
    by_key: dict[str, list[str]] = {}
    for event in written:
        by_key.setdefault(event["key"], []).append(json.loads(event["value"])["after"]["note"])
    # The updates are in one micro-batch or two; each file is one task's, and has the events of a key in their order.
    assert by_key == {json.dumps({"id": n}, separators=(",", ":")): ["second", "third"] for n in range(1, 51)}
