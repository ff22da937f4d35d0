"""A query on the newest Spark keeps Iceberg tables of a catalogue, without Iceberg's runtime: the guide's example."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyspark.sql import SparkSession

import floodmark
from floodmark.cli.checks.environment import check_sink
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.spark.pipelines.file import load_file
from floodmark.spark.pipelines.query import start_query
from tests.support.iceberg_rest import running_rest_catalogue
from tests.support.iceberg_spark import catalogue_in
from tests.support.patience import within

GUIDE = (Path(__file__).parents[2] / "docs" / "iceberg.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_example(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "secret")
    (example,) = [found for found in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL) if "catalog.type" in found]
    with EmbeddedPostgres(18) as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as conn:
            conn.execute("CREATE ROLE cdc SUPERUSER LOGIN PASSWORD 'secret'")
            conn.execute("CREATE DATABASE shop")
        backend = {**catalogue_in(server, tmp_path / "tables"), "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog"}
        with (
            running_rest_catalogue(backend) as uri,
            psycopg.connect(server.conninfo("shop"), autocommit=True) as conn,
        ):
            lake = load_catalog("lake", type="rest", uri=uri)
            for table in ("orders", "customers", "others"):
                conn.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v text)")
                conn.execute(f"INSERT INTO {table} SELECT g, '{table}' || g FROM generate_series(1, 500) g")
            text = example.replace("/shared", f"{tmp_path}/shared")
            text = text.replace(
                "database.hostname: db", f"database.hostname: 127.0.0.1\n  database.port: {server.port}"
            )
            text = text.replace("http://catalogue:8181", uri)
            file = tmp_path / "mirror.yaml"
            file.write_text(text + "trigger: {availableNow: true}\n")
            pipeline = load_file(file).only
            assert any("which the catalogue doesn't have" in finding.finding for finding in check_sink(pipeline))
            lake.create_namespace("shop")
            assert not [finding for finding in check_sink(pipeline) if finding.status == "error"]

            def run() -> None:
                assert start_query(spark, pipeline).awaitTermination(int(within(120)))

            def rows_of(table: str) -> list[tuple[Any, ...]]:
                found = lake.load_table(("shop", f"public_{table}")).scan().to_arrow().select(["id", "v"])
                return sorted(tuple(row.values()) for row in found.to_pylist())

            run()
            assert rows_of("orders") == [(number, f"orders{number}") for number in range(1, 501)]
            conn.execute("UPDATE orders SET v = 'new' WHERE id % 7 = 0")
            conn.execute("DELETE FROM orders WHERE id % 11 = 0")
            conn.execute("UPDATE orders SET id = 1000 WHERE id = 1")
            run()
            assert rows_of("orders") == [tuple(row) for row in conn.execute("SELECT id, v FROM orders ORDER BY id")]
            with pytest.raises(NoSuchTableError):
                rows_of("others")
            assert pipeline.sink.path is not None
            verified = floodmark.verify(
                pipeline.source,
                pipeline.sink.path,
                pipeline.checkpoint,
                at_rest=True,
                mirror=pipeline.sink.mirror_options,
            )
            assert {table.table: table.status for table in verified.tables} == {
                "public.customers": "equal",
                "public.orders": "equal",
            }
            conn.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
