"""Views of MySQL's and MariaDB's tables at exact places of the log."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from floodmark.connectors.mysql.schema.catalog import read_server
from floodmark.connectors.mysql.server import binlogs
from floodmark.connectors.mysql.server.binlogs import LogEnd
from floodmark.connectors.mysql.server.connection import Connection
from floodmark.connectors.mysql.snapshot.read_point import MysqlReadPoint
from floodmark.connectors.mysql.snapshot.read_points import ReadPoints
from floodmark.errors import ConnectError, SourceStateError
from tests.support.mysql import MysqlServer
from tests.support.patience import within

ACCOUNTS = 20
TOTAL = 1000 * ACCOUNTS


def points(server: MysqlServer, locking: str = "none", **login: Any) -> ReadPoints:
    def connect() -> Connection:
        return server.connect(**login)

    with server.connect() as conn:
        described = read_server(conn)
    return ReadPoints(connect, described, lambda end: str(end.position(0)), locking)


def opened(found: MysqlReadPoint | None) -> MysqlReadPoint:
    assert found is not None
    return found


@contextmanager
def transfers(server: MysqlServer, sessions: int = 4) -> Iterator[threading.Event]:
    """Move money between two tables, and write down each transaction in a third, as long as the block lasts."""
    server.execute(
        "DROP DATABASE IF EXISTS bank",
        "CREATE DATABASE bank",
        "CREATE TABLE bank.a (id int PRIMARY KEY, v int)",
        "CREATE TABLE bank.b (id int PRIMARY KEY, v int)",
        "CREATE TABLE bank.done (id int AUTO_INCREMENT PRIMARY KEY)",
    )
    rows = ", ".join(f"({i}, 500)" for i in range(ACCOUNTS))
    server.execute(f"INSERT INTO bank.a VALUES {rows}", f"INSERT INTO bank.b VALUES {rows}")
    stop, started = threading.Event(), threading.Semaphore(0)

    def move(number: int) -> None:
        with server.connect("bank", autocommit=False) as session, session.cursor() as cursor:
            for step in range(1_000_000):
                if stop.is_set():
                    return
                i = (number * 7 + step) % ACCOUNTS
                cursor.execute(f"UPDATE a SET v = v - 1 WHERE id = {i}")
                cursor.execute(f"UPDATE b SET v = v + 1 WHERE id = {i}")
                cursor.execute("INSERT INTO done VALUES ()")
                session.commit()
                started.release()

    threads = [threading.Thread(target=move, args=(number,)) for number in range(sessions)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5 * sessions):
            started.acquire(timeout=within(30))
        yield stop
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def commits(server: MysqlServer, file: str, first: int) -> list[int]:
    """Return where the transactions end that begin at or behind an offset of a file."""
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {first}")
        return [int(row[4]) for row in cursor.fetchall() if row[2] == "Xid"]


def end_of(server: MysqlServer) -> LogEnd:
    with server.connect() as conn:
        return points(server).end_of_log(conn)


def seen(point: MysqlReadPoint) -> tuple[int, int]:
    """Return the money and the number of transactions that each of the views shows; they must agree."""
    found = []
    with point.view() as first, point.view() as second:
        for conn in (first, second):
            with conn.cursor() as cursor:
                cursor.execute("SELECT (SELECT SUM(v) FROM bank.a) + (SELECT SUM(v) FROM bank.b)")
                money = int(cursor.fetchall()[0][0])
                cursor.execute("SELECT COUNT(*) FROM bank.done")
                found.append((money, int(cursor.fetchall()[0][0])))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("binlog_server", ["mysql", "mariadb"], indirect=True)
@pytest.mark.parametrize("locking", ["none", "extended"])
def test_views_lie_exactly_at_their_place_in_the_log(binlog_server: MysqlServer, locking: str) -> None:
    server = binlog_server
    found: list[tuple[str, int, int]] = []
    server.execute("FLUSH BINARY LOGS")
    start = end_of(server)
    with transfers(server, sessions=2):
        for _ in range(8 if locking == "none" else 3):
            point = opened(points(server, locking).open(2))
            try:
                assert point.alive()
                money, done = seen(point)
            finally:
                point.release()
            assert money == TOTAL
            assert point.low == point.position
            found.append((str(point.token["file"]), int(str(point.token["offset"])), done))
    ends = commits(server, start.name, start.offset)
    before = len(ends) - len([end for end in ends if end > found[0][1]])
    # What was committed besides the transfers came before the first view.
    others = before - found[0][2]
    assert 0 <= others <= 4
    assert [(file, done) for file, _, done in found] == [
        (start.name, len([end for end in ends if end <= offset]) - others) for _, offset, _ in found
    ]


@pytest.mark.parametrize("binlog_server", ["mysql"], indirect=True)
def test_a_window_begins_before_what_its_view_shows_and_ends_after_it(binlog_server: MysqlServer) -> None:
    server = binlog_server
    server.execute("FLUSH BINARY LOGS")
    start = end_of(server)
    found = []
    with transfers(server):
        for _ in range(8):
            window = points(server).open_window()
            done = int(window.query("SELECT COUNT(*) FROM bank.done")[0][0])
            window.release()
            found.append((window.low, window.position, done))
    ends = commits(server, start.name, start.offset)
    others = len(ends) - len([1 for _ in ends]) + 2
    places = [str(LogEnd(start.base, start.file, end, "").position(0)) for end in ends]
    for low, high, done in found:
        assert len([end for end in places if end <= low]) - others <= done
        assert done <= len([end for end in places if end <= high]) - others


@pytest.mark.parametrize("binlog_server", ["mysql", "mariadb"], indirect=True)
def test_readers_hold_no_locks_afterwards_and_see_no_altered_table(binlog_server: MysqlServer) -> None:
    server = binlog_server
    server.execute("DROP DATABASE IF EXISTS d", "CREATE DATABASE d", "CREATE TABLE d.t (id int PRIMARY KEY, v int)")
    server.execute("INSERT INTO d.t VALUES (1, 1)")
    point = opened(points(server).open(1))
    try:
        assert point.query("SELECT v FROM d.t") == [(1,)]
        server.execute("UPDATE d.t SET v = 2", "SET SESSION lock_wait_timeout = 2", "ALTER TABLE d.t ADD w int, FORCE")
        with pytest.raises(SourceStateError):
            point.query("SELECT v FROM d.t")
        assert point.alive()
    finally:
        point.release()
    with pytest.raises(ConnectError, match="lost"):
        point.query("SELECT 1")


def test_a_server_without_gtids_is_locked_for_a_moment() -> None:
    with MysqlServer("mysql", gtid_mode="OFF", enforce_gtid_consistency="OFF") as server:
        with pytest.raises(SourceStateError, match="gtid_mode=ON"):
            points(server, "none").open(2)
        with transfers(server, sessions=1) as stop:
            point = opened(points(server, "minimal", user=server.user, password=server.password).open(2))
            assert seen(point)[0] == TOTAL
            # Nobody is kept from writing while it is held.
            server.execute("INSERT INTO bank.done VALUES ()")
            stop.set()
        point.release()
        server.execute("CREATE USER poor IDENTIFIED BY 'p'", "GRANT SELECT, REPLICATION CLIENT ON *.* TO poor")
        with pytest.raises(SourceStateError, match="RELOAD"):
            points(server, "minimal", user="poor", password="p").open(1)


def test_extended_locks_last_as_long_as_the_read_point(binlog_server: MysqlServer) -> None:
    server = binlog_server
    server.execute("DROP DATABASE IF EXISTS d", "CREATE DATABASE d", "CREATE TABLE d.t (id int PRIMARY KEY)")
    point = opened(points(server, "extended").open(1))
    try:
        with server.connect() as session, session.cursor() as cursor:
            cursor.execute("SET SESSION lock_wait_timeout = 1")
            with pytest.raises(Exception, match=r"timeout exceeded|read lock"):
                cursor.execute("INSERT INTO d.t VALUES (1)")
    finally:
        point.release()
    server.execute("INSERT INTO d.t VALUES (1)")


@pytest.mark.parametrize(("rest_s", "times"), [(0.0, 300), (2.0, 10)])
def test_an_end_of_the_log_has_the_gtids_of_just_what_lies_before_it(
    mysql: MysqlServer, monkeypatch: pytest.MonkeyPatch, rest_s: float, times: int
) -> None:
    monkeypatch.setattr(binlogs, "REST_S", rest_s)
    with transfers(mysql), mysql.connect() as conn:
        server = read_server(conn)
        ends = [binlogs.end_with_gtids(conn, server.flavor, server.version) for _ in range(times)]
    with mysql.connect() as conn, conn.cursor() as cursor:
        for end in ends:
            assert end.gtids == gtids_in_log(cursor, end), end


def gtids_in_log(cursor: Any, end: LogEnd) -> str:
    """Return the GTIDs before a place, by the events of its file and what the file begins with."""
    cursor.execute(f"SHOW BINLOG EVENTS IN '{end.name}'")
    events = [row for row in cursor.fetchall() if int(row[1]) < end.offset]
    before = next(row[5] for row in events if row[2] == "Previous_gtids").replace("\n", "")
    later = ",".join(re.findall(r"'([^']*)'", "".join(row[5] for row in events if row[2] == "Gtid")))
    # The server joins the sets, in the form in which it prints them.
    cursor.execute("SELECT GTID_SUBTRACT(CONCAT(%s, ',', %s), '')", [before, later])
    return str(cursor.fetchall()[0][0]).replace("\n", "")
