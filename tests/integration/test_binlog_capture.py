"""Capture of real binlogs: everything arrives once and in order, whatever happens to servers and connections."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pymysql
import pytest
from pydantic import SecretStr

from floodmark.connectors.mysql.binlog.segments import OpenTransaction
from floodmark.connectors.mysql.continuity.check import Accepted, ResumePoint
from floodmark.connectors.mysql.gtid import parse_gtids
from floodmark.connectors.mysql.options import MysqlOptions
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.reading.channel import DumpChannel
from floodmark.errors import ConnectError, LogGoneError, SourceStateError
from floodmark.json_data import stored_object
from tests.support.binlog import Follower, Login, Row, check_places, gtids, here, identity
from tests.support.mysql import Flavor, MysqlServer
from tests.support.options import REQUIRED_MYSQL
from tests.support.replication import SETTINGS, replica_of, wait_for_replica

FLAVORS: list[Flavor] = ["mysql", "mariadb"]


class Writer:
    """Writes rows into a database of its own, and remembers what was committed.

    Attributes:
        rows: in commit order.
    """

    def __init__(self, server: MysqlServer, database: str, seed: int = 1) -> None:
        self.server = server
        self.database = database
        self.rows: list[Row] = []
        self._random = random.Random(seed)
        self._next = 1
        self._ids: list[int] = []
        server.execute(
            f"DROP DATABASE IF EXISTS {database}",
            f"CREATE DATABASE {database}",
            *(f"CREATE TABLE {database}.{table} (id INT NOT NULL PRIMARY KEY, pad VARCHAR(6000))" for table in "ab"),
        )
        self.session = server.connect(database)

    def transaction(self, changes: int, settings: str = "") -> None:
        """Commit a transaction of so many row changes, or roll it back now and then."""
        done: list[Row] = []
        ids = list(self._ids)
        with self.session.cursor() as cursor:
            if settings:
                cursor.execute(f"SET {settings}")
            cursor.execute("BEGIN")
            left = changes
            while left:
                left -= self._change(cursor, done, ids, left)
            kept = self._random.random() < 0.9 or changes > 1000
            cursor.execute("COMMIT" if kept else "ROLLBACK")
        if kept:
            self.rows += done
            self._ids = ids

    def _change(self, cursor: Any, done: list[Row], ids: list[int], left: int) -> int:
        r = self._random
        pick = r.random()
        if pick < 0.5 or not ids:
            count = min(left, r.choice([1, 1, 3, 50]))
            values = [(self._next + i, "x" * r.choice([0, 5, 300])) for i in range(count)]
            self._next += count
            cursor.executemany("INSERT INTO a VALUES (%s, %s)", values)
            done += (("c", one) for one, _ in values)
            ids += (one for one, _ in values)
            return count
        one = r.choice(ids)
        if pick < 0.75:
            cursor.execute("UPDATE a SET pad = CONCAT(LEFT(pad, 100), %s) WHERE id = %s", (r.random(), one))
            done.append(("u", one))
        elif pick < 0.9:
            cursor.execute("DELETE FROM a WHERE id = %s", (one,))
            ids.remove(one)
            done.append(("d", one))
        else:
            cursor.execute("SAVEPOINT s")
            cursor.execute("INSERT INTO b VALUES (%s, 'gone')", (self._next,))
            cursor.execute("ROLLBACK TO SAVEPOINT s")
        return 1

    def mixed(self, transactions: int) -> None:
        """Commit transactions of all sizes, with DDL, XA and rotations between them."""
        for number in range(transactions):
            self.transaction(self._random.choice([1, 1, 2, 10, 200]))
            if number % 10 == 3:
                self.server.execute("FLUSH BINARY LOGS")
            if number % 10 == 5:
                self.server.execute(f"ALTER TABLE {self.database}.a COMMENT 'after {number}'")
            if number % 10 == 7:
                self.prepared()

    def prepared(self) -> None:
        """Commit a row in two phases."""
        one, self._next = self._next, self._next + 1
        with self.session.cursor() as cursor:
            for statement in ("START", "END", "PREPARE", "COMMIT"):
                cursor.execute(f"XA {statement} 'x{one}'")
                if statement == "START":
                    cursor.execute("INSERT INTO b VALUES (%s, NULL)", (one,))
        self.rows.append(("c", one))


@pytest.fixture(params=FLAVORS)
def server(request: pytest.FixtureRequest) -> Iterator[MysqlServer]:
    """Return a server of the test's own."""
    with MysqlServer(request.param) as found:
        yield found


