"""Starting while the source is away, or goes away at any step of the start."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.errors import CaptureError, ConnectError, LoginError
from tests.conftest import drop, make_source
from tests.support.cutting_proxy import CuttingProxy
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer
from tests.support.patience import within

CUTS = int(os.environ.get("FLOODMARK_START_CUTS", "8"))
"""How many steps of each start are cut; 0: all."""
DATABASE = "starts"
ROWS = 30


@dataclass
class Shop:
    """A table ``t`` on some server, and how a query reaches it.

    Attributes:
        options: of a source, but for what makes each query another one.
        execute: runs statements there.
        rows: returns the table's rows.
    """

    options: dict[str, str]
    port: int
    execute: Callable[..., None]
    rows: Callable[[], dict[int, int]]

    def query(self, name: str, directory: Path, offset: dict[str, Any] | None = None, **options: str) -> InProcess:
        given = {
            **self.options,
            "topic.prefix": name,
            "state.dir": str(directory / "state"),
            "errors.retry.delay.initial.ms": "5",
            "errors.retry.delay.max.ms": "50",
            "incremental.snapshot.chunk.size": "10",
            **{key.replace("_", "."): value for key, value in options.items()},
        }
        if given["connector"] == "postgres":
            given |= {"slot.name": name, "publication.name": name}
        return InProcess(given, offset)


@pytest.fixture(params=["pg16", "mysql", "mariadb"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    server = request.getfixturevalue(request.param)
    if isinstance(server, MysqlServer):
        yield binlog_shop(server)
        server.execute(f"DROP DATABASE {DATABASE}")
        return
    source = make_source(server, tmp_path / "unused")
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, v integer)")
    source.execute(f"INSERT INTO t SELECT g, 0 FROM generate_series(1, {ROWS}) g")

    def rows() -> dict[int, int]:
        with psycopg.connect(source.conninfo) as conn:
            return dict(conn.execute("SELECT id, v FROM t").fetchall())

    options = {**source.options, "table.include.list": r"public\.t"}
    yield Shop(options, int(options["database.port"]), source.execute, rows)
    drop_all_slots(source.conninfo)
    drop(source)


def drop_all_slots(conninfo: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            "WHERE database = current_database() AND active_pid IS NULL"
        )


def binlog_shop(server: MysqlServer) -> Shop:
    values = ", ".join(f"({i}, 0)" for i in range(1, ROWS + 1))
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {DATABASE}.t (id int PRIMARY KEY, v int)",
        f"INSERT INTO {DATABASE}.t VALUES {values}",
    )

    def rows() -> dict[int, int]:
        with server.connect(DATABASE) as session, session.cursor() as cursor:
            cursor.execute("SELECT id, v FROM t")
            return {int(key): int(value) for key, value in cursor.fetchall()}

    def execute(*statements: str) -> None:
        server.execute(*statements, database=DATABASE)

    options = {**server.options(), "table.include.list": rf"{DATABASE}\.t", "database.include.list": DATABASE}
    return Shop(options, server.port, execute, rows)


def delivered(rows: list[dict[str, Any]]) -> dict[int, int]:
    """Return the table as its events have it; no key goes back."""
    found: dict[int, int] = {}
    for row in sorted((row for row in rows if row["table"] == "t" and row["value"]), key=lambda row: row["position"]):
        key, after = json.loads(row["key"])["id"], json.loads(row["value"])["after"]
        assert after["v"] >= found.get(key, 0)
        found[key] = after["v"]
    return found


def plan(query: InProcess) -> dict[str, Any]:
    """Return the end of the next micro-batch, which has something to deliver."""
    deadline = time.monotonic() + within(60)
    while time.monotonic() < deadline:
        end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
        if end != query.offset:
            return end
    raise AssertionError("nothing comes")


def steps(number: int) -> list[int]:
    """Return which of a start's steps are cut."""
    every = range(1, number + 1)
    return list(every) if not CUTS or number <= CUTS else sorted(random.Random(number).sample(every, CUTS))


def finish(shop: Shop, query: InProcess, rows: list[dict[str, Any]]) -> None:
    """Deliver everything and compare."""
    shop.execute("UPDATE t SET v = v + 1 WHERE id % 3 = 0")
    rows += query.drain()
    query.stop()
    assert delivered(rows) == shop.rows()
    # Only at another read point a row is read again.
    reads = [(row["key"], row["position"]) for row in rows if row["op"] == "r"]
    assert len(reads) == len(set(reads))


@pytest.fixture
def proxy(shop: Shop) -> Iterator[CuttingProxy]:
    made = CuttingProxy(shop.port)
    shop.options["database.port"] = str(made.port)
    yield made
    made.close()


def cut_start(proxy: CuttingProxy, run: Callable[[int], int]) -> None:
    """Cut a start at its steps: the first run, which isn't cut, tells how many there are."""
    number = run(0)
    assert number > 10
    for step in steps(number):
        run(step)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["initial", "no_data"])
def test_a_new_query_is_cut_at_each_step_of_its_start(
    shop: Shop, proxy: CuttingProxy, tmp_path: Path, mode: str
) -> None:
    cuts: list[int] = []

    def run(step: int) -> int:
        query = shop.query(f"new_{mode}_{step}", tmp_path / str(step), snapshot_mode=mode)
        proxy.cut_at(step, refuse=1 if step > 60 else 0)
        rows: list[dict[str, Any]] = []
        try:
            rows += query.step()
        except ConnectError:
            # Only what is cut before the source has ever answered is taken for a mistake.
            assert proxy.passed < 60
            query.stop()
            query = shop.query(f"new_{mode}_{step}", tmp_path / str(step), snapshot_mode=mode)
            rows += query.step()
        passed = proxy.passed
        cuts.append(proxy.cuts)
        if mode == "no_data":
            rows += query.drain()
            shop.execute("UPDATE t SET v = v + 1")
        finish(shop, query, rows)
        return passed

    cut_start(proxy, run)
    # The number of pieces varies a little.
    assert sum(cuts) > len(cuts) / 2


