"""Rows that only a snapshot brings: they come, or the offset says which table lacks them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.cli.status.view import resume_command
from floodmark.snapshots.excluded_tables import GONE, NO_KEY, ExcludedTable
from tests.conftest import Source, drop, drop_slots, make_source
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer

DATABASE = "owed"
ROWS = 60
KEYED = "id int PRIMARY KEY, v int, pad varchar(400)"


class Shop:
    """A database on some server, with a table ``old``, and queries of it."""

    def __init__(self, options: dict[str, str], schema: str, binlog: MysqlServer | None, source: Source | None) -> None:
        self.schema = schema
        self._options = options
        self._binlog = binlog
        self._source = source
        self._queries: list[InProcess] = []

    def execute(self, *statements: str) -> None:
        if self._binlog is not None:
            self._binlog.execute(*statements, database=DATABASE)
            return
        assert self._source is not None
        with psycopg.connect(self._source.conninfo, autocommit=True) as conn:
            for statement in statements:
                conn.execute(statement)

    def make(self, name: str, columns: str = KEYED) -> None:
        rows = ", ".join(f"({i}, 0, '{'x' * 400}')" for i in range(1, ROWS + 1))
        self.execute(f"CREATE TABLE {name} ({columns})", f"INSERT INTO {name} VALUES {rows}")

    def _named(self, name: str) -> dict[str, str]:
        """Return the options that make a query another one."""
        if not name:
            return {}
        return {"topic.prefix": name} | ({} if self._binlog is not None else {"slot.name": f"g_{name}"})

    def drop_slot(self, name: str) -> None:
        """Drop the slot of the query of that name, which is stopped; a server has not room for many."""
        if self._source is not None:
            drop_slots(self._source, f"g_{name}")

    def swap(self, name: str, away: str, come: str) -> None:
        """Rename a table away and another one to its name, at once."""
        if self._binlog is not None:
            self.execute(f"RENAME TABLE {name} TO {away}, {come} TO {name}")
        else:
            self.execute(f"BEGIN; ALTER TABLE {name} RENAME TO {away}; ALTER TABLE {come} RENAME TO {name}; COMMIT")

    def query(self, tables: str, offset: dict[str, Any] | None = None, name: str = "", **options: str) -> InProcess:
        given = {
            **self._options,
            **self._named(name),
            "table.include.list": rf"{self.schema}\.({tables}|signals)",
            "snapshot.chunk.bytes": "8192",
            "max.batch.bytes": "16384",
            "incremental.snapshot.chunk.size": "10",
            "max.batch.rows": "20",
            "signal.data.collection": f"{self.schema}.signals",
            "notification.enabled.channels": "sink",
            "notification.sink.topic.name": "told",
            **{name.replace("_", "."): value for name, value in options.items()},
        }
        self._queries.append(InProcess(given, offset))
        return self._queries[-1]

    def signal(self, name: str, what: str, *tables: str, kind: str = "incremental") -> None:
        data: dict[str, Any] = {"type": kind}
        if tables:
            data["data-collections"] = [f"{self.schema}.{table}" for table in tables]
        self.execute(f"INSERT INTO signals VALUES ('{name}', '{what}', '{json.dumps(data)}')")

    def close(self) -> None:
        for query in self._queries:
            query.stop()


@pytest.fixture(params=["pg16", "mysql", "mariadb"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    server = request.getfixturevalue(request.param)
    state = str(tmp_path / "state")
    if isinstance(server, MysqlServer):
        server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
        if server.flavor == "mariadb":
            # Else whoever alters a table waits for the snapshot's view.
            server.execute(f"GRANT BINLOG ADMIN ON *.* TO {server.user}")
        options = {**server.options(), "topic.prefix": "p", "state.dir": state, "database.include.list": DATABASE}
        made = Shop(options, DATABASE, server, None)
    else:
        source = make_source(server, tmp_path / "state")
        made = Shop(source.options, "public", None, source)
    made.execute("CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))")
    made.make("old")
    yield made
    made.close()
    if isinstance(server, MysqlServer):
        server.execute(f"DROP DATABASE {DATABASE}")
    else:
        drop(source)


def reads(rows: list[dict[str, Any]], table: str) -> set[int]:
    return {int(json.loads(row["value"])["after"]["id"]) for row in rows if row["op"] == "r" and row["table"] == table}


def left_out(query: InProcess) -> dict[str, str]:
    """Return the tables that are set aside, without their schema, and why."""
    return {table["name"].rpartition(".")[2]: table["error"] for table in query.offset["aside"]}


def statuses(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return how the scans of tables ended, as notifications say it."""
    values = [json.loads(row["value"]) for row in rows if row["topic"] == "told"]
    return {
        value["additional_data"]["scanned_collection"].rpartition(".")[2]: value["additional_data"]["status"]
        for value in values
        if value["type"] == "TABLE_SCAN_COMPLETED"
    }


def until_reading(query: InProcess) -> list[dict[str, Any]]:
    """Run micro-batches until an incremental snapshot has begun."""
    rows: list[dict[str, Any]] = []
    for _ in range(500):
        rows += query.step()
        if query.offset["incremental"] is not None and query.offset["incremental"]["batch"]:
            return rows
    raise AssertionError("no snapshot has begun")