def test_everything_arrives_once_and_in_order(binlog_server: MysqlServer) -> None:
    writer = Writer(binlog_server, "mixed")
    begin = gtids(binlog_server)
    follower = Follower(binlog_server, segment_bytes=64 << 10)
    follower.known[follower.upto] = ResumePoint(identity(binlog_server), begin)
    thread = threading.Thread(target=writer.mixed, args=(60,))
    thread.start()
    follower.until(lambda: not thread.is_alive())
    follower.to_end()
    assert follower.rows() == writer.rows
    check_places(follower.cuts)
    assert len(follower.cuts) > 3
    ddl = [sql for sql, _ in follower.structures.statements]
    assert ddl == [f"ALTER TABLE mixed.a COMMENT 'after {number}'" for number in range(5, 60, 10)]
    for _, at in follower.structures.statements:
        assert sum(cut.after < at <= cut.upto for cut in follower.cuts) == 1
    place = follower.open().place
    assert place.gtids is not None
    assert parse_gtids(binlog_server.flavor, place.gtids) == parse_gtids(binlog_server.flavor, gtids(binlog_server))
    follower.close()


def test_structures_change_where_the_statement_lies(binlog_server: MysqlServer) -> None:
    database = "reshaped"
    writer = Writer(binlog_server, database)
    follower = Follower(binlog_server)
    for number in range(3):
        binlog_server.execute(
            f"INSERT INTO {database}.a VALUES ({number}, '')", f"ALTER TABLE {database}.a COMMENT '{number}'"
        )
    writer.session.cursor().execute(f"INSERT INTO {database}.a VALUES (3, '')")
    follower.to_end()
    tables = [table for cut in follower.cuts for table in cut.data.header["tables"]]
    assert [table["structure"]["altered"] for table in tables] == [0, 1, 2, 3]
    assert {(table["database"], table["table"]) for table in tables} == {(database, "a")}
    follower.close()


