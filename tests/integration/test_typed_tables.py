"""``format=tables`` on real servers: the typed rows of several tables in one query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession
from structlog.testing import CapturingLogger

from floodmark.changes import schema_changes
from floodmark.changes.typed_tables import RowVersions
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import ConfigError, NoTableLeftError, SchemaChangeError
from floodmark.spark.merging import changed_tables, merged_rows, table_rows
from tests.conftest import drop, make_source
from tests.support.available_now import ENDING, start_to_end
from tests.support.inprocess import InProcess
from tests.support.merging import Target, merge
from tests.support.mysql import MysqlServer
from tests.support.undecodable import refused_tables

DATABASE = "typed_tables"
TABLES = ("a", "b", "twin")
CREATED = (
    "CREATE TABLE a (id integer PRIMARY KEY, v integer)",
    "CREATE TABLE twin (id integer PRIMARY KEY, v integer)",
    "CREATE TABLE b (x varchar(9), y varchar(9), n numeric(6,2), PRIMARY KEY (x, y))",
    "INSERT INTO a VALUES (1, 1), (2, 2)",
    "INSERT INTO b VALUES ('k', 'l', 1.50)",
)
CHANGES = (
    "INSERT INTO twin VALUES (7, 7)",
    "UPDATE a SET v = 3 WHERE id = 1",
    "INSERT INTO b VALUES ('m', 'n', NULL)",
    "UPDATE b SET y = 'z' WHERE x = 'k'",
    "DELETE FROM a WHERE id = 2",
    "UPDATE twin SET id = 8",
    "INSERT INTO a VALUES (9, 9)",
    "TRUNCATE TABLE twin",
    "INSERT INTO twin VALUES (5, 5)",
)


class Place:
    """A schema or database with tables, and a query of them."""

    def __init__(self, schema: str, options: dict[str, str], execute: Callable[..., None], rows: Callable[..., Any]):
        self.schema, self.options, self.execute, self.rows = schema, options, execute, rows

    def query(self, **options: str) -> InProcess:
        given = {name.replace("_", "."): value for name, value in options.items()}
        return InProcess({**self.options, "format": "tables", "skipped.operations": "none", **given})


def postgres_place(server: EmbeddedPostgres, directory: Path) -> Iterator[Place]:
    source = make_source(server, directory / "state")

    def rows(table: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(source.conninfo) as conn:
            return conn.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()

    yield Place("public", source.options, source.execute, rows)
    drop(source)


def binlog_place(server: MysqlServer, directory: Path) -> Iterator[Place]:
    def rows(table: str) -> list[tuple[Any, ...]]:
        with server.connect(DATABASE) as session, session.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table} ORDER BY 1, 2")
            return list(cursor.fetchall())

    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    options = {
        **server.options(),
        "topic.prefix": "p",
        "state.dir": str(directory / "state"),
        "database.include.list": DATABASE,
    }
    yield Place(DATABASE, options, lambda *texts: server.execute(*texts, database=DATABASE), rows)
    server.execute(f"DROP DATABASE {DATABASE}")


@pytest.fixture
def public(pg18: EmbeddedPostgres, tmp_path: Path) -> Iterator[Place]:
    yield from postgres_place(pg18, tmp_path)


@pytest.fixture(params=["pg16", "mysql", "mariadb"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    make = postgres_place if request.param == "pg16" else binlog_place
    yield from make(request.getfixturevalue(request.param), tmp_path)


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> CapturingLogger:
    logger = CapturingLogger()
    monkeypatch.setattr(schema_changes, "log", logger)
    schema_changes.leave_out.cache_clear()
    return logger


def told(reports: CapturingLogger, event: str) -> set[str]:
    """Return the tables of a warning."""
    return {call.kwargs["table"] for call in reports.calls if call.args[0] == event}


def of_table(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the rows of a table as ``format=rows`` has them."""
    return [{**row, **row[name][0]} for row in rows if row[name] is not None]


def held(target: Target) -> list[tuple[Any, ...]]:
    return [tuple(target[key].values()) for key in sorted(target)]


def test_each_table_has_its_own_column(place: Place) -> None:
    place.execute(*CREATED)
    query = place.query()
    rows = query.drain()
    place.execute(*CHANGES)
    later = query.drain()
    query.stop()
    columns = [f"{place.schema}.{table}" for table in TABLES]
    assert all(sum(row[name] is not None for name in columns) == 1 for row in (*rows, *later))
    assert [row["table"] for row in later] == ["twin", "a", "b", "b", "b", "a", "twin", "twin", "a", "twin", "twin"]
    assert [row["op"] for row in later] == [*"cucdcddcctc"]
    assert {row["key"][0] for row in of_table(later, columns[1])} == {"x"}
    for name in TABLES:
        column = f"{place.schema}.{name}"
        target = merge({}, of_table(rows, column))
        assert held(merge(target, of_table(later, column))) == place.rows(name)


def test_a_new_table_ends_the_query_until_it_is_loaded_again(place: Place) -> None:
    place.execute(*CREATED)
    query = place.query(snapshot_new_tables="incremental")
    query.drain()
    place.execute("UPDATE a SET v = 4", "CREATE TABLE c (id integer PRIMARY KEY)", "INSERT INTO c VALUES (1)")
    message = rf"{place.schema}\.c is no longer .*\): it is none of the tables that the query was made with"
    with pytest.raises(SchemaChangeError, match=message):
        query.drain()
    query.restart()
    place.execute("INSERT INTO c VALUES (2)")
    rows = query.drain()
    query.stop()
    assert {row["after"]["v"] for row in of_table(rows, f"{place.schema}.a")} == {4}
    assert held(merge({}, of_table(rows, f"{place.schema}.c"))) == [(1,), (2,)]


