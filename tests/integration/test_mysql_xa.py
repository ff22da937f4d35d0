"""XA transactions of MySQL and MariaDB: delivered when they are committed, whatever lies between."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.schema.catalog import read_server
from floodmark.connectors.mysql.server.connection import connect
from floodmark.connectors.mysql.snapshot.read_point import MysqlReadPoint
from floodmark.connectors.mysql.snapshot.read_points import ReadPoints
from floodmark.connectors.mysql.source import log
from floodmark.errors import LockTimeoutError, LogGoneError
from floodmark.logger import get_logger
from tests.support.binlog import Login
from tests.support.inprocess import InProcess
from tests.support.mysql import Flavor, MysqlServer

POINTS_S = int(os.environ.get("FLOODMARK_GENERATED_CASES", "250")) / 125
VIEWS, POINTS_LIMIT_S = 4, 240.0
"""How many different views there must be, and how long a busy machine may take for them."""
FLAVORS: tuple[Flavor, ...] = ("mysql", "mariadb")


@pytest.fixture(params=FLAVORS)
def server(request: pytest.FixtureRequest) -> Iterator[MysqlServer]:
    """Return a server of the test's own."""
    with MysqlServer(request.param) as found:
        found.execute(
            "CREATE DATABASE xa",
            "CREATE TABLE xa.t (id INT PRIMARY KEY, pad LONGTEXT)",
            "INSERT INTO xa.t VALUES (0, 'first')",
        )
        yield found


class Branch:
    """An XA transaction in a session of its own."""

    def __init__(self, server: MysqlServer, xid: str, *statements: str, database: str = "xa") -> None:
        self.server, self.xid = server, xid
        self.session: pymysql.Connection[Any] = server.connect(database)
        self.run(f"XA START {xid}", *statements, f"XA END {xid}")

    def run(self, *statements: str) -> None:
        with self.session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def prepare(self) -> Branch:
        """Prepare it, and leave it to other sessions."""
        self.run(f"XA PREPARE {self.xid}")
        self.session.close()
        return self

    def end(self, how: str) -> None:
        """Commit it or roll it back from another session."""
        decide(self.server, how, self.xid)


def decide(server: MysqlServer, how: str, xid: str) -> None:
    """End a prepared branch; MariaDB lets others do so once it has noticed that its session is gone."""
    with server.connect() as session, session.cursor() as cursor:
        for attempt in range(200):
            try:
                cursor.execute(f"XA {how} {xid}")
                return
            except pymysql.err.MySQLError:
                if attempt == 199:
                    raise
                cursor.execute("DO SLEEP(0.02)")


class Query:
    """A query that is followed as a sink would, and may be killed at any time."""

    def __init__(self, server: MysqlServer, state: Path, **options: str) -> None:
        self.options = {
            **server.options(),
            "topic.prefix": "p",
            "state.dir": str(state),
            "table.include.list": "xa\\.t",
            "segment.bytes": "65536",
            "max.batch.rows": "16",
            "notification.enabled.channels": "sink",
            "notification.sink.topic.name": "told",
            **{name.replace("_", "."): value for name, value in options.items()},
        }
        self.inner = InProcess(self.options)
        self.rows: dict[int, str | None] = {}
        self.events: list[dict[str, Any]] = []

    def drain(self) -> list[int]:
        """Deliver all there is; return the ids of the rows that came, in order."""
        found = []
        for row in sorted(self.inner.drain(), key=lambda row: str(row["position"])):
            self.events.append(row)
            if row["table"] != "t" or row["value"] is None:
                continue
            value = json.loads(row["value"])
            one = (value["after"] or value["before"])["id"]
            self.rows[one] = None if value["after"] is None else value["after"]["pad"]
            found.append(one)
        return found

    def restart(self, lose_state: Path | None = None) -> None:
        """Go on from the checkpoint in another process."""
        self.inner.stop()
        if lose_state is not None:
            for directory in lose_state.glob("*/spool"):
                shutil.rmtree(directory)
        self.inner = InProcess(self.options, self.inner.offset)

    def stop(self) -> None:
        self.inner.stop()


@pytest.fixture
def query(server: MysqlServer, tmp_path: Path) -> Iterator[Query]:
    """Return a query that has delivered what is there."""
    found = Query(server, tmp_path)
    assert found.drain() == [0]
    yield found
    found.stop()