def extended(shop: Shop, mode: str = "incremental") -> InProcess:
    """Return a query that is started again with one more table."""
    query = shop.query("old", snapshot_mode="no_data")
    query.drain()
    query.stop()
    return shop.query("old|new", query.offset, snapshot_mode="no_data", snapshot_new_tables=mode)


@pytest.mark.parametrize("paused", [False, True])
def test_a_stop_of_all_leaves_new_tables(shop: Shop, paused: bool) -> None:
    shop.make("new")
    query = extended(shop)
    shop.signal("1", "execute-snapshot", "old")
    rows = until_reading(query)
    if paused:
        shop.signal("2", "pause-snapshot")
        while not query.offset["incremental"]["paused"]:
            rows += query.step()
    shop.signal("3", "stop-snapshot")
    rows += query.drain()
    assert reads(rows, "new") == set(range(1, ROWS + 1))
    assert len(reads(rows, "old")) < ROWS
    assert statuses(rows) == {"new": "SUCCEEDED"}
    assert left_out(query) == {}


def test_a_stop_that_names_a_new_table_is_obeyed_and_told(shop: Shop) -> None:
    shop.make("new")
    query = extended(shop)
    rows = until_reading(query)
    shop.signal("stop it", "stop-snapshot", "new")
    rows += query.drain()
    assert len(reads(rows, "new")) < ROWS
    assert "'stop it' stopped the snapshot of this new table" in left_out(query)["new"]
    query.restart()
    assert "new" in left_out(query)
    shop.signal("again", "execute-snapshot", "new")
    rows = query.drain()
    assert reads(rows, "new") == set(range(1, ROWS + 1))
    assert left_out(query) == {}


def test_a_new_table_without_a_key_is_told(shop: Shop) -> None:
    shop.make("new", "id int, v int, pad varchar(400)")
    query = extended(shop)
    rows = query.drain()
    assert statuses(rows) == {"new": "NO_PRIMARY_KEY"}
    assert left_out(query) == {"new": NO_KEY}
    (table,) = (ExcludedTable.from_json(data) for data in query.offset["aside"])
    assert resume_command("p.yaml", table).endswith("--blocking")


@pytest.mark.parametrize("back", ["while it runs", "after it"])
def test_a_table_is_renamed_away_while_a_restart_opens_a_read_point(shop: Shop, back: str) -> None:
    tables = "old|t|u|w" if back == "while it runs" else "old|t"
    for name in tables.split("|")[1:]:
        shop.make(name)
    query = shop.query(tables)
    rows = query.step()
    assert query.offset["snapshot"] is not None
    offset = query.offset
    query.stop()
    shop.execute("ALTER TABLE t RENAME TO away")
    query = shop.query(tables, offset)
    rows += query.step()
    assert left_out(query) == {"t": GONE}
    if back == "while it runs":
        assert query.offset["snapshot"] is not None
        shop.execute("ALTER TABLE away RENAME TO t")
        rows += query.drain()
        assert left_out(query) == {}
    else:
        rows += query.drain()
        assert query.offset["snapshot"] is None
        assert statuses(rows)["t"] == "SKIPPED"
        shop.execute("ALTER TABLE away RENAME TO t")
        query.restart()
        rows += query.drain()
        assert left_out(query) == {"t": GONE}
        shop.signal("1", "execute-snapshot", "t")
        rows += query.drain()
        assert left_out(query) == {}
    assert reads(rows, "t") == reads(rows, "old") == set(range(1, ROWS + 1))


def test_a_new_table_is_renamed_away_before_it_is_read(shop: Shop) -> None:
    """A blocking snapshot of it waits for another one."""
    shop.make("new")
    query = extended(shop, "blocking")
    shop.signal("1", "execute-snapshot", "old")
    query.step()
    assert query.offset["blocking"] or query.offset["snapshot"]
    if query.offset["blocking"]:
        shop.execute("ALTER TABLE new RENAME TO away")
        query.drain()
        assert left_out(query) == {"new": GONE}


def test_a_snapshot_that_is_given_up_names_what_was_not_read(shop: Shop) -> None:
    shop.make("t")
    query = shop.query("old|t")
    rows = query.step()
    offset = query.offset
    query.stop()
    query = shop.query("old|t", offset, snapshot_mode="no_data")
    rows += query.drain()
    assert "given up" in left_out(query)["t"]


@pytest.mark.parametrize("binlog", [{"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}])
def test_a_server_without_gtids_cannot_read_new_tables_without_a_lock(tmp_path: Path, binlog: dict[str, str]) -> None:
    with MysqlServer("mysql", **binlog) as server:
        server.execute(f"CREATE DATABASE {DATABASE}")
        options = {**server.options(), "topic.prefix": "p", "state.dir": str(tmp_path)}
        shop = Shop({**options, "database.include.list": DATABASE}, DATABASE, server, None)
        shop.execute("CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))")
        shop.make("old")
        shop.make("new")
        query = extended(shop)
        rows = query.drain()
        assert statuses(rows) == {"new": "SQL_EXCEPTION"}
        assert re.search("gtid_mode=ON", left_out(query)["new"])
        shop.close()
