"""Rows that come or go as a whole partition: the log has none of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from floodmark.capture.gaps import AcceptedGaps, Gap
from floodmark.connectors.mysql.schema import follower
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer

DATABASE = "parts"
RANGES = "PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN (100))"


@pytest.fixture
def shop(binlog_server: MysqlServer) -> Iterator[MysqlServer]:
    binlog_server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {DATABASE}.t (id int PRIMARY KEY, v int) {RANGES}",
        f"CREATE TABLE {DATABASE}.u (id int PRIMARY KEY, v int)",
        f"CREATE TABLE {DATABASE}.signals (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))",
        f"INSERT INTO {DATABASE}.t VALUES (1, 1), (20, 1)",
        f"INSERT INTO {DATABASE}.u VALUES (7, 7)",
    )
    yield binlog_server
    binlog_server.execute(f"DROP DATABASE {DATABASE}")


def query_of(server: MysqlServer, state: Path, tables: str = "t", **more: str) -> InProcess:
    options = {
        **server.options(),
        "topic.prefix": "p",
        "state.dir": str(state),
        "table.include.list": rf"{DATABASE}\.({tables})",
        "signal.data.collection": f"{DATABASE}.signals",
        "include.schema.changes": "false",
    }
    return InProcess({**options, **more})


def keys(rows: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    changes = (row for row in rows if row["table"] in ("t", "u") and row["value"])
    return [(row["op"], row["table"], json.loads(row["key"])["id"]) for row in changes]


def test_a_partition_is_exchanged(shop: MysqlServer, tmp_path: Path) -> None:
    """The rows that came are read again, when a signal asks for it."""
    query = query_of(shop, tmp_path, "t|u")
    query.drain()
    shop.execute("ALTER TABLE t EXCHANGE PARTITION low WITH TABLE u", database=DATABASE)
    query.drain()
    shop.execute("INSERT INTO t VALUES (30, 1)", database=DATABASE)
    assert keys(query.drain()) == []
    aside = {table["name"]: table["error"] for table in query.offset["aside"]}
    assert aside.keys() == {f"{DATABASE}.t", f"{DATABASE}.u"}
    assert all("EXCHANGE PARTITION" in error and "execute-snapshot" in error for error in aside.values())
    data = json.dumps({"type": "incremental", "data-collections": [f"{DATABASE}.t", f"{DATABASE}.u"]})
    shop.execute(f"INSERT INTO signals VALUES ('1', 'execute-snapshot', '{data}')", database=DATABASE)
    assert sorted(keys(query.drain())) == [("r", "t", 7), ("r", "t", 20), ("r", "t", 30), ("r", "u", 1)]
    assert query.offset["aside"] == []
    query.stop()


def test_a_partition_is_exchanged_and_that_is_accepted(
    shop: MysqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gaps: list[Gap] = []
    monkeypatch.setattr(AcceptedGaps, "add", lambda _, gap: gaps.append(gap))
    query = query_of(shop, tmp_path, **{"inconsistent.schema.handling.mode": "warn"})
    query.drain()
    shop.execute("ALTER TABLE t EXCHANGE PARTITION low WITH TABLE u", "INSERT INTO t VALUES (30, 1)", database=DATABASE)
    assert keys(query.drain()) == [("c", "t", 30)]
    query.stop()
    (gap,) = gaps
    assert "EXCHANGE PARTITION" in gap.reason
    assert f"{DATABASE}.t" in gap.reason


@pytest.mark.parametrize("action", ["DROP", "TRUNCATE"])
def test_a_partition_goes_where_truncates_are_left_out(
    shop: MysqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    warned: list[tuple[str, list[str]]] = []
    note = SimpleNamespace(warning=lambda event, **more: warned.append((event, more["tables"])))
    monkeypatch.setattr(follower, "log", note)
    query = query_of(shop, tmp_path)
    query.drain()
    shop.execute(f"ALTER TABLE t {action} PARTITION low", "UPDATE t SET v = 2", database=DATABASE)
    assert keys(query.drain()) == [("u", "t", 20)]
    assert query.offset["aside"] == []
    assert warned == [("rows_go_without_events", [f"{DATABASE}.t"])]
    query.stop()


def test_a_partition_goes_where_truncates_are_delivered(shop: MysqlServer, tmp_path: Path) -> None:
    query = query_of(shop, tmp_path, **{"skipped.operations": "none"})
    query.drain()
    shop.execute("ALTER TABLE t TRUNCATE PARTITION low", database=DATABASE)
    assert keys(query.drain()) == []
    (aside,) = query.offset["aside"]
    assert "TRUNCATE PARTITION" in aside["error"]
    query.stop()


def test_partitions_of_tables_that_are_not_captured(shop: MysqlServer, tmp_path: Path) -> None:
    query = query_of(shop, tmp_path, "u")
    query.drain()
    shop.execute("ALTER TABLE t DROP PARTITION low", "UPDATE u SET v = 2", database=DATABASE)
    assert keys(query.drain()) == [("u", "u", 7)]
    assert query.offset["aside"] == []
    query.stop()
