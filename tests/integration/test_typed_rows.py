"""``format=rows`` on real servers: rows that can be merged into a table which then is the source's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

import floodmark
from floodmark.changes.typed_tables import RowVersions
from floodmark.errors import NoTableLeftError, SchemaChangeError
from tests.conftest import Source
from tests.support.inprocess import InProcess
from tests.support.merging import Target, merge
from tests.support.mysql import MysqlServer
from tests.support.undecodable import refused_tables

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


def test_an_added_column_ends_the_query_which_goes_on_with_it(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, v integer, big text)", "INSERT INTO t VALUES (1, 1, 'x')")
    query = rows_of(source)
    target = merge({}, query.drain())
    source.execute(
        "INSERT INTO t VALUES (2, 2, 'y')",
        "ALTER TABLE t ADD extra text",
        "INSERT INTO t VALUES (3, 3, 'z', 'new')",
    )
    with pytest.raises(SchemaChangeError, match=r"public\.t is no longer .* it has the new column 'extra' \(string\)"):
        query.drain()
    # The offset of the micro-batch that failed was not committed.
    query.restart()
    rows = query.drain()
    assert [(row["after"]["id"], row["after"]["extra"], row["unavailable"]) for row in rows] == [
        (2, None, ["extra"]),
        (3, "new", []),
    ]
    source.execute("UPDATE t SET extra = 'set' WHERE id = 2", "ALTER TABLE t DROP big", "DELETE FROM t WHERE id = 1")
    with pytest.raises(SchemaChangeError, match=r"its column 'big' \(string\) is gone"):
        query.drain()
    query.restart()
    rows += query.drain()
    query.stop()
    assert held(merge(target, rows), ("id", "v", "extra")) == table(source, "id, v, extra")


def test_a_changed_type_ends_the_query_or_is_unavailable(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, v integer, big text)", "INSERT INTO t VALUES (1, 1, '1')")
    query, other = rows_of(source), rows_of(source, schema_changes="ignore_with_warning", slot_name="other")
    query.drain()
    other.drain()
    source.execute(
        "ALTER TABLE t ALTER v TYPE smallint, ALTER big TYPE integer USING big::integer", "UPDATE t SET v = 2, big = 3"
    )
    with pytest.raises(SchemaChangeError, match="its column 'v' was int32 and is int16, its column 'big' was string"):
        query.drain()
    query.restart()
    assert [row["after"] for row in query.drain()] == [{"id": 1, "v": 2, "big": 3}]
    rows = other.drain()
    source.execute("ALTER TABLE t ALTER v TYPE text, ADD w integer", "UPDATE t SET v = 'a', w = 1")
    rows += other.drain()
    query.stop()
    other.stop()
    assert [(row["after"], row["unavailable"]) for row in rows] == [
        ({"id": 1, "v": 2, "big": "3"}, []),
        ({"id": 1, "v": None, "big": "3"}, ["v"]),
    ]
    assert other.offset["aside"] == []


def test_a_dataframe_that_was_loaded_before_the_table_was_altered_is_refused(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)")
    query = rows_of(source)
    source.execute("ALTER TABLE t ADD v integer")
    with pytest.raises(
        SchemaChangeError, match=r"since the DataFrame was loaded\): it has the new column 'v' \(int32\)"
    ):
        query.drain()
    query.stop()


def test_a_table_altered_during_its_snapshot_ends_the_query(source: Source) -> None:
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, v text)",
        "INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1, 2000) g",
    )
    query = rows_of(source, snapshot_chunk_bytes="8192", max_batch_rows="100")
    target = merge({}, query.step())
    source.execute("ALTER TABLE t ADD w integer DEFAULT 5", "UPDATE t SET v = 'new' WHERE id % 2 = 0")
    with pytest.raises(SchemaChangeError, match="new column 'w'"):
        query.drain()
    query.restart()
    merge(target, query.drain())
    query.stop()
    found = {(row[0]): row[1:] for row in table(source, "id, v, w")}
    assert {key[0]: row["v"] for key, row in target.items()} == {key: v for key, (v, _) in found.items()}


def test_altered_tables_of_the_binlog(shop: MysqlServer, tmp_path: Path) -> None:
    def run(*statements: str) -> None:
        shop.execute(*statements, database=DATABASE)

    run("CREATE TABLE t (id int PRIMARY KEY, v int, big text)", "INSERT INTO t VALUES (1, 1, 'x')")
    query = mysql_rows_of(shop, tmp_path)
    target = merge({}, query.drain())
    for changes, told in (
        (
            ("ALTER TABLE t ADD extra int AFTER id", "UPDATE t SET v = 2, extra = 7"),
            "the new column 'extra' \\(int32\\)",
        ),
        (("ALTER TABLE t MODIFY v bigint", "INSERT INTO t VALUES (2, 8, 3, 'y')"), "'v' was int32 and is int64"),
        (("ALTER TABLE t DROP big", "UPDATE t SET v = 5 WHERE id = 1"), "'big' \\(string\\) is gone"),
    ):
        run("UPDATE t SET v = v + 1", *changes)
        with pytest.raises(SchemaChangeError, match=rf"{DATABASE}\.t is no longer .* {told}"):
            query.drain()
        query.restart()
        merge(target, query.drain())
    query.stop()
    assert held(target, ("id", "extra", "v")) == mysql_table(shop, "id, extra, v")


@pytest.fixture
def undecodable(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of tables whose rows can't be decoded."""
    return refused_tables(monkeypatch, RowVersions)


