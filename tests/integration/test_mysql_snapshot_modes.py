"""Snapshots of MySQL and MariaDB beside their log: the two together are what the tables hold."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer

DATABASE = "modes"
ROWS = 4000


@pytest.fixture
def shop(binlog_server: MysqlServer) -> Iterator[MysqlServer]:
    binlog_server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    yield binlog_server
    binlog_server.execute(f"DROP DATABASE {DATABASE}")


def query_of(server: MysqlServer, directory: Path, **options: str) -> InProcess:
    given = {
        **server.options(),
        "topic.prefix": "p",
        "state.dir": str(directory / "state"),
        "database.include.list": DATABASE,
        # Small pieces and micro-batches, so that there are several.
        "snapshot.chunk.bytes": "8192",
        "max.batch.bytes": "1048576",
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    return InProcess(given)


def make_tables(server: MysqlServer, *names: str) -> None:
    for name in names:
        server.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v int, pad varchar(40))", database=DATABASE)
        rows = ", ".join(f"({i}, 0, '{'x' * 40}')" for i in range(ROWS))
        server.execute(f"INSERT INTO {name} VALUES {rows}", database=DATABASE)


@contextmanager
def changes(server: MysqlServer, *names: str) -> Iterator[None]:
    """Insert, update and delete rows as long as the block lasts; updates count up."""
    stop = threading.Event()

    def work(number: int) -> None:
        with server.connect(DATABASE, autocommit=False) as session, session.cursor() as cursor:
            for step in range(1_000_000):
                if stop.wait(0.001):
                    return
                for name in names:
                    i = (step * 37 + number * 1009) % ROWS
                    cursor.execute(f"UPDATE {name} SET v = v + 1 WHERE id = {i}")
                    cursor.execute(f"INSERT INTO {name} VALUES ({ROWS + 2 * step + number}, 0, 'new')")
                    if step % 3 == 0:
                        cursor.execute(f"DELETE FROM {name} WHERE id = {(step * 11 + number) % ROWS}")
                    if step % 7 == 0:
                        cursor.execute(
                            f"UPDATE IGNORE {name} SET id = id + 500000 WHERE id = {(step * 13 + number) % ROWS}"
                        )
                session.commit()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def actual(server: MysqlServer, name: str) -> dict[int, int]:
    with server.connect(DATABASE) as session, session.cursor() as cursor:
        cursor.execute(f"SELECT id, v FROM {name}")
        return {int(key): int(value) for key, value in cursor.fetchall()}


def applied(rows: list[dict[str, Any]], name: str) -> dict[int, int]:
    """Apply a table's events in their order, and prove that no row goes back in time."""
    state: dict[int, int] = {}
    highest: dict[int, int] = {}
    for row in sorted((row for row in rows if row["table"] == name and row["value"]), key=lambda row: row["position"]):
        key = json.loads(row["key"])["id"]
        after = json.loads(row["value"])["after"]
        if after is None:
            state.pop(key, None)
            highest.pop(key, None)
        else:
            assert after["v"] >= highest.get(key, 0), (key, row["op"])
            state[key] = highest[key] = after["v"]
    return state


def test_a_snapshot_and_the_log_are_one_stream(shop: MysqlServer, tmp_path: Path) -> None:
    make_tables(shop, "a", "b")
    query = query_of(shop, tmp_path)
    with changes(shop, "a", "b"):
        rows = query.step()
        while query.offset["snapshot"] is not None:
            rows += query.step()
    rows += query.drain()
    query.stop()
    for name in ("a", "b"):
        assert applied(rows, name) == actual(shop, name)
    reads = [row for row in rows if row["op"] == "r"]
    assert len({row["position"] for row in reads}) == 1
    assert all(row["op"] == "r" for row in rows if row["position"] <= reads[0]["position"] and row["table"] == "a")


