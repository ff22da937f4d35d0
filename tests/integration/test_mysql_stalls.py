"""What is slow or locked at MySQL or MariaDB keeps a snapshot waiting, and not the stream."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.mysql.source.tables import MysqlTables
from floodmark.snapshots import patience
from floodmark.spark.stream.planning import new_tables
from tests.support.first_rows import first_rows, keys
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer
from tests.support.patience import within

DATABASE = "stalls"
ROWS = 500
BOUND_MS = 1500
"""Locks are waited for in whole seconds."""
MOST_S = within(9.0)


@pytest.fixture
def shop(binlog_server: MysqlServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[MysqlServer]:
    monkeypatch.setattr(patience.PutOff.__init__, "__defaults__", (0.5,))
    monkeypatch.setattr(new_tables, "EVERY_S", 0.3)
    # No signal may call a function; here those that sleep stand for what is slow.
    monkeypatch.setattr(MysqlTables, "row_filter", lambda *given: given[-1])
    rows = ", ".join(f"({number}, 0)" for number in range(1, ROWS + 1))
    binlog_server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"GRANT INSERT, DELETE ON {DATABASE}.* TO {binlog_server.user}",
        f"CREATE TABLE {DATABASE}.t (id int PRIMARY KEY, v int)",
        f"CREATE TABLE {DATABASE}.busy (id int PRIMARY KEY AUTO_INCREMENT, v int)",
        f"INSERT INTO {DATABASE}.t VALUES {rows}",
        f"CREATE TABLE {DATABASE}.signals (id varchar(64) PRIMARY KEY, type varchar(32), data text)",
    )
    yield binlog_server
    binlog_server.execute(f"DROP DATABASE {DATABASE}")


def query_of(server: MysqlServer, directory: Path, offset: dict[str, Any] | None = None, **options: str) -> InProcess:
    given = {
        **server.options(),
        "topic.prefix": "p",
        "state.dir": str(directory),
        "database.include.list": DATABASE,
        "snapshot.mode": "no_data",
        "snapshot.statement.timeout.ms": str(BOUND_MS),
        "snapshot.new.tables": "parallel",
        "signal.data.collection": f"{DATABASE}.signals",
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    return InProcess(given, offset)


def streaming(server: MysqlServer, directory: Path, **options: str) -> InProcess:
    query = query_of(server, directory, None, **options)
    query.drain()
    query.stop()
    return query_of(server, directory, query.offset, **options)


def follow(server: MysqlServer, query: InProcess, done: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """Run micro-batches with a change beside each, which must come soon, until something has happened."""
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + within(90)
    count = 0
    finished = done(rows)
    while not finished:
        assert time.monotonic() < deadline
        count += 1
        server.execute("INSERT INTO busy (v) VALUES (1)", database=DATABASE)
        began = time.monotonic()
        while sum(row["table"] == "busy" for row in rows) < count:
            rows += query.step()
            finished = done(rows)
            assert time.monotonic() - began < MOST_S, "the stream waits"
    return rows


def asked(server: MysqlServer, condition: str = "", kind: str = "incremental") -> None:
    data: dict[str, Any] = {"data-collections": [f"{DATABASE}.t"], "type": kind}
    if condition:
        data["additional-conditions"] = [{"data-collection": f"{DATABASE}.t", "filter": condition}]
    text = json.dumps(data)
    with server.connect(DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO signals VALUES (UUID(), 'execute-snapshot', %s)", (text,))


def ended(query: InProcess) -> Callable[[list[dict[str, Any]]], bool]:
    begun: list[bool] = []

    def done(_: list[dict[str, Any]]) -> bool:
        begun.extend([True] if query.offset["incremental"] is not None else [])
        return bool(begun) and query.offset["incremental"] is None

    return done


def for_a_while() -> Callable[[list[dict[str, Any]]], bool]:
    until = time.monotonic() + 3 * BOUND_MS / 1000
    return lambda _: time.monotonic() > until


@contextmanager
def locked(server: MysqlServer, table: str, kind: str) -> Iterator[None]:
    """Hold a lock of a table's structure: that of ``LOCK TABLES``, or one that hides it from MariaDB's catalog."""
    with server.connect(DATABASE) as connection, connection.cursor() as cursor:
        if kind == "write":
            cursor.execute(f"LOCK TABLES {table} WRITE")
            yield
            cursor.execute("UNLOCK TABLES")
            return
        cursor.execute("SELECT CONNECTION_ID()")
        number = cursor.fetchone()[0]
        cursor.execute(f"SELECT COUNT(*) FROM {table}")
        altering = f"ALTER TABLE {table} MODIFY v int CHECK (SLEEP(0.02) = 0), ALGORITHM=COPY, LOCK=EXCLUSIVE"
        thread = threading.Thread(target=_quietly, args=(lambda: cursor.execute(altering),))
        thread.start()
        yield
        server.execute(f"KILL QUERY {number}")
        thread.join()


def _quietly(action: Callable[[], Any]) -> None:
    try:
        action()
    except Exception:
        return


def test_a_condition_that_is_slow_where_no_row_fulfils_it(shop: MysqlServer, tmp_path: Path) -> None:
    query = streaming(shop, tmp_path, incremental_snapshot_chunk_size="16")
    asked(shop, "SLEEP(0.004) = 1 OR (id % 50 = 0 AND id < 200)")
    rows = follow(shop, query, ended(query))
    query.stop()
    assert keys(rows) == [50, 100, 150]
    assert query.offset["aside"] == []


def test_a_condition_that_takes_too_long_for_a_single_row(shop: MysqlServer, tmp_path: Path) -> None:
    query = streaming(shop, tmp_path)
    asked(shop, "SLEEP(3600) = 0")
    follow(shop, query, ended(query))
    query.stop()
    (aside,) = query.offset["aside"]
    assert aside["name"] == f"{DATABASE}.t"
    assert "maximum statement execution time" in aside["error"] or "max_statement_time" in aside["error"]


@pytest.mark.parametrize("points", ["exact", "watermarks"])
def test_a_table_that_is_locked(shop: MysqlServer, tmp_path: Path, points: str) -> None:
    query = streaming(shop, tmp_path, incremental_snapshot_read_points=points, incremental_snapshot_chunk_size="10")
    with locked(shop, "t", "write"):
        asked(shop)
        rows = follow(shop, query, for_a_while())
        assert query.offset["incremental"] is not None
    rows += follow(shop, query, ended(query))
    query.stop()
    assert keys(rows) == list(range(1, ROWS + 1))
    assert query.offset["aside"] == []


def test_the_signal_table_is_locked(shop: MysqlServer, tmp_path: Path) -> None:
    query = streaming(
        shop, tmp_path, incremental_snapshot_read_points="watermarks", incremental_snapshot_chunk_size="5"
    )
    asked(shop)
    rows = first_rows(query)
    with locked(shop, "signals", "write"):
        rows += follow(shop, query, for_a_while())
        assert query.offset["incremental"] is not None
    rows += follow(shop, query, ended(query))
    query.stop()
    assert keys(rows) == list(range(1, ROWS + 1))
    assert query.offset["aside"] == []


def test_a_new_table_that_is_locked(shop: MysqlServer, tmp_path: Path) -> None:
    query = query_of(shop, tmp_path, table_include_list=f"{DATABASE}.busy")
    query.drain()
    query.stop()
    both = f"{DATABASE}.busy,{DATABASE}.t"
    query = query_of(shop, tmp_path, query.offset, table_include_list=both)
    with locked(shop, "t", "write"):
        rows = follow(shop, query, for_a_while())
        assert query.offset["lane"] is not None
    rows += follow(shop, query, lambda _: query.offset["lane"] is None)
    query.stop()
    assert keys(rows) == list(range(1, ROWS + 1))
    assert query.offset["aside"] == []


def test_a_table_that_is_rebuilt_under_an_exclusive_lock(shop: MysqlServer, tmp_path: Path) -> None:
    """MariaDB's catalog waits for it, or leaves the table out: it must not be taken for gone."""
    query = streaming(shop, tmp_path, incremental_snapshot_chunk_size="10")
    asked(shop)
    rows = first_rows(query)
    with locked(shop, "t", "rebuilt"):
        rows += follow(shop, query, for_a_while())
    rows += follow(shop, query, lambda _: query.offset["incremental"] is None)
    query.stop()
    assert keys(rows) == list(range(1, ROWS + 1))
    assert query.offset["aside"] == []


def test_a_global_lock_that_is_not_free(shop: MysqlServer, tmp_path: Path) -> None:
    """A blocking snapshot that needs it is put off."""
    query = streaming(shop, tmp_path, snapshot_locking_mode="extended", snapshot_lock_timeout_ms="1000")
    with locked(shop, "t", "write"):
        asked(shop, kind="blocking")
        rows = follow(shop, query, for_a_while())
        assert query.offset["snapshot"] is None
    # Now nobody can write until the snapshot has ended.
    deadline = time.monotonic() + within(90)
    while len(keys(rows)) < ROWS or query.offset["snapshot"] is not None:
        assert time.monotonic() < deadline
        rows += query.step()
    query.stop()