def test_a_new_table_can_be_left_out(place: Place, reports: CapturingLogger) -> None:
    place.execute(*CREATED)
    query = place.query(schema_changes="ignore_with_warning")
    query.drain()
    place.execute("CREATE TABLE c (id integer PRIMARY KEY)", "INSERT INTO c VALUES (1)", "UPDATE a SET v = 4")
    rows = query.drain()
    query.stop()
    assert [row["table"] for row in rows] == ["a", "a"]
    assert told(reports, "schema_change_is_ignored") == {f"{place.schema}.c"}


def test_one_altered_table_ends_the_query(place: Place) -> None:
    place.execute(*CREATED)
    query = place.query()
    target = merge({}, of_table(query.drain(), f"{place.schema}.a"))
    place.execute("ALTER TABLE a ADD w integer", "INSERT INTO b VALUES ('o', 'p', 2)", "UPDATE a SET w = 6")
    with pytest.raises(SchemaChangeError, match=rf"{place.schema}\.a is no longer .* the new column 'w' \(int32\)"):
        query.drain()
    query.restart()
    rows = query.drain()
    query.stop()
    assert [row["table"] for row in rows] == ["b", "a", "a"]
    assert held(merge(target, of_table(rows, f"{place.schema}.a"))) == place.rows("a")


def test_changes_of_a_table_that_is_gone_are_left_out(place: Place, reports: CapturingLogger) -> None:
    place.execute(*CREATED)
    query = place.query()
    query.drain()
    place.execute("INSERT INTO twin VALUES (1, 1)", "UPDATE a SET v = 4", "DROP TABLE twin")
    query.restart()
    rows = query.drain()
    query.stop()
    assert [row["table"] for row in rows] == ["a", "a"]
    assert told(reports, "a_table_is_left_out") == {f"{place.schema}.twin"}


def test_a_table_that_fails_is_set_aside_and_the_last_one_ends_the_query(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    undecodable = refused_tables(monkeypatch, RowVersions)
    place.execute(*CREATED)
    query = place.query()
    query.drain()
    undecodable.update(("b", "twin"))
    place.execute("INSERT INTO b VALUES ('o', 'p', 2)", "UPDATE a SET v = 4")
    query.restart()
    rows = query.drain()
    assert [row["table"] for row in rows] == ["a", "a"]
    assert [table["name"] for table in query.offset["aside"]] == [f"{place.schema}.b"]
    undecodable.add("a")
    place.execute("INSERT INTO twin VALUES (1, 1)", "UPDATE a SET v = 5")
    query.restart()
    with pytest.raises(NoTableLeftError, match=rf"{place.schema}\.b \(.*{place.schema}\.(a|twin) \(ValueError"):
        query.drain()
    query.stop()


def test_an_unreadable_table_is_set_aside_and_the_last_one_ends_the_query(public: Place) -> None:
    role = f"reader_{public.options['database.dbname']}"
    public.execute(*CREATED, "INSERT INTO twin VALUES (1, 1)", "CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    public.execute(f"CREATE ROLE {role} LOGIN REPLICATION")
    public.options["database.user"] = role
    query = public.query()
    with pytest.raises(NoTableLeftError, match=r"public\.a .*public\.twin \(.*permission denied"):
        query.drain()
    query.stop()
    public.execute(f"GRANT SELECT ON a TO {role}")
    query = public.query(slot_name="other")
    rows = query.drain()
    query.stop()
    assert {row["table"] for row in rows} == {"a"}
    assert {table["name"] for table in query.offset["aside"]} == {"public.b", "public.twin"}


def test_filters_without_a_table_are_refused(place: Place) -> None:
    with pytest.raises(ConfigError, match="'tables', which needs captured tables; the filters match 0"):
        place.query()
    place.execute(*CREATED)
    with pytest.raises(ConfigError, match="exactly one captured table; the filters match 3") as caught:
        place.query(format="rows")
    assert "format to tables" in caught.value.cure


def test_tables_that_spark_takes_for_one_are_refused(public: Place) -> None:
    public.execute('CREATE TABLE "T" (id integer PRIMARY KEY)', "CREATE TABLE t (id integer PRIMARY KEY)")
    with pytest.raises(ConfigError, match=r"Spark takes the names of these tables for one: public\.[Tt], public\.[Tt]"):
        public.query()


def test_tables_are_merged_by_one_query(spark: SparkSession, public: Place, tmp_path: Path) -> None:
    """As docs/typed-rows.md has it."""
    public.execute(*CREATED)
    targets: dict[str, DataFrame] = {}

    def merge_tables(batch: DataFrame, number: int) -> None:
        batch.persist()
        for table in changed_tables(batch):
            rows = table_rows(batch, table)
            first = rows.select("key").head()
            assert first is not None
            found = targets.get(table)
            if found is not None and not rows.where("op = 't'").isEmpty():
                found = found.limit(0)
            changed = merged_rows(rows, first.key, found)
            kept = changed.where("NOT _deleted").drop("_deleted")
            if found is not None:
                kept = kept.unionByName(found.join(changed, first.key, "left_anti"))
            # Nothing is left to be computed from the micro-batch.
            targets[table] = spark.createDataFrame(kept.collect(), kept.schema)
        batch.unpersist()

    options = {**public.options, "format": "tables", "skipped.operations": "none"}

    def run() -> None:
        stream = spark.readStream.format("floodmark").options(**options, **ENDING).load()
        writer = stream.writeStream.foreachBatch(merge_tables)
        start_to_end(writer.option("checkpointLocation", str(tmp_path / "checkpoint"))).awaitTermination()

    run()
    public.execute(*CHANGES)
    run()
    for table in TABLES:
        rows = targets[f"public.{table}"].drop("_position").collect()
        assert sorted(map(tuple, rows)) == public.rows(table)
