"""Tables of a database and the Delta tables that mirror them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import ConfigError
from floodmark.spark.pipelines.model import Pipeline, parse_pipeline
from floodmark.spark.pipelines.query import start_query
from tests.conftest import Source, drop, make_source
from tests.support.patience import within


def rows_of(folder: Path, columns: str, where: str = "") -> list[dict[str, Any]]:
    target = QueryBuilder().register("t", DeltaTable(str(folder)))
    query = target.execute(f"SELECT {columns} FROM t{where} ORDER BY id")
    rows: list[dict[str, Any]] = pa.table(query.read_all()).to_pylist()
    return rows


@pytest.mark.slow
def test_tables_are_mirrored(spark: SparkSession, pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state")
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text, n numeric(10,2), t timestamptz)",
        "CREATE TABLE b (id bigint PRIMARY KEY, big text)",
        "ALTER TABLE b ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO a SELECT g, 'v' || g, g / 4.0, '2026-01-01 00:00:00Z' FROM generate_series(1, 5000) g",
        "INSERT INTO b SELECT g, repeat('x', 5000) || g FROM generate_series(1, 50) g",
    )
    pipeline = pipeline_of(source, tmp_path)

    def same() -> None:
        for name, columns in (("a", "id, v, n, t"), ("b", "id, big")):
            with source.database.session() as session:
                cursor = session.execute(f"SELECT {columns} FROM {name} ORDER BY id")
                expected = [dict(zip(columns.split(", "), row, strict=True)) for row in cursor.fetchall()]
            assert rows_of(tmp_path / "lake" / f"public.{name}", columns) == expected

    run(spark, pipeline)
    same()
    source.execute(
        "UPDATE a SET v = 'new' WHERE id % 3 = 0",
        "DELETE FROM a WHERE id % 7 = 0",
        "INSERT INTO a SELECT g, 'late', 1, NULL FROM generate_series(6001, 6100) g",
        "UPDATE a SET id = id + 10000 WHERE id < 20",
        "UPDATE b SET id = id + 100 WHERE id % 2 = 0",
    )
    run(spark, pipeline)
    same()
    source.execute("TRUNCATE b", "INSERT INTO b VALUES (1, 'one')", "DELETE FROM a")
    run(spark, pipeline)
    same()
    drop(source)


def pipeline_of(source: Source, folder: Path, **options: str) -> Pipeline:
    return parse_pipeline(
        {
            "source": source.options,
            "sink": {"type": "mirror", "path": str(folder / "lake"), "options": options},
            "checkpoint": str(folder / "checkpoint"),
            "trigger": {"availableNow": "true"},
        }
    )


def run(spark: SparkSession, pipeline: Pipeline) -> None:
    start_query(spark, pipeline).awaitTermination(int(within(120)))


@pytest.mark.slow
def test_tables_without_a_key_keep_their_changes(spark: SparkSession, pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state")
    source.execute("CREATE TABLE a (id integer, v text)", "ALTER TABLE a REPLICA IDENTITY FULL")
    source.execute("INSERT INTO a VALUES (1, 'one'), (2, 'two')")
    pipeline = pipeline_of(source, tmp_path)
    run(spark, pipeline)
    source.execute("UPDATE a SET v = 'zwei' WHERE id = 2", "DELETE FROM a WHERE id = 1", "TRUNCATE a")
    run(spark, pipeline)
    rows = sorted(rows_of(tmp_path / "lake" / "public.a", "_position, _op, id, v"), key=lambda row: row["_position"])
    found = [tuple(row.values())[1:] for row in rows]
    assert sorted(found[:2]) == [("r", 1, "one"), ("r", 2, "two")]
    assert found[2:] == [("u", 2, "zwei"), ("d", 1, "one"), ("t", None, None)]
    drop(source)


@pytest.mark.slow
def test_deleted_rows_stay(spark: SparkSession, pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state")
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text, big text)",
        "ALTER TABLE a ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO a SELECT g, 'v' || g, repeat('x', 5000) || g FROM generate_series(1, 5) g",
    )
    pipeline = pipeline_of(source, tmp_path, deletes="soft")
    run(spark, pipeline)
    source.execute(
        "DELETE FROM a WHERE id = 1", "UPDATE a SET id = 12 WHERE id = 2", "UPDATE a SET v = 'w' WHERE id = 3"
    )
    run(spark, pipeline)
    table = tmp_path / "lake" / "public.a"
    found = {row["id"]: (row["v"], row["_deleted"]) for row in rows_of(table, "id, v, _deleted")}
    known = {1: ("v1", True), 2: ("v2", True), 3: ("w", False), 4: ("v4", False), 5: ("v5", False), 12: ("v2", False)}
    assert found == known
    source.execute("INSERT INTO a VALUES (1, 'again', '')", "TRUNCATE a", "INSERT INTO a VALUES (4, 'four', '')")
    run(spark, pipeline)
    rows = rows_of(table, "id, v, big, _deleted")
    assert [(row["id"], row["v"], row["big"][-3:], row["_deleted"]) for row in rows] == [
        (1, "again", "", True),
        (2, "v2", "xx2", True),
        (3, "w", "xx3", True),
        (4, "four", "", False),
        (5, "v5", "xx5", True),
        (12, "v2", "xx2", True),
    ]
    drop(source)


@pytest.mark.slow
def test_every_version_stays(spark: SparkSession, pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state")
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text, big text)",
        "ALTER TABLE a ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO a SELECT g, 'v' || g, repeat('x', 5000) || g FROM generate_series(1, 4) g",
    )
    pipeline = pipeline_of(source, tmp_path, history="on")
    run(spark, pipeline)
    source.execute(
        "UPDATE a SET v = 'w' WHERE id = 1",
        "UPDATE a SET v = 'x' WHERE id = 1",
        "DELETE FROM a WHERE id = 2",
        "UPDATE a SET id = 13 WHERE id = 3",
    )
    run(spark, pipeline)
    source.execute("INSERT INTO a VALUES (2, 'again', '')", "ALTER TABLE a ADD n integer DEFAULT 7")
    run(spark, pipeline)
    source.execute("UPDATE a SET v = 'y' WHERE id = 13", "TRUNCATE a", "INSERT INTO a VALUES (5, 'five', '')")
    run(spark, pipeline)
    names = "id, v, right(big, 2) AS big, valid_from, valid_to, is_current, _position"
    rows = sorted(rows_of(tmp_path / "lake" / "public.a", names), key=lambda row: (row["id"], row["_position"]))
    found = {
        number: [(row["v"], row["big"], row["is_current"]) for row in rows if row["id"] == number]
        for number in (1, 2, 3, 4, 5, 13)
    }
    # The table is read again for the new column, after the rows were deleted that had none.
    assert found == {
        1: [("v1", "x1", False), ("w", "x1", False), ("x", "x1", False)],
        2: [("v2", "x2", False), ("again", "", False)],
        3: [("v3", "x3", False)],
        4: [("v4", "x4", False)],
        5: [("five", "", True)],
        13: [("v3", "x3", False), ("y", "x3", False)],
    }
    first, second, third = (row for row in rows if row["id"] == 1)
    assert first["valid_from"] < first["valid_to"] == second["valid_from"] < second["valid_to"] == third["valid_from"]
    deleted, again = (row for row in rows if row["id"] == 2)
    assert deleted["valid_to"] < again["valid_from"]
    assert [row["valid_to"] is None for row in rows] == [row["is_current"] for row in rows]
    drop(source)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["read", "leave_null", "fail"])
def test_a_new_column(spark: SparkSession, pg18: EmbeddedPostgres, tmp_path: Path, policy: str) -> None:
    source = make_source(pg18, tmp_path / "state")
    source.execute("CREATE TABLE a (id integer PRIMARY KEY, v text)", "INSERT INTO a VALUES (1, 'one'), (2, 'two')")
    pipeline = pipeline_of(source, tmp_path, **{"new.columns": policy})
    run(spark, pipeline)
    source.execute("ALTER TABLE a ADD n integer DEFAULT 7", "INSERT INTO a VALUES (3, 'three', 3)")
    table = tmp_path / "lake" / "public.a"
    if policy == "fail":
        with pytest.raises(StreamingQueryException, match=r"The table 'public\.a' has new columns: n\."):
            run(spark, pipeline)
        assert len(rows_of(table, "id, v")) == 2
    else:
        # The second run reads what the first one has asked for.
        run(spark, pipeline)
        run(spark, pipeline)
        earlier = 7 if policy == "read" else None
        assert [row["n"] for row in rows_of(table, "id, n")] == [earlier, earlier, 3]
    drop(source)


@pytest.mark.slow
def test_another_type_ends_the_query(spark: SparkSession, pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state", **{"errors.tables": "fail"})
    source.execute("CREATE TABLE a (id integer PRIMARY KEY, v text)", "CREATE TABLE b (id integer PRIMARY KEY)")
    source.execute("INSERT INTO a VALUES (1, '1')", "INSERT INTO b VALUES (1)")
    pipeline = pipeline_of(source, tmp_path)
    run(spark, pipeline)
    source.execute("ALTER TABLE a ALTER v TYPE bigint USING v::bigint", "INSERT INTO a VALUES (2, 2)")
    source.execute("INSERT INTO b VALUES (2)")
    with pytest.raises(StreamingQueryException, match=r"'v' of the Delta table 'public\.a' is string"):
        run(spark, pipeline)
    # The other table has been written.
    assert [row["id"] for row in rows_of(tmp_path / "lake" / "public.b", "id")] == [1, 2]
    table = tmp_path / "lake" / "public.a"
    assert [row["id"] for row in rows_of(table, "id")] == [1]
    # The way out that the error names; the second run reads what the first one has asked for.
    shutil.rmtree(table)
    for _ in range(2):
        run(spark, pipeline_of(source, tmp_path, **{"missing.tables": "read"}))
    assert rows_of(table, "id, v") == [{"id": 1, "v": 1}, {"id": 2, "v": 2}]
    drop(source)


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [True, False])
def test_a_target_that_is_gone(spark: SparkSession, pg18: EmbeddedPostgres, tmp_path: Path, keyed: bool) -> None:
    source = make_source(pg18, tmp_path / "state")
    key = "PRIMARY KEY" if keyed else ""
    source.execute(f"CREATE TABLE a (id integer {key}, v text)", "INSERT INTO a VALUES (1, 'one'), (2, 'two')")
    run(spark, pipeline_of(source, tmp_path))
    shutil.rmtree(tmp_path / "lake")
    source.execute("INSERT INTO a VALUES (3, 'three')")
    with pytest.raises(StreamingQueryException, match=r"The target table 'public\.a' is gone"):
        run(spark, pipeline_of(source, tmp_path))
    again = pipeline_of(source, tmp_path, **{"missing.tables": "read"})
    # The second run reads what the first one has asked for.
    run(spark, again)
    run(spark, again)
    rows = rows_of(tmp_path / "lake" / "public.a", "id, v")
    assert {(row["id"], row["v"]) for row in rows} == {(1, "one"), (2, "two"), (3, "three")}
    assert len(rows) == (3 if keyed else 4)
    drop(source)


@pytest.mark.slow
def test_a_mirror_by_a_spark_without_delta(spark: SparkSession, pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state")
    with pytest.raises(ConfigError, match="engine=spark needs Delta's runtime, which"):
        start_query(spark, pipeline_of(source, tmp_path, engine="spark"))
    assert not (tmp_path / "checkpoint").exists()
    drop(source)
