"""Tables that online schema changes replace, and tables that come and go, at every statement of a snapshot."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from floodmark.snapshots.initial.engine import SnapshotEngine
from tests.integration import test_owed_rows
from tests.integration.test_owed_rows import ROWS, Shop
from tests.support.inprocess import InProcess
from tests.support.patience import within

STEPS = int(os.environ.get("FLOODMARK_GHOST_STEPS", "4"))
"""How many places of each snapshot; 0: all."""

shop = test_owed_rows.shop


LOCKED_S = 0.5
"""Who waits that long for what the query holds is let wait until the query has gone on."""
END_S = within(120.0)
LEAST = 20
"""A snapshot takes more statements than that, or else the test does not see it."""


class Statements:
    """Counts the statements that a query runs in this process, and lets another session act before one of them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.at = 0
        self.action: Callable[[], None] = lambda: None
        self._acting = threading.local()
        self._session: Future[None] | None = None
        self._sessions = ThreadPoolExecutor(1)
        for owner, name in ((pymysql.cursors.Cursor, "execute"), (psycopg.Connection, "execute")):
            patch.setattr(owner, name, self._counted(getattr(owner, name)))

    def begin(self, at: int, action: Callable[[], None]) -> None:
        self.count, self.at, self.action = 0, at, action
        self._session = None

    @property
    def acting(self) -> bool:
        """Whether the other session is not done; raises what went wrong there."""
        if self._session is not None and self._session.done():
            self._session.result()
        return self._session is not None and not self._session.done()

    def _act(self) -> None:
        self._acting.now = True
        self.action()

    def _counted(self, execute: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **named: Any) -> Any:
            if not getattr(self._acting, "now", False):
                self.count += 1
                if self.count == self.at:
                    self._session = self._sessions.submit(self._act)
                    wait([self._session], LOCKED_S)
            return execute(*args, **named)

        return wrapped


def ghost(shop: Shop) -> None:
    """Replace a table as gh-ost does, and let another one go."""
    shop.execute(
        "CREATE TABLE _t_gho (id int PRIMARY KEY, v int, pad varchar(400), more int)",
        "INSERT INTO _t_gho (id, v, pad) SELECT id, v, pad FROM t",
    )
    shop.swap("t", "_t_del", "_t_gho")
    shop.execute("UPDATE t SET more = 1", "DROP TABLE _t_del", "DROP TABLE other")


@pytest.mark.timeout(600 if STEPS else 3600)
@pytest.mark.parametrize("kind", ["initial", "blocking", "incremental"])
def test_a_table_is_replaced_at_any_statement_of_a_snapshot(
    shop: Shop,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    statements = Statements(monkeypatch)
    shop.execute("ALTER TABLE old RENAME TO kept")

    def run(step: int) -> int:
        shop.execute("DROP TABLE IF EXISTS t", "DROP TABLE IF EXISTS other", "DELETE FROM signals")
        shop.make("t")
        shop.make("other")
        query = shop.query(
            "t|other|kept", name=f"{kind}{step}", snapshot_mode="initial" if kind == "initial" else "no_data"
        )
        rows: list[dict[str, Any]] = []
        if kind != "initial":
            rows += query.drain()
            query.restart()
            shop.signal("1", "execute-snapshot", "t", "other", "kept", kind=kind)
        statements.begin(step, lambda: ghost(shop))
        rows += drained(query, 3 if kind == "initial" else 12)
        number = statements.count
        statements.at = 0
        if step > number:
            query.stop()
            shop.drop_slot(f"{kind}{step}")
            return number
        rows += query.drain()
        until = time.monotonic() + END_S
        while statements.acting:
            assert time.monotonic() < until, "The schema change waits for what the query holds."
            rows += query.drain()
        rows += query.drain()
        query.restart()
        rows += query.drain()
        query.stop()
        shop.drop_slot(f"{kind}{step}")
        last = {
            json.loads(row["key"])["id"]: json.loads(row["value"])["after"]
            for row in sorted(rows, key=lambda row: str(row["position"]))
            if row["table"] == "t" and row["value"] and row["op"] in "rcu"
        }
        assert {key: row.get("more") for key, row in last.items()} == dict.fromkeys(
            range(1, ROWS + 1), 1 if step else None
        )
        assert {json.loads(row["key"])["id"] for row in rows if row["table"] == "kept"} == set(range(1, ROWS + 1))
        return number

    number = run(0)
    assert number > LEAST
    every = range(1, number + 1)
    for step in every if not STEPS else sorted(random.Random(kind).sample(every, min(STEPS, number))):
        run(step)


def test_a_table_is_replaced_between_the_read_point_and_the_list_of_tables(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read point shows nothing of a table that was altered after it."""
    shop.make("t")
    shop.make("other")
    begin = SnapshotEngine.begin

    def swapped(*args: Any) -> Any:
        ghost(shop)
        return begin(*args)

    monkeypatch.setattr(SnapshotEngine, "begin", swapped)
    query = shop.query("t|other|old")
    rows = drained(query, 20)
    query.stop()
    last = {json.loads(row["key"])["id"]: json.loads(row["value"])["after"] for row in rows if row["table"] == "t"}
    assert {key: row["more"] for key, row in last.items()} == dict.fromkeys(range(1, ROWS + 1), 1)


def test_who_alters_a_table_and_the_snapshot_do_not_wait_for_each_other(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MariaDB doesn't list tables while one of them is to be renamed, which waits for who reads another of them."""
    for name in ("KNOWN_S", "KNOWN_SHARE"):
        monkeypatch.setattr(f"floodmark.connectors.mysql.snapshot.tables.{name}", 0)
    shop.make("t")
    doubled = [f"INSERT INTO t SELECT id + {ROWS << times}, v, pad FROM t" for times in range(5)]
    shop.execute(*doubled, "CREATE TABLE _t_gho (id int PRIMARY KEY, v int, pad varchar(400), more int)")
    shop.execute("INSERT INTO _t_gho (id, v, pad) SELECT id, v, pad FROM t")
    # The rest of the table waits to be read until the first rows have been delivered.
    query = shop.query("t", snapshot_max_threads="1", max_batch_bytes="8192")
    rows = query.step()
    until = time.monotonic() + END_S
    with ThreadPoolExecutor(1) as other:
        renamed = other.submit(shop.swap, "t", "_t_del", "_t_gho")
        wait([renamed], LOCKED_S)
        while not renamed.done():
            assert time.monotonic() < until, "The schema change waits for what the query holds."
            rows += query.step()
        renamed.result()
    shop.execute("UPDATE t SET more = 1")
    rows += query.drain()
    query.stop()
    last = {
        json.loads(row["key"])["id"]: json.loads(row["value"])["after"]
        for row in sorted(rows, key=lambda row: str(row["position"]))
        if row["table"] == "t"
    }
    assert {key: row.get("more") for key, row in last.items()} == dict.fromkeys(range(1, (ROWS << 5) + 1), 1)


def drained(query: InProcess, steps: int) -> list[dict[str, Any]]:
    return [row for _ in range(steps) for row in query.step()]