def test_rows_come_with_the_commit(server: MysqlServer, query: Query) -> None:
    branch = Branch(server, "'a', 'b', 7", "INSERT INTO t VALUES (1, 'a')", "UPDATE t SET pad = 'aa' WHERE id = 1")
    other = Branch(server, "X'00ff27', X'', 2147483647", "INSERT INTO t VALUES (2, 'b')").prepare()
    assert query.drain() == []
    branch.prepare()
    server.execute("INSERT INTO xa.t VALUES (3, 'between')")
    assert query.drain() == [3]
    server.execute("FLUSH BINARY LOGS")
    branch.end("COMMIT")
    server.execute("UPDATE xa.t SET pad = 'after' WHERE id = 1")
    assert query.drain() == [1, 1, 1]
    assert query.rows == {0: "first", 1: "after", 3: "between"}
    other.end("ROLLBACK")
    # The name is free again.
    again = Branch(server, "X'00ff27', X'', 2147483647", "INSERT INTO t VALUES (4, 'c')").prepare()
    assert query.drain() == []
    again.end("COMMIT")
    Branch(server, "'one'", "INSERT INTO t VALUES (5, 'd')").run("XA COMMIT 'one' ONE PHASE")
    Branch(server, "'empty'").run("XA PREPARE 'empty'", "XA COMMIT 'empty'")
    Branch(server, "'unprepared'", "INSERT INTO t VALUES (6, 'e')").run("XA ROLLBACK 'unprepared'")
    assert query.drain() == [4, 5]


def test_place_and_time_are_those_of_the_commit(server: MysqlServer, query: Query) -> None:
    branch = Branch(server, "'a'", "INSERT INTO t VALUES (1, 'a')").prepare()
    server.execute("INSERT INTO xa.t VALUES (2, 'b')")
    branch.end("COMMIT")
    server.execute("INSERT INTO xa.t VALUES (3, 'c')")
    query.drain()
    rows = {
        json.loads(row["value"])["after"]["id"]: row for row in query.events if row["table"] == "t" and row["op"] == "c"
    }
    sources = {one: json.loads(row["value"])["source"] for one, row in rows.items()}
    assert rows[2]["position"] < rows[1]["position"] < rows[3]["position"]
    assert sources[2]["pos"] < sources[1]["pos"] < sources[3]["pos"]
    assert sources[2]["ts_ms"] <= sources[1]["ts_ms"] <= sources[3]["ts_ms"]
    numbers = [int(sources[one]["gtid"].replace(":", "-").rsplit("-", 1)[1]) for one in (2, 1, 3)]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("kill", [False, True])
def test_restarts_of_the_query_and_the_server(
    server: MysqlServer, query: Query, tmp_path: Path, kill: bool, lost: bool
) -> None:
    branches = [Branch(server, f"'x{n}'", f"INSERT INTO t VALUES ({n}, 'x')").prepare() for n in range(1, 6)]
    assert query.drain() == []
    server.restart(kill)
    query.restart(tmp_path if lost else None)
    assert query.drain() == []
    server.execute("INSERT INTO xa.t VALUES (9, 'y')")
    assert query.drain() == [9]
    query.restart(tmp_path if lost else None)
    branches[1].end("COMMIT")
    branches[0].end("ROLLBACK")
    assert query.drain() == [2]
    query.restart(tmp_path if lost else None)
    server.execute("FLUSH BINARY LOGS")
    branches[3].end("COMMIT")
    branches[2].end("COMMIT")
    assert query.drain() == [4, 3]
    query.restart(tmp_path if lost else None)
    assert query.drain() == []
    branches[4].end("COMMIT")
    assert query.drain() == [5]


def test_a_branch_is_older_than_the_log(server: MysqlServer, query: Query) -> None:
    branches = [Branch(server, f"'x{n}'", f"INSERT INTO t VALUES ({n}, 'x')").prepare() for n in (1, 2)]
    server.execute("INSERT INTO xa.t VALUES (9, 'y')")
    assert query.drain() == [9]
    server.purge_old_logs()
    assert query.drain() == []
    query.restart()
    branches[0].end("COMMIT")
    assert query.drain() == [1]
    server.purge_old_logs()
    assert query.drain() == []
    query.restart()
    branches[1].end("COMMIT")
    assert query.drain() == [2]


