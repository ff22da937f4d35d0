"""Replicas whose binlog lacks transactions that they have executed: the query goes on there, or says what is gone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from floodmark.errors import LogGoneError
from tests.integration.test_mysql_xa import Branch, decide
from tests.support.binlog import gtids
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer
from tests.support.replication import SETTINGS, replica_of, stop_replica, wait_for_replica

GONE = r"lacks transactions that come after|purged transactions that the checkpoint still needs"
Pair = tuple[MysqlServer, MysqlServer]


@pytest.fixture(params=["mysql", "mariadb"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Return a server with a table, and another that is empty."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(MysqlServer(request.param, **SETTINGS[request.param])) for _ in range(2))
        first.execute("CREATE DATABASE xa", "CREATE TABLE xa.t (id int PRIMARY KEY)")
        yield first, second


def insert(server: MysqlServer, *ids: int) -> None:
    server.execute(*(f"INSERT INTO xa.t VALUES ({one})" for one in ids))


def make_copy(first: MysqlServer, second: MysqlServer, *ids: int) -> None:
    """Let the second server be a replica that was filled from a dump of the first one, not from its log."""
    rows = ", ".join(f"({one})" for one in ids)
    second.execute(
        "SET sql_log_bin = 0",
        "CREATE DATABASE xa",
        "CREATE TABLE xa.t (id int PRIMARY KEY)",
        f"INSERT INTO xa.t VALUES {rows}",
    )
    if first.flavor == "mariadb":
        second.execute(f"SET GLOBAL gtid_slave_pos = '{gtids(first)}'")
    else:
        second.execute("RESET BINARY LOGS AND GTIDS", f"SET GLOBAL gtid_purged = '{gtids(first)}'")
    replica_of(first, second)


def take_over(first: MysqlServer, second: MysqlServer) -> None:
    wait_for_replica(first, second)
    stop_replica(second)


def let_log(server: MysqlServer, whether: bool) -> None:
    """Restart a replica that logs what it replicates from now on, or doesn't."""
    stop_replica(server)
    name = "log_slave_updates" if server.flavor == "mariadb" else "log_replica_updates"
    server.settings[name] = "ON" if whether else "OFF"
    server.restart()
    server.execute("START SLAVE" if server.flavor == "mariadb" else "START REPLICA")


def query_of(server: MysqlServer, state: Path, offset: dict[str, Any] | None = None, **more: str) -> InProcess:
    options = {**server.options(), "topic.prefix": "p", "state.dir": str(state), "table.include.list": r"xa\.t"}
    return InProcess({**options, **more}, offset)


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return [json.loads(row["value"])["after"]["id"] for row in rows if row["table"] == "t" and row["value"]]


@pytest.mark.parametrize("delivered", [2, 3, 4])
def test_a_replica_was_made_from_a_copy(pair: Pair, tmp_path: Path, delivered: int) -> None:
    """The copy had rows 1 to 3; what comes after the row that was delivered last is in its log from 4 on."""
    first, second = pair
    query = query_of(first, tmp_path)
    query.drain()
    for one in (1, 2, 3):
        insert(first, one)
        if one <= delivered:
            assert ids(query.drain()) == [one]
    make_copy(first, second, 1, 2, 3)
    insert(first, 4)
    if delivered == 4:
        assert ids(query.drain()) == [4]
    insert(first, 5)
    take_over(first, second)
    second.execute("FLUSH BINARY LOGS")
    insert(second, 6)
    query.stop()
    moved = query_of(second, tmp_path, query.offset)
    try:
        if delivered >= 3:
            assert ids(moved.drain()) == list(range(delivered + 1, 7))
            insert(second, 7)
            assert ids(moved.drain()) == [7]
            return
        with pytest.raises(LogGoneError, match=GONE):
            moved.drain()
    finally:
        moved.stop()
    again = query_of(second, tmp_path, query.offset, **{"snapshot.mode": "when_needed"})
    assert sorted(ids(again.drain())) == [1, 2, 3, 4, 5, 6]
    again.stop()


@pytest.mark.parametrize("delivered", [2, 5])
def test_a_replica_did_not_log_for_a_time(pair: Pair, tmp_path: Path, delivered: int) -> None:
    """Rows 3 and 4 are not in the replica's log."""
    first, second = pair
    replica_of(first, second)
    query = query_of(first, tmp_path)
    query.drain()
    insert(first, 1, 2)
    assert ids(query.drain()) == [1, 2]
    insert(first, 3)
    wait_for_replica(first, second)
    let_log(second, False)
    insert(first, 4, 5)
    wait_for_replica(first, second)
    if delivered == 5:
        assert ids(query.drain()) == [3, 4, 5]
    let_log(second, True)
    insert(first, 6)
    take_over(first, second)
    insert(second, 7)
    query.stop()
    moved = query_of(second, tmp_path, query.offset)
    try:
        if delivered == 5:
            assert ids(moved.drain()) == [6, 7]
        else:
            with pytest.raises(LogGoneError, match=GONE):
                moved.drain()
    finally:
        moved.stop()


@pytest.mark.parametrize("lost", [False, True])
def test_a_replica_has_no_log_of_a_prepared_transaction(pair: Pair, tmp_path: Path, lost: bool) -> None:
    """Its rows come from the spool; if that is lost, the error names the transaction.

    MySQL forgets a prepared transaction that it has not logged when it is restarted, so its log is purged instead.
    """
    logs = pair[0].flavor == "mysql"
    first, second = pair
    replica_of(first, second)
    query = query_of(first, tmp_path)
    query.drain()
    insert(first, 1)
    wait_for_replica(first, second)
    if not logs:
        let_log(second, False)
    Branch(first, "'hidden'", "INSERT INTO t VALUES (10)").prepare()
    insert(first, 2)
    wait_for_replica(first, second)
    if logs:
        second.purge_old_logs()
    else:
        let_log(second, True)
    insert(first, 3)
    assert ids(query.drain()) == [1, 2, 3]
    query.stop()
    take_over(first, second)
    insert(second, 4)
    decide(second, "COMMIT", "'hidden'")
    if lost:
        for spool in tmp_path.glob("*/spool"):
            shutil.rmtree(spool)
    moved = query_of(second, tmp_path, query.offset)
    try:
        if lost:
            with pytest.raises(LogGoneError, match="X'68696464656e',X'',1"):
                moved.drain()
        else:
            assert ids(moved.drain()) == [4, 10]
    finally:
        moved.stop()
        decide(first, "ROLLBACK", "'hidden'")
