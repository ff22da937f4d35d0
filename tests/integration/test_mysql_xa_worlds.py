"""XA transactions together with what else may change: compression, a log that was replaced, another server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.mysql.capture.stream import MysqlStream
from floodmark.connectors.mysql.reading import receiver
from floodmark.errors import FloodmarkError
from floodmark.spark.stream import captured_log
from tests.integration.test_mysql_xa import FLAVORS, Branch, Query
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer

ROWS = 120
LARGE = [f"INSERT INTO t VALUES ({n}, REPEAT('x', 20000))" for n in range(100, 100 + ROWS)]
"""About 2.4 MB, which is more than what stays compressed in a segment."""


@pytest.fixture(params=FLAVORS)
def server(request: pytest.FixtureRequest) -> Iterator[MysqlServer]:
    """Return a server of the test's own, which compresses its binlog."""
    compression = {"mysql": {"binlog_transaction_compression": "ON"}, "mariadb": {"log_bin_compress": "ON"}}
    settings: dict[str, str | None] = {**compression[request.param]}
    with MysqlServer(request.param, **settings) as found:
        found.execute(
            "CREATE DATABASE xa",
            "CREATE TABLE xa.t (id INT PRIMARY KEY, pad LONGTEXT)",
            "INSERT INTO xa.t VALUES (0, 'first')",
        )
        yield found


@pytest.fixture
def query(server: MysqlServer, tmp_path: Path) -> Iterator[Query]:
    """Return a query that has delivered what is there."""
    found = Query(server, tmp_path)
    assert found.drain() == [0]
    yield found
    found.stop()


@pytest.mark.parametrize("segment_bytes", ["65536", "16777216"])
@pytest.mark.parametrize("lost", [False, True])
def test_compressed_branches(server: MysqlServer, tmp_path: Path, segment_bytes: str, lost: bool) -> None:
    query = Query(server, tmp_path, segment_bytes=segment_bytes)
    try:
        assert query.drain() == [0]
        small = Branch(
            server, "'small'", "INSERT INTO t VALUES (1, REPEAT('y', 3000))", "UPDATE t SET pad = 'y' WHERE id = 1"
        )
        middle = [f"INSERT INTO t VALUES ({n}, REPEAT('m', 20000))" for n in range(20, 30)]
        Branch(server, "'middle'", *middle).prepare().end("ROLLBACK")
        large = Branch(server, "'large'", *LARGE).prepare()
        assert query.drain() == []
        Branch(server, "'one'", *(text.replace("(", "(1000 + ", 1) for text in LARGE)).run("XA COMMIT 'one' ONE PHASE")
        assert query.drain() == [1000 + n for n in range(100, 100 + ROWS)]
        query.restart(tmp_path if lost else None)
        server.execute("FLUSH BINARY LOGS")
        large.end("COMMIT")
        small.prepare().end("COMMIT")
        assert query.drain() == [*range(100, 100 + ROWS), 1, 1]
        middles = Branch(server, "'middle'", *middle).prepare()
        assert query.drain() == []
        middles.end("COMMIT")
        assert query.drain() == list(range(20, 30))
        positions = [str(row["position"]) for row in query.events if row["op"] in ("c", "u")]
        assert positions == sorted(set(positions))
    finally:
        query.stop()