def read_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no read return more than a fraction of a small segment, however much has come."""
    read = DumpChannel.read_into
    monkeypatch.setattr(DumpChannel, "read_into", lambda self, space, timeout: read(self, space[:4096], timeout))


@pytest.mark.parametrize("restarts", [1, 7])
def test_a_large_transaction_is_cut_inside(
    binlog_server: MysqlServer, monkeypatch: pytest.MonkeyPatch, restarts: int
) -> None:
    read_little(monkeypatch)
    writer = Writer(binlog_server, f"large{restarts}")
    follower = Follower(binlog_server, segment_bytes=16 << 10)
    writer.transaction(6000)
    writer.transaction(5)
    end = here(binlog_server)
    cuts = 0
    while follower.upto < end:
        follower.step()
        if len(follower.cuts) >= cuts + restarts:
            follower.close()
            cuts = len(follower.cuts)
    assert follower.rows() == writer.rows
    check_places(follower.cuts)
    inside = [cut for cut in follower.cuts if Position.parse(cut.upto).inside]
    assert len(inside) > 3
    for before, after in pairwise(follower.cuts):
        opened = after.data.header["transaction"]
        assert (opened is None) == (not Position.parse(before.upto).inside)
        if opened is not None:
            assert opened["start"] == Position.parse(before.upto).transaction
            known = OpenTransaction.from_json(stored_object(opened, "A transaction"))
            assert known.gtid
            assert (known.begin is None) == (binlog_server.flavor == "mariadb")
        # Rows events whose TABLE_MAP lies in an earlier segment find it in the header.
        first = min((table["record"] for table in after.data.header["tables"]), default=0)
        assert ("map" in str(after.data.header["tables"])) == (first == -1)
    follower.close()


def test_a_large_transaction_goes_on_when_files_follow_it(
    binlog_server: MysqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = DumpChannel.read_into
    read_little(monkeypatch)
    writer = Writer(binlog_server, "followed")
    follower = Follower(binlog_server, segment_bytes=16 << 10)
    writer.transaction(3000)
    while not follower.cuts:
        follower.step()
    assert Position.parse(follower.upto).inside
    follower.close()
    follower.settings = replace(follower.settings, segment_bytes=8 << 20)
    for _ in range(2):
        binlog_server.execute("FLUSH BINARY LOGS")
        writer.transaction(1)

    def all_at_once(self: DumpChannel, space: memoryview, timeout: float) -> int:
        count = read(self, space, timeout)
        while count and (more := read(self, space[count:], 0.1)):
            count += more
        return count

    monkeypatch.setattr(DumpChannel, "read_into", all_at_once)
    follower.to_end()
    assert follower.rows() == writer.rows
    check_places(follower.cuts)
    follower.close()


def test_connections_are_cut(binlog_server: MysqlServer) -> None:
    writer = Writer(binlog_server, "cut_off")
    follower = Follower(binlog_server, segment_bytes=32 << 10)
    for _ in range(6):
        writer.mixed(5)
        follower.step()
        with binlog_server.connect() as session, session.cursor() as cursor:
            cursor.execute("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
            for (thread,) in cursor.fetchall():
                cursor.execute(f"KILL {thread}")
        with pytest.raises(ConnectError):
            follower.until(lambda: False, 20)
        follower.close()
    follower.to_end()
    assert follower.rows() == writer.rows
    check_places(follower.cuts)
    follower.close()


@pytest.mark.parametrize("kill", [False, True])
def test_the_server_restarts(server: MysqlServer, kill: bool) -> None:
    writer = Writer(server, "restarted")
    follower = Follower(server, segment_bytes=64 << 10)
    for _ in range(3 if kill else 1):
        writer.mixed(8)
        follower.step()
        server.restart(kill=kill)
        with pytest.raises(ConnectError):
            follower.until(lambda: False, 20)
        follower.close()
        writer.session = server.connect("restarted")
    follower.to_end()
    assert follower.rows() == writer.rows
    check_places(follower.cuts)
    follower.close()


@pytest.mark.parametrize(
    ("flavor", "settings"),
    [
        ("mysql", {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}),
        ("mysql", {"binlog_checksum": "NONE", "binlog_rows_query_log_events": "ON"}),
        ("mysql", {"binlog_transaction_compression": "ON", "binlog_row_metadata": "FULL"}),
        ("mysql", {"binlog_row_image": "FULL", "max_binlog_size": "65536"}),
        ("mariadb", {"binlog_checksum": "NONE", "binlog_row_metadata": "FULL"}),
        ("mariadb", {"binlog_annotate_row_events": "OFF", "encrypt_binlog": "OFF", "max_binlog_size": "65536"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value.values()),
)
def test_settings(flavor: Flavor, settings: dict[str, str]) -> None:
    with MysqlServer(flavor, **settings) as server:
        writer = Writer(server, "configured")
        begin = gtids(server)
        follower = Follower(server, segment_bytes=64 << 10)
        follower.known[follower.upto] = ResumePoint(identity(server), begin)
        writer.mixed(25)
        writer.transaction(2000)
        follower.to_end()
        assert follower.rows() == writer.rows
        check_places(follower.cuts)
        place = follower.open().place
        nameless = settings.get("gtid_mode") == "OFF"
        assert place.gtids == (None if nameless else str(parse_gtids(flavor, gtids(server))))
        tables = [table for cut in follower.cuts for table in cut.data.header["tables"]]
        assert {table["table"] for table in tables} == {"a", "b"}
        follower.close()


@pytest.mark.parametrize("flavor", FLAVORS)
def test_checksums_are_switched_off_and_on(flavor: Flavor, request: pytest.FixtureRequest) -> None:
    server: MysqlServer = request.getfixturevalue(flavor)
    writer = Writer(server, "checksums")
    follower = Follower(server)
    try:
        for value in ("NONE", "CRC32", "NONE"):
            writer.transaction(3)
            server.execute(f"SET GLOBAL binlog_checksum = {value}")
            writer.transaction(3)
            follower.step()
    finally:
        server.execute("SET GLOBAL binlog_checksum = CRC32")
    follower.to_end()
    assert follower.rows() == writer.rows
    check_places(follower.cuts)
    checks = [move[3] for cut in follower.cuts for move in cut.data.header["moves"]]
    assert False in checks
    follower.close()
    again = Follower(server, follower.cuts[0].after)
    server.execute("SET GLOBAL binlog_checksum = NONE")
    try:
        again.to_end()
    finally:
        server.execute("SET GLOBAL binlog_checksum = CRC32")
    assert again.rows() == writer.rows
    again.close()


def test_mariadbs_compressed_events(mariadb: MysqlServer) -> None:
    writer = Writer(mariadb, "compressed")
    follower = Follower(mariadb)
    try:
        mariadb.execute("SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress_min_len = 10")
        mariadb.execute("ALTER TABLE compressed.b COMMENT 'a comment that is long enough to be compressed'")
    finally:
        mariadb.execute("SET GLOBAL log_bin_compress = OFF")
    follower.to_end()
    assert [sql for sql, _ in follower.structures.statements] == [
        "ALTER TABLE compressed.b COMMENT 'a comment that is long enough to be compressed'"
    ]
    assert not writer.rows
    follower.close()


def test_mariadbs_alter_table_in_two_phases(mariadb: MysqlServer) -> None:
    Writer(mariadb, "phases")
    follower = Follower(mariadb)
    add, twice = "ALTER TABLE phases.a ADD COLUMN two INT", "ALTER TABLE phases.a ADD UNIQUE (pad(10))"
    mariadb.execute("SET SESSION binlog_alter_two_phase = ON", add, "INSERT INTO phases.a (id) VALUES (1), (2)")
    mariadb.execute("UPDATE phases.a SET pad = 'same'")
    with pytest.raises(pymysql.err.IntegrityError):
        mariadb.execute("SET SESSION binlog_alter_two_phase = ON", twice)
    follower.to_end()
    assert [sql for sql, _ in follower.structures.statements] == [add]
    follower.close()


def test_tagged_gtids(mysql: MysqlServer) -> None:
    writer = Writer(mysql, "tagged")
    begin = gtids(mysql)
    follower = Follower(mysql)
    follower.known[follower.upto] = ResumePoint(identity(mysql), begin)
    for tag in ("one", "two", "one"):
        writer.transaction(2, f"gtid_next = 'AUTOMATIC:{tag}'")
    writer.session.cursor().execute("SET gtid_next = AUTOMATIC")
    follower.to_end()
    assert follower.rows() == writer.rows
    place = follower.open().place
    assert place is not None
    assert place.gtids == gtids(mysql).lower()
    assert ":one:1" in place.gtids
    follower.close()


def test_an_idle_stream_follows_the_end_of_the_log(binlog_server: MysqlServer) -> None:
    follower = Follower(binlog_server)
    binlog_server.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    end = here(binlog_server)
    follower.until(lambda: (follower.open().idle_position or "") >= end)
    assert follower.cuts == []
    follower.close()


@pytest.mark.parametrize("flavor", FLAVORS)
def test_another_server_is_continued_by_gtids(flavor: Flavor) -> None:
    with MysqlServer(flavor, **SETTINGS[flavor]) as first, MysqlServer(flavor, **SETTINGS[flavor]) as second:
        _continues(first, second)


def excluding(source: str) -> MysqlOptions:
    return MysqlOptions.parse({**REQUIRED_MYSQL, "gtid.source.excludes": source})


def _continues(first: MysqlServer, second: MysqlServer) -> None:
    second.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    replica_of(first, second)
    writer = Writer(first, "moved")
    begin = gtids(first)
    follower = Follower(first)
    follower.known[follower.upto] = ResumePoint(identity(first), begin)
    writer.mixed(10)
    follower.to_end()
    assert follower.rows() == writer.rows
    writer.mixed(10)
    wait_for_replica(first, second)
    follower.close()
    moved = Follower(second, follower.upto)
    moved.known = follower.known
    moved.until(lambda: len(moved.rows()) >= len(writer.rows) - len(follower.rows()))
    assert follower.rows() + moved.rows() == writer.rows
    check_places(moved.cuts)
    assert Position.parse(moved.upto).epoch == 1
    assert moved.cuts[0].after == follower.upto < moved.upto
    moved.close()
    # Without the first server's transactions nothing is left but what the second one wrote.
    second.execute("INSERT INTO moved.b VALUES (1000000, NULL)")
    own = Follower(second, follower.upto)
    own.known = follower.known
    own.settings = replace(own.settings, accepted=Accepted.from_options(excluding(f"(0-)?{identity(first)}")))
    own.until(lambda: bool(own.cuts))
    assert own.rows() == [("c", 1000000)]
    own.close()


def test_a_purged_log_is_said_so(server: MysqlServer) -> None:
    follower = Follower(server)
    writer = Writer(server, "purged")
    writer.mixed(5)
    server.purge_old_logs()
    with pytest.raises(LogGoneError, match=r"no longer has the binlog file number 1.*snapshot.mode=when_needed"):
        follower.open()


def test_positions_of_another_log_are_refused(binlog_server: MysqlServer) -> None:
    end = Position.parse(here(binlog_server))
    for place, message in (
        (Position(0, end.file + 7, 4), "has no binlog file number"),
        (Position(0, end.file, end.transaction + 1000), "the file ends at"),
    ):
        with pytest.raises(SourceStateError, match=message):
            Follower(binlog_server, str(place)).open()
    follower = Follower(binlog_server, str(Position(0, end.file, 5)))
    with pytest.raises(SourceStateError):
        follower.until(lambda: False, 20)
    follower.close()


def test_a_server_id_in_use_is_said_so(binlog_server: MysqlServer) -> None:
    first, second = Follower(binlog_server), Follower(binlog_server)
    first.step()
    second.step()
    with pytest.raises(ConnectError, match=r"database\.server\.id|closed|Lost|ended"):
        first.until(lambda: False, 20)
    first.close()
    second.close()


def test_a_missing_privilege_is_said_so(binlog_server: MysqlServer) -> None:
    binlog_server.execute(
        "DROP USER IF EXISTS 'weak'@'%'",
        "CREATE USER 'weak'@'%' IDENTIFIED BY 'weak-secret'",
        "GRANT SELECT ON *.* TO 'weak'@'%'",
    )
    follower = Follower(binlog_server)
    follower.login = Login(binlog_server.port, user="weak", password=SecretStr("weak-secret"))
    with pytest.raises(SourceStateError, match="REPLICATION CLIENT") as refused:
        follower.open()
    binlog_server.execute(
        "GRANT REPLICATION CLIENT ON *.* TO 'weak'@'%'"
        if binlog_server.flavor == "mysql"
        else "GRANT BINLOG MONITOR ON *.* TO 'weak'@'%'"
    )
    with pytest.raises(SourceStateError, match="REPLICATION SLAVE"):
        follower.until(lambda: False, 20)
    assert "weak-secret" not in str(refused.value)
    follower.close()
