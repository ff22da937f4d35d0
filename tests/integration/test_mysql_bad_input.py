"""Servers, accounts and checkpoints that a query cannot use: one clear error each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from floodmark.capture.gaps import AcceptedGaps, Gap
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.schema import follower
from floodmark.connectors.mysql.values.charsets import to_utf8
from floodmark.errors import (
    CheckpointError,
    DecodeError,
    FloodmarkError,
    LogGoneError,
    SchemaHistoryError,
    SourceStateError,
)
from tests.support.binlog import here
from tests.support.inprocess import InProcess
from tests.support.mysql import Flavor, MysqlServer

DATABASE = "bad"
FLAVORS: tuple[Flavor, ...] = ("mysql", "mariadb")


@pytest.fixture
def shop(binlog_server: MysqlServer) -> Iterator[MysqlServer]:
    prepare(binlog_server)
    yield binlog_server
    binlog_server.execute(f"DROP DATABASE {DATABASE}")


def prepare(server: MysqlServer) -> None:
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {DATABASE}.t (id int PRIMARY KEY, v int)",
        f"INSERT INTO {DATABASE}.t VALUES (1, 1)",
    )


@contextmanager
def query_of(
    server: MysqlServer, state: Path, offset: dict[str, Any] | None = None, **more: str
) -> Iterator[InProcess]:
    options = {
        **server.options(),
        "topic.prefix": "p",
        "state.dir": str(state),
        "database.include.list": DATABASE,
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    query = InProcess(options, offset)
    try:
        yield query
    finally:
        query.stop()


def after_restart(server: MysqlServer, state: Path) -> dict[str, Any]:
    """Return the offset of a query that has read everything and was stopped."""
    with query_of(server, state) as query:
        query.drain()
        return query.offset


def fails(query: InProcess, error: type[FloodmarkError], *words: str) -> None:
    with pytest.raises(error) as caught:
        query.drain()
    for word in words:
        assert word in str(caught.value)
    assert caught.value.cure
    assert type(caught.value) is error


def states(rows: list[dict[str, Any]]) -> list[Any]:
    return [(row["op"], json.loads(row["value"])["after"]) for row in rows if row["table"] == "t" and row["value"]]


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_server_without_binlog(flavor: Flavor, tmp_path: Path) -> None:
    with MysqlServer(flavor) as server:
        prepare(server)
        offset = after_restart(server, tmp_path)
        server.settings.pop("log_bin")
        server.settings["skip_log_bin"] = None
        server.restart()
        for begin in (None, offset):
            with query_of(server, tmp_path, begin) as query:
                fails(query, SourceStateError, "log_bin")


def test_changes_in_the_log_as_statements(shop: MysqlServer, tmp_path: Path) -> None:
    shop.execute("SET GLOBAL binlog_format = 'STATEMENT'")
    try:
        with query_of(shop, tmp_path) as query:
            fails(query, SourceStateError, "binlog_format is STATEMENT", "ROW")
    finally:
        shop.execute("SET GLOBAL binlog_format = 'ROW'")


STATEMENTS = (
    "UPDATE t SET v = 2",
    f"INSERT INTO {DATABASE}.`t` SELECT 7, 7",
    "DELETE t.* FROM t WHERE id = 1",
    "REPLACE t VALUES (8, 8)",
    "-- from a script\n--\nUPDATE t SET v = 2",
    "/*!50000 UPDATE */ t SET v = 2",
    "UPDATE v SET v = 2",
    "SELECT f()",
    "DO f()",
    "CALL p()",
    f"LOAD DATA LOCAL INFILE '{{file}}' INTO TABLE {DATABASE}.t",
)
ROUTINES = (
    "CREATE VIEW v AS SELECT * FROM t",
    "CREATE PROCEDURE p() UPDATE t SET v = 2",
    "CREATE FUNCTION f() RETURNS int NO SQL BEGIN UPDATE t SET v = 2; RETURN 1; END",
)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_change_that_one_session_logged_as_a_statement(shop: MysqlServer, tmp_path: Path, statement: str) -> None:
    (tmp_path / "rows").write_text("9\t9\n")
    shop.execute("SET GLOBAL log_bin_trust_function_creators = 1", "SET GLOBAL local_infile = 1")
    shop.execute(*ROUTINES, database=DATABASE)
    with query_of(shop, tmp_path) as query:
        query.drain()
        with shop.connect(DATABASE, local_infile=True) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
            cursor.execute(statement.format(file=tmp_path / "rows"))
            connection.commit()
        query.drain()
        shop.execute("UPDATE t SET v = 3", database=DATABASE)
        assert states(query.drain()) == []
        (aside,) = query.offset["aside"]
        assert f"{DATABASE}.t" in str(aside)
        assert "binlog_format was not ROW" in str(aside)


def test_statements_that_change_other_tables(
    shop: MysqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[Any] = []
    note = SimpleNamespace(warning=lambda event, **more: warned.append((event, more["tables"])))
    monkeypatch.setattr(follower, "log", note)
    shop.execute("CREATE DATABASE IF NOT EXISTS tools", "CREATE TABLE IF NOT EXISTS tools.sums (n int)")
    (tmp_path / "rows").write_text("1\n2\n")
    shop.execute("SET GLOBAL local_infile = 1")
    with query_of(shop, tmp_path) as query:
        query.drain()
        # As checksum tools do.
        shop.execute(
            "SET SESSION binlog_format = 'STATEMENT'",
            f"REPLACE INTO tools.sums SELECT count(*) FROM {DATABASE}.t",
            f"UPDATE sums SET n = (SELECT max(v) FROM {DATABASE}.t)",
            "CREATE TEMPORARY TABLE mysql.elsewhere (n int)",
            "INSERT INTO mysql.elsewhere VALUES (1)",
            database="tools",
        )
        with shop.connect("tools", local_infile=True) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
            cursor.execute(f"LOAD DATA LOCAL INFILE '{tmp_path / 'rows'}' INTO TABLE sums")
            connection.commit()
        shop.execute("UPDATE t SET v = 3", database=DATABASE)
        assert states(query.drain()) == [("u", {"id": 1, "v": 3})]
    assert warned == [("a_statement_changes_rows_of_other_tables", ["tools.sums"])], "once for each table"


def test_comments_before_statements_about_tables(shop: MysqlServer, tmp_path: Path) -> None:
    """As scripts have them, when a driver runs them that leaves comments where they are."""
    with query_of(shop, tmp_path) as query:
        query.drain()
        shop.execute("--\n-- More\n--\nALTER TABLE t ADD more int", "--\nCREATE TABLE u (id int)", database=DATABASE)
        shop.execute("INSERT INTO t VALUES (2, 2, 2)", "INSERT INTO u VALUES (7)", database=DATABASE)
        rows = query.drain()
    assert states(rows) == [("c", {"id": 2, "v": 2, "more": 2})]
    assert [json.loads(row["value"])["after"] for row in rows if row["table"] == "u"] == [{"id": 7}]


def test_changes_as_statements_that_are_accepted(
    shop: MysqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[tuple[str, str]] = []
    note = SimpleNamespace(warning=lambda event, **more: warned.append((event, more["statement"])))
    monkeypatch.setattr(follower, "log", note)
    gaps: list[Gap] = []
    monkeypatch.setattr(AcceptedGaps, "add", lambda _, gap: gaps.append(gap))
    with query_of(shop, tmp_path, inconsistent__schema__handling__mode="warn") as query:
        query.drain()
        shop.execute("SET SESSION binlog_format = 'STATEMENT'", "UPDATE t SET v = 2", database=DATABASE)
        shop.execute("UPDATE t SET v = 3", database=DATABASE)
        assert states(query.drain()) == [("u", {"id": 1, "v": 3})]
    assert warned == [("rows_are_changed_by_a_statement", "UPDATE t SET v = 2")]
    assert [gap.option for gap in gaps] == ["inconsistent.schema.handling.mode=warn"]
    assert gaps[0].after < gaps[0].upto
    assert f"{DATABASE}.t" in gaps[0].reason


def test_the_servers_own_id(shop: MysqlServer, tmp_path: Path) -> None:
    with query_of(shop, tmp_path, database__server__id=str(shop.settings["server_id"])) as query:
        fails(query, SourceStateError, "database.server.id", "the server's own")


def test_an_account_that_may_not_see_the_end_of_the_log(shop: MysqlServer, tmp_path: Path) -> None:
    shop.execute(
        "CREATE USER IF NOT EXISTS few@'%' IDENTIFIED BY 'few-secret'",
        "GRANT SELECT, REPLICATION SLAVE ON *.* TO few@'%'",
    )
    with query_of(shop, tmp_path, database__user="few", database__password="few-secret") as query:
        fails(query, SourceStateError, "REPLICATION CLIENT")
    shop.execute("DROP USER few@'%'")


def test_an_account_with_what_the_documentation_grants(shop: MysqlServer, tmp_path: Path) -> None:
    status = "BINLOG MONITOR" if shop.flavor == "mariadb" else "REPLICATION CLIENT"
    shop.execute(
        "CREATE USER IF NOT EXISTS documented@'%' IDENTIFIED BY 'its-secret'",
        f"GRANT SELECT ON {DATABASE}.* TO documented@'%'",
        f"GRANT REPLICATION SLAVE, {status}, RELOAD ON *.* TO documented@'%'",
    )
    with query_of(shop, tmp_path, database__user="documented", database__password="its-secret") as query:
        query.drain()
    shop.execute("UPDATE t SET v = 3", database=DATABASE)
    offset = query.offset
    with query_of(shop, tmp_path, offset, database__user="documented", database__password="its-secret") as query:
        assert states(query.drain()) == [("u", {"id": 1, "v": 3})]
    shop.execute("DROP USER documented@'%'")


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_log_that_is_gone(flavor: Flavor, tmp_path: Path) -> None:
    with MysqlServer(flavor) as server:
        prepare(server)
        offset = after_restart(server, tmp_path)
        server.execute("FLUSH BINARY LOGS", f"UPDATE {DATABASE}.t SET v = 2")
        name = f"binlog.{Position.parse(here(server)).file:06d}"
        with server.connect() as session, session.cursor() as cursor:
            # MariaDB keeps a file until InnoDB has made a checkpoint behind it.
            while cursor.execute("SHOW BINARY LOGS") and cursor.fetchone()[0] != name:
                cursor.execute(f"PURGE BINARY LOGS TO '{name}'")
        with query_of(server, tmp_path, offset) as query:
            fails(query, LogGoneError, "binlog file number 1", "snapshot.mode=when_needed")
        with query_of(server, tmp_path, offset, snapshot__mode="when_needed") as query:
            assert states(query.drain()) == [("r", {"id": 1, "v": 2})]
        server.execute("RESET MASTER" if flavor == "mariadb" else "RESET BINARY LOGS AND GTIDS")
        with query_of(server, tmp_path, query.offset) as query:
            fails(query, LogGoneError, "was reset")


def test_a_set_of_gtids_that_nobody_understands(shop: MysqlServer, tmp_path: Path) -> None:
    offset = after_restart(shop, tmp_path)
    known = {"server": "another", "gtids": "not-a-gtid"}
    with query_of(shop, tmp_path, {**offset, "bookmark": known}) as query:
        fails(query, CheckpointError, "not-a-gtid")


def test_transactions_that_the_server_does_not_have(shop: MysqlServer, tmp_path: Path) -> None:
    offset = after_restart(shop, tmp_path)
    unknown = "7-7-7" if shop.flavor == "mariadb" else "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23"
    with query_of(shop, tmp_path, {**offset, "bookmark": {"server": "another", "gtids": unknown}}) as query:
        fails(query, CheckpointError, "lacks transactions")


def test_a_lost_schema_history(shop: MysqlServer, tmp_path: Path) -> None:
    offset = after_restart(shop, tmp_path)
    shop.execute("UPDATE t SET v = 2", database=DATABASE)
    shutil.rmtree(tmp_path)
    with query_of(shop, tmp_path, offset) as query:
        fails(query, SchemaHistoryError, "schema history", "snapshot.mode=recovery", "new checkpoint")
    with query_of(shop, tmp_path, offset, snapshot__mode="recovery") as query:
        rows = query.drain()
        shop.execute("ALTER TABLE t ADD w int DEFAULT 7", "UPDATE t SET v = 3", database=DATABASE)
        rows += query.drain()
    # From here on there is a history again.
    with query_of(shop, tmp_path, query.offset) as query:
        shop.execute("UPDATE t SET v = 4", database=DATABASE)
        rows += query.drain()
    assert states(rows) == [
        ("u", {"id": 1, "v": 2}),
        ("u", {"id": 1, "v": 3, "w": 7}),
        ("u", {"id": 1, "v": 4, "w": 7}),
    ]


def test_a_history_that_is_lost_while_the_query_runs(shop: MysqlServer, tmp_path: Path) -> None:
    with query_of(shop, tmp_path) as query:
        query.drain()
        shutil.rmtree(tmp_path)
        with shop.connect() as session, session.cursor() as cursor:
            cursor.execute("SELECT id FROM information_schema.processlist WHERE user = 'cdc'")
            for (thread,) in cursor.fetchall():
                cursor.execute(f"KILL {thread}")
        shop.execute("UPDATE t SET v = 2", database=DATABASE)
        with pytest.raises(FloodmarkError, match=r"state\.dir|snapshot\.mode=recovery"):
            query.drain()


def test_a_table_without_key(shop: MysqlServer, tmp_path: Path) -> None:
    shop.execute(
        "CREATE TABLE keyless (v int)",
        "CREATE TABLE signals (id varchar(64) PRIMARY KEY, type varchar(32), data text)",
        database=DATABASE,
    )
    with query_of(
        shop,
        tmp_path,
        signal__data__collection=f"{DATABASE}.signals",
        notification__enabled__channels="sink",
        notification__sink__topic__name="told",
    ) as query:
        query.drain()
        data = json.dumps({"data-collections": [f"{DATABASE}.keyless"]})
        shop.execute(f"INSERT INTO signals VALUES ('s', 'execute-snapshot', '{data}')", database=DATABASE)
        told = [row["value"] for row in query.drain() if row["topic"] == "told"]
    assert any("NO_PRIMARY_KEY" in str(value) for value in told)


def test_a_character_set_that_is_not_supported() -> None:
    with pytest.raises(DecodeError, match="'klingon' is unknown"):
        to_utf8(pa.array(["ä"]), "klingon")
