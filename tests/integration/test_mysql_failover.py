"""Another server takes over: the query goes on there by GTIDs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pymysql
import pytest

from floodmark.connectors.load import load_options
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.server.connection import connect
from floodmark.connectors.mysql.source import session as sessions
from floodmark.errors import CheckpointError
from tests.integration.test_mysql_xa import Branch, decide
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer
from tests.support.replication import SETTINGS, replica_of, stop_replica, wait_for_replica

DATABASE = "moved"
Pair = tuple[MysqlServer, MysqlServer]


@pytest.fixture(scope="module", params=["mysql", "mariadb"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Return a server and its replica, whose binlog files have other numbers."""
    flavor = request.param
    with ExitStack() as stack:
        first, second = (stack.enter_context(MysqlServer(flavor, **SETTINGS[flavor])) for _ in range(2))
        first.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        yield first, second


@pytest.fixture
def shop(pair: Pair) -> Iterator[Pair]:
    """Return the pair; the second server replicates."""
    first, second = pair
    first.execute(
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {DATABASE}.t (id int PRIMARY KEY, v int)",
        f"CREATE TABLE {DATABASE}.signals (id varchar(64) PRIMARY KEY, type varchar(32), data text)",
        f"INSERT INTO {DATABASE}.t VALUES (1, 0), (2, 0)",
    )
    replica_of(first, second)
    wait_for_replica(first, second)
    yield first, second
    stop_replica(second)
    for server in pair:
        server.execute(f"DROP DATABASE {DATABASE}")
    first.execute("RESET MASTER" if first.flavor == "mariadb" else "RESET BINARY LOGS AND GTIDS")
    second.execute("RESET MASTER" if first.flavor == "mariadb" else "RESET BINARY LOGS AND GTIDS")
    if first.flavor == "mariadb":
        second.execute("SET GLOBAL gtid_slave_pos = ''")


def options_of(server: MysqlServer, state: Path) -> dict[str, str]:
    return {
        **server.options(),
        "topic.prefix": "p",
        "state.dir": str(state),
        "database.include.list": DATABASE,
        "signal.data.collection": f"{DATABASE}.signals",
    }


def query_of(server: MysqlServer, state: Path, offset: dict[str, Any] | None = None) -> InProcess:
    return InProcess(options_of(server, state), offset)