def test_a_branch_is_in_no_log_any_more(server: MysqlServer, query: Query, tmp_path: Path) -> None:
    branch = Branch(server, "'gone'", "INSERT INTO t VALUES (1, 'x')").prepare()
    server.execute("INSERT INTO xa.t VALUES (9, 'y')")
    assert query.drain() == [9]
    server.purge_old_logs()
    assert query.drain() == []
    query.restart(tmp_path)
    branch.end("COMMIT")
    with pytest.raises(LogGoneError, match="X'676f6e65',X'',1"):
        query.drain()


def test_large_branches(server: MysqlServer, query: Query, tmp_path: Path) -> None:
    inserts = [f"INSERT INTO t VALUES ({n}, REPEAT('x', 20000))" for n in range(1, 31)]
    branch = Branch(server, "'large'", *inserts).prepare()
    Branch(server, "'one'", *(text.replace("(", "(1000 + ", 1) for text in inserts)).run("XA COMMIT 'one' ONE PHASE")
    assert query.drain() == [1000 + n for n in range(1, 31)]
    query.restart()
    branch.end("COMMIT")
    server.execute("INSERT INTO xa.t VALUES (99, 'y')")
    # Each micro-batch is killed before it is committed.
    inner = query.inner
    inner.reader.prepareForTriggerAvailableNow()
    ids: list[int] = []
    batches = 0
    while True:
        end = inner.reader.latestOffset(inner.offset, inner.reader.getDefaultReadLimit())
        if end == inner.offset:
            break
        first, again = inner.run(end), None
        query.restart(tmp_path if batches % 2 else None)
        query.inner.offset, inner = inner.offset, query.inner
        again = inner.run(end)
        assert [row["position"] for row in again] == [row["position"] for row in first]
        inner.offset = end
        inner.reader.commit(end)
        inner.reader.prepareForTriggerAvailableNow()
        ids += [json.loads(row["value"])["after"]["id"] for row in again if row["table"] == "t"]
        batches += 1
    assert ids == [*range(1, 31), 99]
    assert batches > 1


@pytest.mark.parametrize("mode", ["initial", "no_data"])
@pytest.mark.parametrize("listed", [False, True])
def test_branches_that_are_older_than_the_query(server: MysqlServer, tmp_path: Path, mode: str, listed: bool) -> None:
    if listed and server.flavor == "mysql":
        server.execute(f"GRANT XA_RECOVER_ADMIN ON *.* TO '{server.user}'@'%'")
    inserts = [f"INSERT INTO t VALUES ({n}, REPEAT('x', 20000))" for n in range(11, 41)]
    branches = [
        Branch(server, "'x1'", "INSERT INTO t VALUES (1, 'x')").prepare(),
        Branch(server, "'x2'", *inserts).prepare(),
        Branch(server, "'x3'", "INSERT INTO t VALUES (3, 'x')").prepare(),
    ]
    server.execute("FLUSH BINARY LOGS", "INSERT INTO xa.t VALUES (8, 'y')")
    query = Query(server, tmp_path, snapshot_mode=mode)
    try:
        assert sorted(query.drain()) == ([0, 8] if mode == "initial" else [])
        branches[0].end("COMMIT")
        assert query.drain() == [1]
        query.restart()
        branches[2].end("ROLLBACK")
        branches[1].end("COMMIT")
        assert query.drain() == list(range(11, 41))
    finally:
        query.stop()


def test_a_branch_is_in_no_log_that_the_query_can_read(server: MysqlServer, tmp_path: Path) -> None:
    branch = Branch(server, "'early'", "INSERT INTO t VALUES (1, 'x')").prepare()
    server.purge_old_logs()
    query = Query(server, tmp_path)
    try:
        assert query.drain() == [0]
        branch.end("COMMIT")
        with pytest.raises(LogGoneError, match="X'6561726c79',X'',1"):
            query.drain()
        query.options["event.deserialization.failure.handling.mode"] = "warn"
        query.restart()
        server.execute("INSERT INTO xa.t VALUES (2, 'x')")
        assert query.drain() == [2]
        assert any("X'6561726c79',X'',1" in str(event["value"]) for event in query.events)
    finally:
        query.stop()