def test_a_query_without_a_table_that_it_can_decode_ends(source: Source, undecodable: set[str]) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, v integer, big text)")
    query = rows_of(source)
    query.drain()
    undecodable.add("t")
    source.execute("INSERT INTO t VALUES (1, 1, 'x')")
    query.restart()
    for _ in range(2):
        with pytest.raises(
            NoTableLeftError, match=r"every table .* public\.t \(ValueError: nobody .*dead letters.*signal"
        ):
            query.drain()
        query.restart()
    undecodable.clear()
    assert [row["after"]["id"] for row in query.drain()] == [1]
    query.stop()


def test_a_query_whose_table_cannot_be_read_ends(source: Source) -> None:
    role = f"reader_{source.dbname}"
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY)",
        "INSERT INTO t VALUES (1)",
        f"CREATE ROLE {role} LOGIN REPLICATION",
        "CREATE PUBLICATION dbz_publication FOR ALL TABLES",
    )
    source.options["database.user"] = role
    query = rows_of(source)
    for _ in range(2):
        with pytest.raises(NoTableLeftError, match=r'"public"\."t" \(.*permission denied'):
            query.drain()
        query.restart()
    source.execute(f"GRANT SELECT ON t TO {role}")
    assert [row["after"] for row in query.drain()] == [{"id": 1}]
    query.stop()


