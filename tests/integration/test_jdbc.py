"""Tables of a database and the tables of another one that follow them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import Source, drop, make_source
from tests.support.jdbc import MysqlTarget, Target, pipeline_of, run, target_on


@pytest.fixture
def origin(pg18: EmbeddedPostgres, tmp_path: Path) -> Iterator[Source]:
    made = make_source(pg18, tmp_path / "state")
    yield made
    drop(made)


def same(source: Source, target: Target, table: str, columns: str) -> None:
    with source.database.session() as session:
        expected = session.execute(f"SELECT {columns} FROM {table} ORDER BY 1").fetchall()
    found = target.rows(f"SELECT {columns} FROM public_{table} ORDER BY 1")
    if isinstance(target, MysqlTarget):
        # MySQL's times have no zone; they are those of UTC.
        expected = [
            tuple(one.replace(tzinfo=None) if isinstance(one, datetime) else one for one in row) for row in expected
        ]
    assert list(found) == expected


CASES = [("pg16", "0")]
if os.environ.get("FLOODMARK_FULL_MATRIX"):
    CASES = list(product(("pg16", "pg18", "mysql", "mariadb"), ("0", "1048576")))


@pytest.mark.slow
@pytest.mark.parametrize(("server", "stage"), CASES)
def test_tables_follow(
    spark: SparkSession, origin: Source, server: str, stage: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with target_on(request.getfixturevalue(server)) as target:
        follow(spark, origin, target, tmp_path, stage)


def follow(spark: SparkSession, origin: Source, target: Target, tmp_path: Path, stage: str) -> None:
    origin.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text, n numeric(10,2), t timestamptz)",
        "CREATE TABLE b (id bigint PRIMARY KEY, big text)",
        "CREATE TABLE k (id integer, v text)",
        "ALTER TABLE k REPLICA IDENTITY FULL",
        "ALTER TABLE b ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO a SELECT g, 'v' || g, g / 4.0, '2026-01-01 00:00:00Z' FROM generate_series(1, 5000) g",
        "INSERT INTO b SELECT g, repeat('x', 5000) || g FROM generate_series(1, 50) g",
        "INSERT INTO k VALUES (1, 'one'), (2, 'two')",
    )
    pipeline = pipeline_of(origin, target, tmp_path, stage_bytes=stage)
    run(spark, pipeline)
    same(origin, target, "a", "id, v, n, t")
    same(origin, target, "b", "id, big")
    origin.execute(
        "UPDATE a SET v = 'new' WHERE id % 3 = 0",
        "DELETE FROM a WHERE id % 7 = 0",
        "INSERT INTO a SELECT g, 'late', 1, NULL FROM generate_series(6001, 6100) g",
        "UPDATE a SET id = id + 10000 WHERE id < 20",
        "UPDATE b SET id = id + 100 WHERE id % 2 = 0",
        "UPDATE k SET v = 'zwei' WHERE id = 2",
        "DELETE FROM k WHERE id = 1",
        "TRUNCATE k",
    )
    run(spark, pipeline)
    same(origin, target, "a", "id, v, n, t")
    same(origin, target, "b", "id, big")
    changes = target.rows("SELECT _op, id, v FROM public_k WHERE _op <> 'r' ORDER BY _position")
    assert list(changes) == [("u", 2, "zwei"), ("d", 1, "one"), ("t", None, None)]
    origin.execute("TRUNCATE b", "INSERT INTO b VALUES (1, 'one')", "DELETE FROM a")
    run(spark, pipeline)
    same(origin, target, "a", "id, v, n, t")
    same(origin, target, "b", "id, big")
    assert not [name for name in target.tables() if name.startswith("floodmark_stage")]