@pytest.mark.timeout(600)
@pytest.mark.parametrize("what", ["stream", "snapshot", "replay"])
def test_a_query_is_cut_at_each_step_of_its_next_start(
    shop: Shop, proxy: CuttingProxy, tmp_path: Path, what: str
) -> None:
    """With a checkpoint it goes on while it streams, in the middle of a snapshot, with a planned micro-batch."""

    cuts: list[int] = []

    def run(step: int) -> int:
        name = f"again_{what}_{step}"
        query = shop.query(name, tmp_path / str(step))
        rows = query.drain() if what == "stream" else query.step()
        shop.execute("UPDATE t SET v = v + 1 WHERE id % 2 = 0")
        if what == "stream":
            # Without the end that draining has set.
            query.restart()
        planned = plan(query)
        offset = query.offset
        query.stop()
        query = shop.query(name, tmp_path / str(step), offset, errors_max_retries="20")
        proxy.cut_at(step, refuse=step % 3)
        if what == "replay":
            rows += query.run(planned)
            query.offset = planned
        rows += query.step()
        passed = proxy.passed
        cuts.append(proxy.cuts)
        proxy.cut_at(0)
        finish_again(shop, query, rows)
        return passed

    cut_start(proxy, run)
    # The number of pieces varies a little.
    assert sum(cuts) > len(cuts) / 2


def finish_again(shop: Shop, query: InProcess, rows: list[dict[str, Any]]) -> None:
    shop.execute("UPDATE t SET v = v + 1 WHERE id % 3 = 0")
    rows += query.drain()
    query.stop()
    assert delivered(rows) == shop.rows()


def test_a_source_that_is_away_is_waited_for_with_a_checkpoint(shop: Shop, proxy: CuttingProxy, tmp_path: Path) -> None:
    query = shop.query("away", tmp_path)
    rows = query.drain()
    before = query.offset
    shop.execute("UPDATE t SET v = v + 1")
    # Without the end that draining has set.
    query.restart()
    planned = plan(query)
    query.stop()
    proxy.refuse(1 << 30)
    with pytest.raises(ConnectError):
        shop.query("another", tmp_path / "another").step()
    tried = shop.query("away", tmp_path, before, errors_max_retries="3")
    tried.reader.prepareForTriggerAvailableNow()
    for action in (tried.step, partial(tried.run, planned)):
        with pytest.raises(CaptureError, match="3 retries"):
            action()
    assert tried.reader.reportLatestOffset() is None
    tried.reader.commit(before)
    tried.stop()
    # It comes back while the query waits.
    proxy.refuse(5)
    finish_again(shop, shop.query("away", tmp_path, before), rows)
    assert not proxy.refused_left


def test_a_login_that_is_refused_is_told_at_once(shop: Shop, tmp_path: Path) -> None:
    query = shop.query("login", tmp_path)
    rows = query.drain()
    query.stop()
    wrong = {"database.user": "no_such_user"}
    for offset in (None, query.offset):
        options = {**shop.options, **wrong}
        refused = Shop(options, shop.port, shop.execute, shop.rows).query("login", tmp_path, offset)
        with pytest.raises(LoginError, match="no_such_user"):
            refused.step()
        refused.stop()
    again = shop.query("login", tmp_path, query.offset)
    finish_again(shop, again, rows)


@pytest.mark.parametrize("shop", ["pg16", "pg18"], indirect=True)
def test_a_slot_whose_creation_was_cut_off_is_not_waited_for(shop: Shop, proxy: CuttingProxy, tmp_path: Path) -> None:
    """The server process that creates it waits for a transaction, and doesn't notice that its client is gone."""
    source = {**shop.options, "database.port": str(shop.port)}
    conninfo = f"host=127.0.0.1 port={shop.port} dbname={source['database.dbname']} user={source['database.user']}"
    query = shop.query("half", tmp_path, slot_max_retries="1")
    rows: list[dict[str, Any]] = []
    with psycopg.connect(conninfo) as writer, psycopg.connect(conninfo, autocommit=True) as watcher:
        writer.execute("UPDATE t SET v = 1 WHERE id = 1")
        worker = threading.Thread(target=lambda: rows.extend(query.step()))
        worker.start()
        first = waiting_creator(watcher, 0)
        proxy.cut_now()
        assert waiting_creator(watcher, first) != first
        writer.commit()
        worker.join(within(60))
    assert not worker.is_alive()
    finish(shop, query, rows)


def waiting_creator(conn: psycopg.Connection[Any], other: int) -> int:
    """Return the server process that creates the slot, once there is one besides another."""
    deadline = time.monotonic() + within(60)
    while time.monotonic() < deadline:
        found = conn.execute(
            "SELECT active_pid FROM pg_replication_slots WHERE slot_name = 'half' AND active_pid <> %s "
            "AND EXISTS (SELECT FROM pg_locks WHERE pid = active_pid AND NOT granted)",
            [other],
        ).fetchone()
        if found:
            return int(found[0])
        time.sleep(0.02)
    raise AssertionError("no slot is being created")