def test_a_table_that_was_set_aside_is_taken_back_by_a_signal(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    query = rows_of(source)
    query.drain()
    # As an earlier version, or a query of events, left it.
    with psycopg.connect(source.conninfo) as conn:
        row = conn.execute("SELECT 't'::regclass::oid::int8").fetchone()
    assert row is not None
    query.offset["aside"] = [{"name": "public.t", "oid": row[0], "what": "log", "error": "nobody knows"}]
    query.restart()
    with pytest.raises(NoTableLeftError, match=r"public\.t \(nobody knows\)"):
        query.drain()
    query.restart()
    floodmark.signal(
        {**source.options, "format": "rows", "table.include.list": "public.t"},
        "execute-snapshot",
        {"data-collections": ["public.t"]},
    )
    assert [(row["op"], row["after"]) for row in query.drain()] == [("r", {"id": 1})]
    source.execute("INSERT INTO t VALUES (2)")
    assert [(row["op"], row["after"]) for row in query.drain()] == [("c", {"id": 2})]
    query.stop()


KINDS = (
    "c0 int2, c1 int8, c2 float4, c3 float8, c4 numeric, c5 numeric(6,2), c6 numeric(5,-2), c7 money, c8 bool, c9 "
    'bit(1), c10 bit(5), c11 varbit, c12 varbit(3), c13 bytea, c14 text, c15 varchar(9), c16 char(3), c17 "char", c18 '
    "name, c19 json, c20 jsonb, c21 xml, c22 uuid, c23 date, c24 time, c25 time(3), c26 timetz, c27 timestamp, c28 "
    "timestamp(3), c29 timestamptz, c30 timestamptz(0), c31 interval, c32 inet, c33 cidr, c34 macaddr, c35 macaddr8, "
    "c36 point, c37 box, c38 path, c39 tsvector, c40 int4range, c41 tstzrange, c42 pg_lsn, c43 oid, c44 regclass, c45 "
    "int2vector, c46 oidvector, c47 mood, c48 whole, c49 few, c50 pair, c51 int4[], c52 text[], c53 numeric(6,2)[], "
    "c54 date[], c55 timestamptz[], c56 mood[], c57 whole[], c58 pair[], c59 box[]"
)


def test_every_type_is_the_same_in_the_catalog_and_in_the_log(source: Source) -> None:
    source.execute(
        "CREATE TYPE mood AS ENUM ('fine')",
        "CREATE DOMAIN whole AS numeric(8,0)",
        "CREATE DOMAIN few AS int4[]",
        "CREATE TYPE pair AS (a int, b text)",
        f"CREATE TABLE t (id serial PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED, {KINDS})",
        "INSERT INTO t DEFAULT VALUES",
    )
    query = rows_of(source)
    rows = query.drain()
    source.execute(
        "INSERT INTO t (c0) VALUES (7)",
        "UPDATE t SET c45 = '1 2', c46 = '3', c36 = '(1,2)', c18 = 'n'",
        "UPDATE t SET c49 = '{1,NULL}', c57 = '{2}', c58 = '{\"(1,b)\"}', c59 = '{(1,1),(0,0)}'",
        "DELETE FROM t",
    )
    rows += query.drain()
    query.stop()
    assert [row["op"] for row in rows] == ["r", "c", *"uuuu", "d", "d"]
    assert all(row["unavailable"] == row["unrepresentable"] == [] for row in rows[:6])
    last = rows[5]["after"]
    assert [last["c45"], last["c46"], last["c18"]] == ["1 2", "3", "n"]
    assert [last["c49"], last["c57"], last["c58"]] == [[1, None], ["2"], ["(1,b)"]]
    assert last["c59"] == ["(1,1),(0,0)"]


MYSQL_KINDS = (
    "ADD c0 bool, ADD c1 tinyint unsigned, ADD c2 smallint, ADD c3 smallint unsigned, ADD c4 mediumint unsigned "
    "zerofill, ADD c5 int unsigned, ADD c6 bigint, ADD c7 bigint unsigned, ADD c8 decimal, ADD c9 decimal(6,2), ADD "
    "c10 decimal(30,10) unsigned, ADD c11 float, ADD c12 float(7,3), ADD c13 double, ADD c14 double unsigned, ADD c15 "
    "real, ADD c16 bit(1), ADD c17 bit(9), ADD c18 year, ADD c19 date, ADD c20 time, ADD c21 time(3), ADD c22 "
    "datetime, ADD c23 datetime(6), ADD c24 timestamp NULL, ADD c25 timestamp(3) NULL, ADD c26 char(3), ADD c27 "
    "varchar(9), ADD c28 tinytext, ADD c29 text, ADD c30 longtext, ADD c31 binary(3), ADD c32 varbinary(9), ADD c33 "
    "blob, ADD c34 enum('a','b'), ADD c35 set('a','b'), ADD c36 json, ADD c37 geometry, ADD c38 point, ADD c39 "
    "varchar(9) CHARACTER SET latin1, ADD c40 nchar(4)"
)


def test_every_type_is_the_same_in_the_catalog_and_in_statements(shop: MysqlServer, tmp_path: Path) -> None:
    def run(*statements: str) -> None:
        shop.execute(*statements, database=DATABASE)

    run("CREATE TABLE t (id int PRIMARY KEY)")
    query = mysql_rows_of(shop, tmp_path)
    query.drain()
    run(f"ALTER TABLE t {MYSQL_KINDS}, ADD w int AS (id * 2) STORED, ADD x int AS (id * 3) VIRTUAL")
    run("INSERT INTO t (id) VALUES (1)")
    with pytest.raises(SchemaChangeError, match="new column 'c0'"):
        query.drain()
    query.restart()
    rows = query.drain()
    # What is read from the catalog at the start, and what statements have made of it since, must be the same too.
    run("INSERT INTO t (id) VALUES (2)", "ALTER TABLE t COMMENT 'x'", "UPDATE t SET c0 = 1", "DELETE FROM t")
    rows += query.drain()
    query.stop()
    assert [row["op"] for row in rows] == ["c", "c", "u", "u", "d", "d"]
    assert all(row["unavailable"] == [] for row in rows)
    assert rows[1]["after"]["w"] == 4