@pytest.mark.parametrize("listed", [False, True])
def test_a_query_begins_beside_prepared_branches(
    server: MysqlServer,
    tmp_path: Path,
    listed: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is prepared is kept from the start on, or the log says that it is not, and the commit ends the query."""
    monkeypatch.setattr(log, "log", get_logger(log.__name__))
    if server.flavor == "mysql" and listed:
        server.execute(f"GRANT XA_RECOVER_ADMIN ON *.* TO '{server.user}'@'%'")
    branch = Branch(server, "'early'", "INSERT INTO t VALUES (1, 'x')").prepare()
    query = Query(server, tmp_path)
    try:
        assert query.drain() == [0]
        server.execute("INSERT INTO xa.t VALUES (2, 'y')")
        assert query.drain() == [2]
        server.purge_old_logs()
        branch.end("COMMIT")
        told = capsys.readouterr().err
        if server.flavor == "mysql" and not listed:
            assert "prepared_transactions_are_unknown" in told
            assert "GRANT XA_RECOVER_ADMIN" in told
            with pytest.raises(LogGoneError, match="X'6561726c79',X'',1"):
                query.drain()
        else:
            assert "prepared_transactions_are_unknown" not in told
            assert query.drain() == [1]
    finally:
        query.stop()


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_branch_that_was_not_logged_is_not_an_earlier_one(server: MysqlServer, tmp_path: Path, end: str) -> None:
    """MariaDB logs the commit of a branch whose session had logged nothing; its name may have been another's."""
    Branch(server, "'x'", "INSERT INTO t VALUES (1, 'logged')").prepare().end(end)
    query = Query(server, tmp_path)
    try:
        query.drain()
        server.execute("FLUSH BINARY LOGS")
        with server.connect("xa") as session, session.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0")
            for statement in ("XA START 'x'", "INSERT INTO t VALUES (2, 'unlogged')", "XA END 'x'", "XA PREPARE 'x'"):
                cursor.execute(statement)
        decide(server, "COMMIT", "'x'")
        server.execute("INSERT INTO xa.t VALUES (3, 'y')")
        if server.flavor == "mariadb":
            with pytest.raises(LogGoneError, match="sql_log_bin=0"):
                query.drain()
        else:
            assert query.drain() == [3]
    finally:
        query.stop()


@pytest.mark.parametrize("way", ["exact", "at once", "window", "marks"])
def test_read_points_know_what_is_committed(server: MysqlServer, way: str) -> None:
    """Each view shows the commits before its place in the log, and no other; a window those before its beginning."""
    sessions = 4
    server.execute("CREATE TABLE xa.c (id INT PRIMARY KEY, n INT)", "INSERT INTO xa.c VALUES (0,0),(1,0),(2,0),(3,0)")
    server.execute("CREATE TABLE xa.marks (id INT AUTO_INCREMENT PRIMARY KEY)")
    stop = threading.Event()

    def write(number: int) -> None:
        with server.connect("xa") as session, session.cursor() as cursor:
            for count in itertools.count():
                xid = f"'w{number}-{count}'"
                for statement in ("START", "END", "PREPARE", "COMMIT"):
                    cursor.execute(f"XA {statement} {xid}")
                    if statement == "START":
                        cursor.execute("UPDATE c SET n = n + 1 WHERE id = %s", (number,))
                if stop.is_set():
                    return

    writers = [threading.Thread(target=write, args=(number,)) for number in range(sessions)]
    for writer in writers:
        writer.start()
    login = Login(server.port)
    seen: list[tuple[str, str, dict[int, int]]] = []

    def different() -> set[tuple[int, ...]]:
        return {tuple(counts[number] for number in range(sessions)) for _, _, counts in seen}

    with connect(login) as conn:
        points = ReadPoints(lambda: connect(login), read_server(conn), lambda end: str(end.position(0)))
        begun = time.monotonic()
        while (spent := time.monotonic() - begun) < POINTS_S or (len(different()) < VIEWS and spent < POINTS_LIMIT_S):
            low = str(points.end_of_log(conn).position(0))
            point: MysqlReadPoint | None
            if way == "marks":
                server.execute("INSERT INTO xa.marks () VALUES ()")
                point = points.open_view()
            elif way == "window" and server.flavor == "mysql":
                point = points.open_window()
            else:
                # MariaDB tells the place of every view.
                point = points.open(2, may_lock=way == "exact")
            if point is not None:
                seen.append(
                    (low if way == "marks" else point.low, point.position, dict(point.query("SELECT id, n FROM xa.c")))
                )
                point.release()
    stop.set()
    for writer in writers:
        writer.join()
    commits = xa_commits(server)
    for low, high, counts in seen:
        for number in range(sessions):
            least, most = (sum(at <= place and one == number for at, one in commits) for place in (low, high))
            assert least <= counts[number] <= most
    assert len(different()) >= VIEWS


@pytest.mark.parametrize("blocked", [False, True])
def test_a_branch_that_stays_prepared_stops_nobody(server: MysqlServer, blocked: bool) -> None:
    """Read points are opened, or refused in bounded time if a statement runs on; whoever writes waits for a moment."""
    Branch(server, "'stays'", "INSERT INTO t VALUES (1, 'x')").prepare()
    running = Branch(server, "'runs'", "INSERT INTO t VALUES (2, 'x')")
    stop = threading.Event()
    waits: list[float] = []

    def write() -> None:
        with server.connect("xa") as session, session.cursor() as cursor:
            for number in itertools.count(100):
                begun = time.monotonic()
                cursor.execute("INSERT INTO t VALUES (%s, 'y')", (number,))
                waits.append(time.monotonic() - begun)
                if stop.is_set():
                    return

    def run_on() -> None:
        with server.connect("xa") as session, session.cursor() as cursor, contextlib.suppress(pymysql.err.MySQLError):
            cursor.execute("UPDATE t SET pad = CONCAT(pad, SLEEP(300)) WHERE id = 0")

    threads = [threading.Thread(target=write)] + [threading.Thread(target=run_on)] * blocked
    for thread in threads:
        thread.start()
    find = "SELECT id FROM information_schema.processlist WHERE info LIKE 'UPDATE t SET pad = CONCAT%'"
    try:
        login = Login(server.port)
        with connect(login) as conn, server.connect() as admin, admin.cursor() as cursor:
            while blocked and not cursor.execute(find):
                time.sleep(0.02)
            points = ReadPoints(
                lambda: connect(login), read_server(conn), lambda end: str(end.position(0)), "minimal", 3
            )
            for _ in range(1 if blocked else 10):
                begun = time.monotonic()
                if blocked and server.flavor == "mariadb":
                    with pytest.raises(LockTimeoutError):
                        points.open(2)
                else:
                    point = points.open(2)
                    assert point is not None
                    assert not {1, 2} & {int(row[0]) for row in point.query("SELECT id FROM xa.t")}
                    point.release()
                assert time.monotonic() - begun < 30
            if blocked:
                cursor.execute(find)
                for (thread_id,) in cursor.fetchall():
                    cursor.execute(f"KILL {thread_id}")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    # Of the six seconds, writers wait for one at a time.
    assert max(waits) < 5
    running.run("XA PREPARE 'runs'")


def xa_commits(server: MysqlServer) -> list[tuple[str, int]]:
    """Return the positions behind the log's XA COMMITs, and the writers."""
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        files = [str(row[0]) for row in cursor.fetchall()]
    found = []
    for file in files:
        text = server.run_tool("mysqlbinlog", "--read-from-remote-server", file, capture_output=True).stdout
        offset = 0
        for line in text.decode(errors="replace").splitlines():
            if (at := re.search(r"end_log_pos (\d+)", line)) is not None:
                offset = int(at[1])
            if (xid := re.match(r"XA COMMIT X'([0-9a-fA-F]+)'", line)) is not None:
                place = Position(0, int(file.rsplit(".", 1)[1]), offset)
                found.append((str(place), int(bytes.fromhex(xid[1]).decode()[1])))
    return found


def test_transaction_metadata(server: MysqlServer, tmp_path: Path) -> None:
    query = Query(server, tmp_path, provide_transaction_metadata="true")
    try:
        query.drain()
        query.events.clear()
        for how in ("'two'", "'rolled back'", "'large'"):
            size = 20000 if how == "'large'" else 1
            first = {"'two'": 10, "'rolled back'": 40, "'large'": 70}[how]
            inserts = [f"INSERT INTO t VALUES ({n}, REPEAT('x', {size}))" for n in range(first, first + 20)]
            branch = Branch(server, how, *inserts).prepare()
            server.execute(f"INSERT INTO xa.t VALUES ({first - 1}, 'y')")
            branch.end("ROLLBACK" if how == "'rolled back'" else "COMMIT")
        Branch(server, "'one'", "INSERT INTO t VALUES (200, 'x')").run("XA COMMIT 'one' ONE PHASE")
        query.drain()
    finally:
        query.stop()
    told: list[tuple[str, int | None]] = []
    inside: list[int] = []
    block: dict[str, Any] = {}
    for row in query.events:
        value = json.loads(row["value"])
        if row["topic"] == "p.transaction":
            told.append((value["status"], value["event_count"]))
            if value["status"] == "END":
                assert inside == list(range(1, len(inside) + 1))
                assert value["event_count"] == len(inside)
                assert value["id"] == block["id"]
            inside = []
        else:
            block = value["transaction"]
            inside.append(block["total_order"])
    one = [("BEGIN", None), ("END", 1)]
    many = [("BEGIN", None), ("END", 20)]
    assert told == [*one, *many, *one, *one, *many, *one]


def test_a_signal_comes_with_the_commit(server: MysqlServer, tmp_path: Path) -> None:
    server.execute("CREATE TABLE xa.signals (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data TEXT)")
    server.execute(f"GRANT INSERT, DELETE ON xa.* TO {server.user}")
    query = Query(server, tmp_path, snapshot_mode="no_data", signal_data_collection="xa.signals")
    try:
        assert query.drain() == []
        data = '{"type": "incremental", "data-collections": ["xa.t"]}'
        branch = Branch(server, "'s'", f"INSERT INTO signals VALUES ('1', 'execute-snapshot', '{data}')").prepare()
        server.execute("INSERT INTO xa.t VALUES (1, 'y')")
        assert query.drain() == [1]
        branch.end("COMMIT")
        found: list[int] = []
        while 0 not in found:
            found += query.drain()
    finally:
        query.stop()


def test_a_lost_branch_is_replaced_by_a_snapshot(server: MysqlServer, tmp_path: Path) -> None:
    query = Query(server, tmp_path, snapshot_mode="when_needed")
    try:
        query.drain()
        branch = Branch(server, "'gone'", "INSERT INTO t VALUES (1, 'x')").prepare()
        server.execute("INSERT INTO xa.t VALUES (9, 'y')")
        query.drain()
        server.purge_old_logs()
        server.execute("INSERT INTO xa.t VALUES (10, 'y')")
        assert query.drain() == [10]
        branch.end("ROLLBACK")
        query.restart(tmp_path)
        assert sorted(query.drain()) == [0, 9, 10]
    finally:
        query.stop()


def test_compressed_transactions(tmp_path: Path) -> None:
    with MysqlServer("mysql", binlog_transaction_compression="ON") as server:
        server.execute("CREATE DATABASE xa", "CREATE TABLE xa.t (id INT PRIMARY KEY, pad LONGTEXT)")
        query = Query(server, tmp_path)
        try:
            query.drain()
            inserts = [f"INSERT INTO t VALUES ({n}, REPEAT('x', 20000))" for n in range(1, 31)]
            branch = Branch(server, "'large'", *inserts).prepare()
            rolled_back = Branch(server, "'back'", "INSERT INTO t VALUES (40, 'x')").prepare()
            Branch(server, "'one'", "INSERT INTO t VALUES (41, 'x')").run("XA COMMIT 'one' ONE PHASE")
            assert query.drain() == [41]
            query.restart()
            rolled_back.end("ROLLBACK")
            branch.end("COMMIT")
            assert query.drain() == list(range(1, 31))
        finally:
            query.stop()


def test_many_branches_in_one_segment(server: MysqlServer, tmp_path: Path) -> None:
    query = Query(server, tmp_path, segment_bytes="16777216", max_batch_rows="100000")
    try:
        query.drain()
        with server.connect("xa") as session, session.cursor() as cursor:
            for number in range(1, 401):
                for statement in ("START", "END", "PREPARE", "ROLLBACK" if number % 4 == 0 else "COMMIT"):
                    cursor.execute(f"XA {statement} 'x{number}'")
                    if statement == "START":
                        cursor.execute(f"INSERT INTO t VALUES ({number}, 'x')")
        batches = query.inner.batches
        assert query.drain() == [number for number in range(1, 401) if number % 4]
        assert query.inner.batches == batches + 1
    finally:
        query.stop()
