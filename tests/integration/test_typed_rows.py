"""``format=rows`` on real servers: rows that can be merged into a table which then is the source's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import Source
from tests.support.inprocess import InProcess
from tests.support.merging import Target, merge
from tests.support.mysql import MysqlServer

DATABASE = "typed_rows"


@pytest.fixture
def shop(binlog_server: MysqlServer) -> Iterator[MysqlServer]:
    binlog_server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    yield binlog_server
    binlog_server.execute(f"DROP DATABASE {DATABASE}")


def rows_of(source: Source, **options: str) -> InProcess:
    given = {name.replace("_", "."): value for name, value in options.items()}
    return InProcess({**source.options, "format": "rows", "table.include.list": "public.t", **given})


def mysql_rows_of(server: MysqlServer, directory: Path, **options: str) -> InProcess:
    given = {
        **server.options(),
        "topic.prefix": "p",
        "state.dir": str(directory / "state"),
        "database.include.list": DATABASE,
        "format": "rows",
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    return InProcess(given)


def table(source: Source, columns: str = "id, v, big") -> list[tuple[Any, ...]]:
    with psycopg.connect(source.conninfo) as conn:
        return conn.execute(f"SELECT {columns} FROM t ORDER BY id").fetchall()


def mysql_table(server: MysqlServer, columns: str = "id, v, big") -> list[tuple[Any, ...]]:
    with server.connect(DATABASE) as session, session.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM t ORDER BY id")
        return list(cursor.fetchall())


def held(target: Target, columns: Sequence[str] = ("id", "v", "big")) -> list[tuple[Any, ...]]:
    return [tuple(target[key][name] for name in columns) for key in sorted(target)]


TOASTED = (
    "CREATE TABLE t (id integer PRIMARY KEY, v integer, big text)",
    "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
    "INSERT INTO t SELECT g, 0, repeat(g::text, 5000) FROM generate_series(1, 6) g",
)


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_an_untouched_large_value_is_unavailable(source: Source, identity: str) -> None:
    source.execute(*TOASTED, f"ALTER TABLE t REPLICA IDENTITY {identity}")
    query = rows_of(source)
    target = merge({}, query.drain())
    source.execute(
        "UPDATE t SET v = 1 WHERE id = 1",
        "UPDATE t SET v = 2, big = NULL WHERE id = 2",
        "UPDATE t SET id = 13 WHERE id = 3",
        "UPDATE t SET big = repeat('n', 4000) WHERE id = 4",
        "DELETE FROM t WHERE id = 5",
    )
    rows = query.drain()
    query.stop()
    partial = identity == "DEFAULT"
    lacks, rest = (["big"], ["v", "big"]) if partial else ([], [])
    assert [(row["op"], row["unavailable"]) for row in rows] == [
        ("u", lacks),
        ("u", []),
        ("d", rest),
        ("c", lacks),
        ("u", []),
        ("d", rest),
    ]
    assert all(row["key"] == ["id"] and int(row["txid"]) > 0 for row in rows)
    moved = rows[3]
    assert (moved["before"]["id"], moved["after"]["id"]) == (3, 13)
    assert held(merge(target, rows)) == table(source)


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB", "FULL"])
def test_what_row_images_leave_out_is_unavailable(shop: MysqlServer, tmp_path: Path, image: str) -> None:
    with (
        shop.connect(DATABASE, init_command=f"SET binlog_row_image = '{image}'") as session,
        session.cursor() as cursor,
    ):
        cursor.execute("CREATE TABLE t (id int PRIMARY KEY, v int, big longtext)")
        cursor.execute("INSERT INTO t VALUES (1, 0, 'a'), (2, 0, 'b'), (3, 0, 'c'), (4, 0, 'd'), (5, 0, NULL)")
        query = mysql_rows_of(shop, tmp_path)
        target = merge({}, query.drain())
        for statement in (
            "INSERT INTO t (id) VALUES (6)",
            "UPDATE t SET v = 1 WHERE id = 1",
            "UPDATE t SET v = NULL, big = NULL WHERE id = 2",
            "UPDATE t SET id = 13 WHERE id = 3",
            "UPDATE t SET big = 'x' WHERE id = 5",
            "DELETE FROM t WHERE id = 4",
        ):
            cursor.execute(statement)
    rows = query.drain()
    query.stop()
    big = {"MINIMAL": ["big"], "NOBLOB": ["big"], "FULL": []}[image]
    both = {"MINIMAL": ["v", "big"], "NOBLOB": ["big"], "FULL": []}[image]
    assert [(row["op"], row["unavailable"]) for row in rows] == [
        ("c", []),
        ("u", big),
        ("u", []),
        ("d", both),
        ("c", both),
        ("u", ["v"] if image == "MINIMAL" else []),
        ("d", both),
    ]
    assert all(row["key"] == ["id"] for row in rows)
    assert all((row["txid"] is not None) for row in rows)
    assert (rows[4]["before"]["id"], rows[4]["after"]["id"]) == (3, 13)
    assert held(merge(target, rows)) == mysql_table(shop)


def test_keys_by_option_and_tables_without_one(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer, v integer, big text)", "INSERT INTO t VALUES (1, 1, 'x')")
    query = rows_of(source)
    assert [(row["key"], row["unavailable"]) for row in query.drain()] == [([], [])]
    query.stop()
    query = rows_of(source, message_key_columns="public.t:id,v", slot_name="other")
    assert [row["key"] for row in query.drain()] == [["id", "v"]]
    query.stop()


def test_truncates_come_if_they_are_not_skipped(source: Source) -> None:
    source.execute(*TOASTED)
    query = rows_of(source, skipped_operations="none")
    target = merge({}, query.drain())
    source.execute("TRUNCATE t", "INSERT INTO t VALUES (1, 1, 'x')")
    rows = query.drain()
    query.stop()
    assert [row["op"] for row in rows] == ["t", "c"]
    assert (rows[0]["key"], rows[0]["before"], rows[0]["after"]) == (["id"], None, None)
    assert held(merge(target, rows)) == table(source)


def test_truncates_of_the_binlog_come_if_they_are_not_skipped(shop: MysqlServer, tmp_path: Path) -> None:
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v int, big longtext)",
        "INSERT INTO t VALUES (1, 0, 'a')",
        database=DATABASE,
    )
    query = mysql_rows_of(shop, tmp_path, skipped_operations="none")
    target = merge({}, query.drain())
    shop.execute("TRUNCATE TABLE t", "INSERT INTO t VALUES (2, 1, 'x')", database=DATABASE)
    rows = query.drain()
    query.stop()
    assert [(row["op"], row["key"], row["unavailable"]) for row in rows] == [("t", ["id"], []), ("c", ["id"], [])]
    assert held(merge(target, rows)) == mysql_table(shop)


def test_arrays_are_lists(source: Source) -> None:
    source.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'fine')",
        "CREATE TABLE t (id integer PRIMARY KEY, n integer[], w text[], d date[], p numeric(6,2)[], m mood[])",
        """INSERT INTO t VALUES (1, '{1,NULL}', '{"a b",NULL}', '{2024-02-29}', '{1.5,NaN}', '{sad}')""",
    )
    query = rows_of(source)
    rows = query.drain()
    source.execute("INSERT INTO t VALUES (2, '{{1,2},{3,4}}', '[0:1]={x,y}', '{}', '{2.5}', NULL)")
    rows += query.drain()
    query.stop()
    assert [row["after"] for row in rows] == [
        {"id": 1, "n": [1, None], "w": ["a b", None], "d": [date(2024, 2, 29)], "p": None, "m": ["sad"]},
        {"id": 2, "n": None, "w": ["x", "y"], "d": [], "p": [Decimal("2.50")], "m": None},
    ]
    assert [row["unrepresentable"] for row in rows] == [["p"], ["n"]]