def test_a_snapshot_goes_on_after_a_restart(shop: MysqlServer, tmp_path: Path) -> None:
    make_tables(shop, "a", "b")
    query = query_of(shop, tmp_path)
    with changes(shop, "a", "b"):
        rows = query.step() + query.step()
        query.restart()
        rows += query.step()
        for _ in range(3):
            rows += query.step()
        query.restart()
        while query.offset["snapshot"] is not None:
            rows += query.step()
    rows += query.drain()
    query.stop()
    for name in ("a", "b"):
        assert applied(rows, name) == actual(shop, name)
    assert len({row["position"] for row in rows if row["op"] == "r"}) > 1


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_signals_read_tables_while_they_change(shop: MysqlServer, tmp_path: Path, kind: str) -> None:
    make_tables(shop, "a")
    shop.execute("CREATE TABLE signals (id varchar(64) PRIMARY KEY, type varchar(32), data text)", database=DATABASE)
    query = query_of(shop, tmp_path, snapshot_mode="no_data", signal_data_collection=f"{DATABASE}.signals")
    rows = query.step()
    data = json.dumps({"type": kind, "data-collections": [f"{DATABASE}.a"]})
    with changes(shop, "a"):
        shop.execute(f"INSERT INTO signals VALUES ('s', 'execute-snapshot', '{data}')", database=DATABASE)
        while not any(row["op"] == "r" for row in rows):
            rows += query.step()
        while query.offset["incremental"] is not None or query.offset["snapshot"] is not None:
            rows += query.step()
    rows += query.drain()
    query.stop()
    assert applied(rows, "a") == actual(shop, "a")


def test_new_tables_catch_up_in_a_lane_of_their_own(shop: MysqlServer, tmp_path: Path) -> None:
    make_tables(shop, "a", "b")
    options = {"table_include_list": f"{DATABASE}\\.a", "snapshot_new_tables": "parallel"}
    query = query_of(shop, tmp_path, **options)
    rows = query.drain()
    offset = query.offset
    query.stop()
    query = query_of(shop, tmp_path, **{**options, "table_include_list": f"{DATABASE}\\.[ab]"})
    query.offset = offset
    with changes(shop, "a", "b"):
        while not any(row["table"] == "b" for row in rows):
            rows += query.step()
        query.restart()
        while query.offset["lane"] is not None:
            rows += query.step()
    rows += query.drain()
    query.stop()
    for name in ("a", "b"):
        assert applied(rows, name) == actual(shop, name)


def test_a_new_table_is_emptied_while_it_catches_up(shop: MysqlServer, tmp_path: Path) -> None:
    options = {"snapshot_new_tables": "parallel", "skipped_operations": "none", "include_schema_changes": "true"}
    shop.execute("CREATE TABLE a (id int PRIMARY KEY, v int)", database=DATABASE)
    query = query_of(shop, tmp_path, **options, table_include_list=rf"{DATABASE}\.a")
    query.drain()
    shop.execute("CREATE TABLE b (id int PRIMARY KEY, v int)", "INSERT INTO b VALUES (1, 1)", database=DATABASE)
    offset = query.offset
    query.stop()
    query = query_of(shop, tmp_path, **options, table_include_list=rf"{DATABASE}\.[ab]")
    query.offset = offset
    rows = query.step()
    assert query.offset["lane"] is not None
    shop.execute("TRUNCATE TABLE b", "INSERT INTO b VALUES (2, 2)", database=DATABASE)
    while query.offset["lane"] is not None:
        rows += query.step()
    rows += query.drain()
    query.stop()
    rows.sort(key=lambda row: row["position"])
    told = [(row["op"], row["topic"]) for row in rows if row["table"] == "b" or row["topic"] == "p"]
    assert told.count(("t", f"p.{DATABASE}.b")) == 1
    after = rows[[row["op"] for row in rows].index("t") + 1 :]
    assert applied(after, "b") == actual(shop, "b")
    assert len([row for row in rows if row["topic"] == "p" and "CREATE TABLE b" in row["value"]]) == 1


def test_an_initial_snapshot_leaves_the_signal_table_out(shop: MysqlServer, tmp_path: Path) -> None:
    shop.execute("CREATE TABLE signals (id varchar(64) PRIMARY KEY, type varchar(32), data text)", database=DATABASE)
    shop.execute("INSERT INTO signals VALUES ('old', 'log', '{}')", database=DATABASE)
    make_tables(shop, "t")
    query = query_of(shop, tmp_path, signal_data_collection=f"{DATABASE}.signals")
    read = {row["table"] for row in query.drain() if row["op"] == "r"}
    shop.execute("INSERT INTO signals VALUES ('new', 'log', '{}')", database=DATABASE)
    rows = query.drain()
    query.stop()
    assert "t" in read
    assert "signals" not in read
    assert [row["op"] for row in rows if row["table"] == "signals"] == ["c"]
