"""Rows in the log have the structure that their table had at that place."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodmark.capture.store import SCHEMA_HISTORY
from floodmark.errors import SchemaHistoryError
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer

DATABASE = "structures"


@pytest.fixture
def options(binlog_server: MysqlServer, tmp_path: Path) -> Iterator[dict[str, str]]:
    binlog_server.execute(f"CREATE DATABASE {DATABASE}")
    yield {
        "database.include.list": DATABASE,
        "topic.prefix": "p",
        "state.dir": str(tmp_path / "state"),
        "include.schema.changes": "false",
        **binlog_server.options(),
    }
    binlog_server.execute(f"DROP DATABASE {DATABASE}")


def rows(events: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return table and row of events that have a row after them."""
    values = [json.loads(event["value"]) for event in events if event["value"]]
    return [(value["source"]["table"], value["after"]) for value in values if value["after"]]


def test_a_query_that_was_stopped_knows_the_structures_of_the_time(
    binlog_server: MysqlServer, options: dict[str, str]
) -> None:
    binlog_server.execute("CREATE TABLE t (id int PRIMARY KEY, a int)", database=DATABASE)
    query = InProcess(options)
    try:
        query.drain()
        binlog_server.execute(
            "INSERT INTO t VALUES (1, 10)",
            "ALTER TABLE t ADD b varchar(5) FIRST, DROP a",
            "INSERT INTO t VALUES ('x', 2)",
            "RENAME TABLE t TO u",
            "CREATE TABLE t LIKE u",
            "ALTER TABLE t MODIFY b decimal(5,2) AFTER id",
            "INSERT INTO t VALUES (3, 1.5)",
            "INSERT INTO u VALUES ('y', 4)",
            "DROP TABLE u",
            database=DATABASE,
        )
        query.restart()
        expected = [
            ("t", {"id": 1, "a": 10}),
            ("t", {"b": "x", "id": 2}),
            ("t", {"id": 3, "b": "AJY="}),
            ("u", {"b": "y", "id": 4}),
        ]
        assert rows(query.drain()) == expected
        binlog_server.execute("ALTER TABLE t ADD c int", "INSERT INTO t VALUES (5, 0, 6)", database=DATABASE)
        query.restart()
        assert rows(query.drain()) == [("t", {"id": 5, "b": "AA==", "c": 6})]
    finally:
        query.stop()


def test_an_online_change_swaps_tables_under_their_rows(binlog_server: MysqlServer, options: dict[str, str]) -> None:
    binlog_server.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(5))", database=DATABASE)
    query = InProcess({**options, "table.include.list": rf"{DATABASE}\.t"})
    try:
        query.drain()
        binlog_server.execute(
            "CREATE TABLE _t_gho LIKE t",
            "ALTER TABLE _t_gho ADD w int NOT NULL DEFAULT 7 AFTER id",
            "INSERT INTO t VALUES (1, 'old')",
            "INSERT INTO _t_gho (id, v) VALUES (1, 'old')",
            "RENAME TABLE t TO _t_del, _t_gho TO t",
            "INSERT INTO t (id, v) VALUES (2, 'new')",
            "INSERT INTO _t_del VALUES (3, 'gone')",
            "DROP TABLE _t_del",
            database=DATABASE,
        )
        assert rows(query.drain()) == [("t", {"id": 1, "v": "old"}), ("t", {"id": 2, "w": 7, "v": "new"})]
    finally:
        query.stop()


def test_a_sequence_is_not_captured(mariadb: MysqlServer, tmp_path: Path) -> None:
    mariadb.execute("CREATE DATABASE sequences", "CREATE SEQUENCE sequences.before_it")
    options = {"database.include.list": "sequences", "topic.prefix": "p", "state.dir": str(tmp_path / "state")}
    query = InProcess({**options, **mariadb.options(), "include.schema.changes": "false"})
    try:
        query.drain()
        mariadb.execute(
            "CREATE SEQUENCE s",
            "SELECT NEXTVAL(s), NEXTVAL(before_it)",
            "CREATE TABLE t (id int DEFAULT NEXTVAL(s) PRIMARY KEY)",
            "INSERT INTO t VALUES ()",
            database="sequences",
        )
        assert rows(query.drain()) == [("t", {"id": 2})]
    finally:
        query.stop()
        mariadb.execute("DROP DATABASE sequences")


def test_a_lost_history_is_an_error_that_recovery_mends(binlog_server: MysqlServer, options: dict[str, str]) -> None:
    binlog_server.execute("CREATE TABLE t (id int PRIMARY KEY)", database=DATABASE)
    query = InProcess(options)
    query.drain()
    query.stop()
    for history in Path(options["state.dir"]).glob(f"*/{SCHEMA_HISTORY}"):
        shutil.rmtree(history)
    binlog_server.execute("INSERT INTO t VALUES (1)", database=DATABASE)
    lost = InProcess(options, query.offset)
    with pytest.raises(SchemaHistoryError, match=r"snapshot\.mode=recovery"):
        lost.drain()
    lost.stop()
    mended = InProcess({**options, "snapshot.mode": "recovery"}, query.offset)
    try:
        assert rows(mended.drain()) == [("t", {"id": 1})]
    finally:
        mended.stop()
    again = InProcess(options, mended.offset)
    try:
        binlog_server.execute("INSERT INTO t VALUES (2)", database=DATABASE)
        assert rows(again.drain()) == [("t", {"id": 2})]
    finally:
        again.stop()
