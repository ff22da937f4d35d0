"""A query that keeps Iceberg tables: it begins, goes on, and sets a target aside that can't take its rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.spark.targets.names import catalog_name
from tests.conftest import Source, drop, make_source
from tests.support.delta_spark import DeltaSpark
from tests.support.driver import Driver
from tests.support.iceberg_spark import LAKE, catalogue_in, properties, running_iceberg_spark
from tests.support.patience import within

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not os.environ.get("FLOODMARK_FULL_MATRIX"), reason="takes minutes; make chaos sets FLOODMARK_FULL_MATRIX"
    ),
]
SCHEMA = f"{LAKE}.shop"
MIRROR = {"format": "iceberg", "catalog.schema": SCHEMA}


@pytest.fixture
def database(pg18: EmbeddedPostgres, tmp_path: Path) -> Iterator[Source]:
    made = make_source(pg18, tmp_path / "state")
    made.execute(
        "CREATE TABLE a (id int PRIMARY KEY, v integer, n numeric(10,2), t timestamp, z timestamptz, b bytea, x text)",
        "INSERT INTO a SELECT g, g, g / 4.0, '2026-01-01', '2026-01-01Z', '\\x00ff', repeat('x', 9000) "
        "FROM generate_series(1, 200) g",
        "CREATE TABLE b (id integer PRIMARY KEY, v text)",
        "INSERT INTO b VALUES (1, 'b')",
    )
    yield made
    drop(made)


def held(database: Source, table: str) -> list[Any]:
    with database.database.session() as session:
        return [tuple(row) for row in session.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()]


@pytest.mark.parametrize("engine", ["floodmark", "spark"])
def test_a_target_is_set_aside_and_taken_back(
    tmp_path: Path, pg18: EmbeddedPostgres, database: Source, engine: str
) -> None:
    catalogues = {LAKE: {"type": "jdbc", **catalogue_in(pg18, tmp_path / "lake")}}
    options = {**database.options, "format": "arrow", "skipped.operations": "none"}
    schema = database.database.schema

    def run() -> None:
        mirrors, spark = {**MIRROR, "engine": engine}, properties(catalogues)
        driver = Driver(options, tmp_path, available_now=True, mirrors=mirrors, properties=spark)
        assert driver.wait(within(180)) == 0, driver.log()[-4000:]

    def rows(spark: DeltaSpark, table: str) -> list[Any]:
        found = spark.rows(f"SELECT * FROM {catalog_name(SCHEMA, f'{schema}.{table}')} ORDER BY id")
        return [tuple(row.values()) for row in found.drop_columns(["_position"]).to_pylist()]

    with running_iceberg_spark(catalogues) as spark:
        spark.run(f"CREATE SCHEMA {SCHEMA}")
        run()
        assert rows(spark, "a") == held(database, "a")
        database.execute(
            "UPDATE a SET v = 0 WHERE id < 10", "DELETE FROM a WHERE id > 190", "INSERT INTO b VALUES (2, 'b')"
        )
        run()
        assert rows(spark, "a") == held(database, "a")
        before = rows(spark, "a")
        database.execute(
            "ALTER TABLE a ALTER v TYPE text", "INSERT INTO a VALUES (500, 'x')", "INSERT INTO b VALUES (3, 'b')"
        )
        run()
        assert (rows(spark, "a"), rows(spark, "b")) == (before, held(database, "b"))
        spark.run(f"DROP TABLE {catalog_name(SCHEMA, f'{schema}.a')}")
        shutil.rmtree(tmp_path / "out" / f"{schema}.a")
        database.execute("INSERT INTO b VALUES (4, 'b')")
        run()
        database.execute("INSERT INTO b VALUES (5, 'b')")
        run()
        assert rows(spark, "a") == held(database, "a")
        assert rows(spark, "b") == held(database, "b")
