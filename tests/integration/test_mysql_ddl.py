"""Statements of applications and tools: what follows from the log is what the server shows."""

from __future__ import annotations

import pymysql
import pytest

from floodmark.connectors.mysql.schema import catalog
from tests.support.ddl import FOLDER, Follower, statements
from tests.support.mysql import MysqlServer

FILES = sorted(path.stem for path in FOLDER.glob("*.sql"))
WANTED_STATEMENTS = 500
FLAVORS = ("mysql", "mariadb")


def files_for(flavor: str) -> list[str]:
    return [name for name in FILES if not name.endswith("_only") or name == f"{flavor}_only"]


def test_the_corpus_is_large_enough() -> None:
    assert all(sum(len(statements(name)) for name in files_for(flavor)) >= WANTED_STATEMENTS for flavor in FLAVORS)


@pytest.mark.parametrize(
    ("binlog_server", "name"),
    [(flavor, name) for flavor in FLAVORS for name in files_for(flavor)],
    indirect=["binlog_server"],
)
def test_structures_follow_the_log(binlog_server: MysqlServer, name: str) -> None:
    follower = Follower(binlog_server)
    follower.execute(f"CREATE DATABASE `{name}`")
    follower.execute(f"USE `{name}`")
    try:
        found = []
        for statement in statements(name):
            follower.execute(statement)
            follower.follow()
            found += [f"{statement}: {difference}" for difference in follower.differences()]
        assert found == []
    finally:
        follower.execute(f"DROP DATABASE `{name}`")
        follower.close()


def test_the_catalog_reads_only_the_wanted_tables(binlog_server: MysqlServer) -> None:
    binlog_server.execute("CREATE DATABASE wanted", "CREATE DATABASE unwanted")
    binlog_server.execute("CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT)", database="wanted")
    with binlog_server.connect() as session:
        info = catalog.read_server(session)
        schema = catalog.read_schema(session, info, [("wanted", "a"), ("wanted", "missing")])
        assert list(schema.tables) == [("wanted", "a")]
        assert list(schema.databases) == ["wanted"]
        assert catalog.read_schema(session, info, []).tables == {}
    binlog_server.execute("DROP DATABASE wanted", "DROP DATABASE unwanted")


def test_the_first_of_several_unique_indexes_is_the_key(binlog_server: MysqlServer) -> None:
    binlog_server.execute(
        "CREATE DATABASE uniques",
        "CREATE TABLE uniques.t (a INT NOT NULL, b INT NOT NULL, c INT, UNIQUE z (c), UNIQUE y (b), UNIQUE x (a))",
    )
    with binlog_server.connect() as session:
        schema = catalog.read_schema(session, catalog.read_server(session), [("uniques", "t")])
    assert schema.tables["uniques", "t"].key == ("b",)
    binlog_server.execute("DROP DATABASE uniques")


@pytest.mark.parametrize("binlog_server", ["mysql"], indirect=True)
def test_a_default_whose_expression_is_not_shown_is_not_null(binlog_server: MysqlServer) -> None:
    # COLUMN_DEFAULT is NULL after such a statement, until the table is rebuilt.
    binlog_server.execute(
        "CREATE DATABASE hidden",
        "CREATE TABLE hidden.t (a INT, c TEXT)",
        "ALTER TABLE hidden.t ADD b INT, ALTER c SET DEFAULT (1 + 1)",
    )
    with binlog_server.connect() as session:
        schema = catalog.read_schema(session, catalog.read_server(session), [("hidden", "t")])
    assert schema.tables["hidden", "t"].columns[1].default_kind == "expression"
    binlog_server.execute("DROP DATABASE hidden")


@pytest.mark.parametrize("binlog_server", ["mariadb"], indirect=True)
def test_a_table_that_could_not_be_replaced_is_gone(binlog_server: MysqlServer) -> None:
    follower = Follower(binlog_server)
    follower.execute("CREATE DATABASE replaced")
    follower.execute("USE replaced")
    follower.execute("CREATE TABLE t (a INT PRIMARY KEY)")
    assert follower.compared() == []
    with pytest.raises(pymysql.OperationalError, match="prefix key"):
        follower.execute("CREATE OR REPLACE TABLE t (b TIMESTAMP, UNIQUE (b(3)))")
    assert follower.compared() == []
    assert ("replaced", "t") not in follower.schema.tables
    # Of several tables, those that exist are dropped; the server logs the statement with an error too.
    follower.execute("CREATE TABLE t (a INT PRIMARY KEY)")
    with pytest.raises(pymysql.OperationalError, match="Unknown table"):
        follower.execute("DROP TABLE missing, t")
    assert follower.compared() == []
    assert ("replaced", "t") not in follower.schema.tables
    follower.execute("DROP DATABASE replaced")
    follower.close()