def changes(rows: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    found = []
    for row in rows:
        if row["table"] == "t" and row["value"] is not None:
            after = json.loads(row["value"])["after"]
            found.append((row["op"], after["id"], after["v"]))
    return found


def test_the_query_goes_on_at_the_replica(shop: Pair, tmp_path: Path) -> None:
    first, second = shop
    query = query_of(first, tmp_path)
    rows = query.drain()
    first.execute("UPDATE t SET v = 1", database=DATABASE)
    rows += query.drain()
    query.stop()
    first.execute("UPDATE t SET v = 2", "ALTER TABLE t ADD w int", database=DATABASE)
    wait_for_replica(first, second)
    stop_replica(second)
    second.execute("INSERT INTO t VALUES (3, 3, 3)", database=DATABASE)

    query = query_of(second, tmp_path, query.offset)
    rows += query.drain()
    assert Position.parse(query.offset["log"]).epoch == 1
    second.execute("INSERT INTO t VALUES (4, 4, 4)", database=DATABASE)
    rows += query.drain()
    query.stop()
    # Goes on there after a restart too, in the same epoch.
    second.execute("INSERT INTO t VALUES (5, 5, 5)", database=DATABASE)
    query = query_of(second, tmp_path, query.offset)
    rows += query.drain()
    data = json.dumps({"data-collections": [f"{DATABASE}.t"]})
    second.execute(f"INSERT INTO signals VALUES ('s', 'execute-snapshot', '{data}')", database=DATABASE)
    snapshot = query.drain()
    second.execute("UPDATE t SET v = 9 WHERE id = 5", database=DATABASE)
    later = query.drain()
    assert Position.parse(query.offset["log"]).epoch == 1
    query.stop()
    first_rows = [("r", 1, 0), ("r", 2, 0), ("u", 1, 1), ("u", 2, 1), ("u", 1, 2), ("u", 2, 2)]
    assert changes(rows) == [*first_rows, *(("c", i, i) for i in (3, 4, 5))]
    assert changes(snapshot) == [("r", 1, 2), ("r", 2, 2), ("r", 3, 3), ("r", 4, 4), ("r", 5, 5)]
    assert changes(later) == [("u", 5, 9)]
    positions = [row["position"] for row in rows + snapshot + later if row["table"] == "t"]
    assert positions == sorted(positions)


def test_the_name_leads_to_another_server_while_the_query_runs(
    shop: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = shop
    query = query_of(first, tmp_path)
    rows = query.drain()
    first.execute("UPDATE t SET v = 1", database=DATABASE)
    rows += query.drain()
    wait_for_replica(first, second)
    stop_replica(second)
    # As by a host name or a proxy.
    elsewhere = load_options(options_of(second, tmp_path))
    assert isinstance(elsewhere, BinlogOptions)
    monkeypatch.setattr(sessions, "connect", lambda _options: connect(elsewhere))
    with first.connect() as session, session.cursor() as cursor:
        cursor.execute("SELECT id FROM information_schema.processlist WHERE user = 'cdc'")
        for (thread,) in cursor.fetchall():
            cursor.execute(f"KILL {thread}")
    second.execute("UPDATE t SET v = 2", database=DATABASE)
    rows += query.drain()
    data = json.dumps({"data-collections": [f"{DATABASE}.t"]})
    second.execute(f"INSERT INTO signals VALUES ('s', 'execute-snapshot', '{data}')", database=DATABASE)
    rows += query.drain()
    second.execute("UPDATE t SET v = 3", database=DATABASE)
    rows += query.drain()
    query.stop()
    assert changes(rows) == [(op, i, v) for op, v in (("r", 0), ("u", 1), ("u", 2), ("r", 2), ("u", 3)) for i in (1, 2)]
    positions = [row["position"] for row in rows if row["table"] == "t"]
    assert positions == sorted(positions)


def test_a_server_that_lacks_delivered_transactions_is_refused(shop: Pair, tmp_path: Path) -> None:
    first, second = shop
    query = query_of(first, tmp_path)
    query.drain()
    stop_replica(second)
    first.execute("UPDATE t SET v = 1", database=DATABASE)
    query.drain()
    query.stop()
    moved = query_of(second, tmp_path, query.offset)
    with pytest.raises(CheckpointError, match="lacks transactions"):
        moved.drain()
    moved.stop()


def taken_over(shop: Pair, directory: Path, query: InProcess, lost: bool) -> InProcess:
    """Return the query at the replica, which has a row of its own; the spool of prepared transactions may be lost."""
    first, second = shop
    query.stop()
    wait_for_replica(first, second)
    stop_replica(second)
    if lost:
        for spool in directory.glob("*/spool"):
            shutil.rmtree(spool)
    second.execute(f"INSERT INTO {DATABASE}.t VALUES (4, 0)")
    return query_of(second, directory, query.offset)


@pytest.mark.parametrize("lost", [False, True])
def test_prepared_transactions_are_committed_at_the_replica(shop: Pair, tmp_path: Path, lost: bool) -> None:
    first, second = shop
    query = query_of(first, tmp_path)
    query.drain()
    with first.connect(DATABASE) as session, session.cursor() as cursor:
        for statement in ("START", "END", "PREPARE"):
            cursor.execute(f"XA {statement} 'moved'")
            if statement == "START":
                cursor.execute("INSERT INTO t VALUES (10, 1)")
    first.execute(f"INSERT INTO {DATABASE}.t VALUES (3, 0)")
    assert changes(query.drain()) == [("c", 3, 0)]
    moved = taken_over(shop, tmp_path, query, lost)
    try:
        assert changes(moved.drain()) == [("c", 4, 0)]
        second.execute("XA COMMIT 'moved'")
        assert changes(moved.drain()) == [("c", 10, 1)]
        moved.restart()
        second.execute(f"INSERT INTO {DATABASE}.t VALUES (5, 0)")
        assert changes(moved.drain()) == [("c", 5, 0)]
    finally:
        moved.stop()
        decide(first, "ROLLBACK", "'moved'")


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("received", [False, True])
def test_a_transaction_older_than_the_query_is_committed_at_the_replica(
    shop: Pair, tmp_path: Path, lost: bool, received: bool
) -> None:
    """It was found when the query began; the replica takes over while it is prepared."""
    first, second = shop
    if first.flavor == "mysql":
        first.execute(f"GRANT XA_RECOVER_ADMIN ON *.* TO '{first.user}'@'%'")
    Branch(first, "'old'", "INSERT INTO t VALUES (10, 1)", database=DATABASE).prepare()
    query = query_of(first, tmp_path)
    query.drain()
    if received:
        first.execute(f"INSERT INTO {DATABASE}.t VALUES (3, 0)")
        assert changes(query.drain()) == [("c", 3, 0)]
    moved = taken_over(shop, tmp_path, query, lost)
    try:
        assert changes(moved.drain()) == [("c", 4, 0)]
        second.execute("XA COMMIT 'old'")
        assert changes(moved.drain()) == [("c", 10, 1)]
    finally:
        moved.stop()
        decide(first, "ROLLBACK", "'old'")
        with suppress(pymysql.err.MySQLError):
            second.execute("XA ROLLBACK 'old'")