def test_positions_do_not_depend_on_how_it_came(
    server: MysqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of a compressed branch lie where the whole does, whatever the size of segments is."""
    query = Query(server, tmp_path, snapshot_mode="no_data")
    query.drain()
    query.stop()
    begin = query.inner.offset
    branch = Branch(server, "'a'", *LARGE, "UPDATE t SET pad = 'z' WHERE id IN (101, 150, 199)").prepare()
    Branch(server, "'one'", *(text.replace("(", "(1000 + ", 1) for text in LARGE)).run("XA COMMIT 'one' ONE PHASE")
    server.execute("INSERT INTO xa.t VALUES (9, 'y')")
    branch.end("COMMIT")

    def rows(whole: int, segment_bytes: int) -> list[tuple[str, str, Any]]:
        monkeypatch.setattr(receiver, "WHOLE_BYTES", whole)
        again = InProcess({**query.options, "segment.bytes": str(segment_bytes)}, begin)
        found = again.drain()
        again.stop()
        return [(str(row["position"]), str(row["op"]), json.loads(row["key"])) for row in found if row["table"] == "t"]

    expected = rows(1 << 20, 16 << 20)
    assert len(expected) > 2 * ROWS
    for whole, segment_bytes in ((1 << 14, 65536), (1 << 14, 16 << 20), (1 << 30, 65536), (1 << 20, 1 << 20)):
        assert rows(whole, segment_bytes) == expected
    # Segments end where the log that has come by then does.
    monkeypatch.setattr(captured_log, "BACKLOG_WAIT_S", 0.0)
    assert rows(1 << 20, 16 << 20) == expected


@pytest.mark.parametrize("lost", [False, True])
def test_the_log_was_replaced_while_a_branch_was_prepared(
    server: MysqlServer, query: Query, tmp_path: Path, lost: bool
) -> None:
    branch = Branch(server, "'a'", "INSERT INTO t VALUES (1, 'x')").prepare()
    server.execute("INSERT INTO xa.t VALUES (2, 'y')")
    assert query.drain() == [2]
    query.stop()
    branch.end("ROLLBACK")
    reset(server)
    again = Branch(server, "'a'", "INSERT INTO t VALUES (1, 'other')").prepare()
    for n in range(10, 40):
        server.execute(f"INSERT INTO xa.t VALUES ({n}, REPEAT('z', 100))")
    again.end("COMMIT")
    query.restart(tmp_path if lost else None)
    # The server may stumble over the place itself, where no event begins.
    stumbles = "exceeded max_allowed_packet|middle of event"
    with pytest.raises(FloodmarkError, match=rf"not the one that|not those that|{stumbles}|ends at"):
        query.drain()


def test_the_log_is_replaced_while_it_is_read_again(
    server: MysqlServer, query: Query, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch = Branch(server, "'a'", "INSERT INTO t VALUES (1, 'x')").prepare()
    server.execute("INSERT INTO xa.t VALUES (2, 'y')")
    assert query.drain() == [2]
    server.execute("INSERT INTO xa.t VALUES (3, 'y')")
    go_on = MysqlStream._go_on
    replaced: list[bool] = []

    def replace_log(stream: MysqlStream, rereading: Any) -> None:
        if not replaced:
            branch.end("ROLLBACK")
            reset(server)
            replaced.append(True)
        go_on(stream, rereading)

    monkeypatch.setattr(MysqlStream, "_go_on", replace_log)
    query.restart(tmp_path)
    with pytest.raises(FloodmarkError, match=r"not the one that|not those that|exceeded max_allowed_packet|ends at"):
        query.drain()
    assert replaced


def test_a_branch_is_committed_in_a_log_that_lost_state_is_read_from(
    server: MysqlServer, query: Query, tmp_path: Path
) -> None:
    """What is read again ends at the delivered position, whatever else the log holds by then."""
    first = Branch(server, "'first'", *LARGE).prepare()
    second = Branch(server, "'second'", "INSERT INTO t VALUES (1, 'x')").prepare()
    server.execute("INSERT INTO xa.t VALUES (2, 'y')")
    assert query.drain() == [2]
    query.stop()
    second.end("COMMIT")
    first.end("ROLLBACK")
    third = Branch(server, "'first'", "INSERT INTO t VALUES (3, 'x')").prepare()
    server.execute("FLUSH BINARY LOGS")
    third.end("COMMIT")
    shutil.rmtree(next(tmp_path.glob("*/spool")))
    query.restart()
    assert query.drain() == [1, 3]


def test_a_statement_in_a_branch_is_not_passed_over(server: MysqlServer, query: Query) -> None:
    """The log holds the text of a statement, not its rows: the table is set aside when the branch is committed."""
    with server.connect("xa") as session, session.cursor() as cursor:
        for statement in (
            "SET SESSION binlog_format = STATEMENT",
            "XA START 's'",
            "UPDATE t SET pad = 'changed' WHERE id = 0",
            "XA END 's'",
            "XA PREPARE 's'",
        ):
            cursor.execute(statement)
        assert query.drain() == []
        assert not query.inner.offset["aside"]
        cursor.execute("XA COMMIT 's'")
    query.drain()
    (aside,) = query.inner.offset["aside"]
    assert "binlog_format was not ROW" in str(aside)


def reset(server: MysqlServer) -> None:
    server.execute("RESET MASTER" if server.flavor == "mariadb" else "RESET BINARY LOGS AND GTIDS")
