"""The quick starts in the guide to mirrors work as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.spark.pipelines.file import load_file
from floodmark.spark.pipelines.query import start_query
from tests.support.batch import wait_for
from tests.support.guides import example
from tests.support.patience import within


def rows_of(table: Path) -> list[Any]:
    if not (table / "_delta_log").is_dir():
        return []
    query = QueryBuilder().register("t", DeltaTable(str(table))).execute("SELECT id, v FROM t ORDER BY id")
    rows: list[Any] = pa.table(query.read_all()).to_pylist()
    return rows


@pytest.mark.slow
def test_the_examples(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "secret")
    with EmbeddedPostgres(18) as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as conn:
            conn.execute("CREATE ROLE cdc SUPERUSER LOGIN PASSWORD 'secret'")
            conn.execute("CREATE DATABASE shop")
        with psycopg.connect(server.conninfo("shop"), autocommit=True) as conn:
            for table in ("orders", "customers", "others"):
                conn.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v text)")
                conn.execute(f"INSERT INTO {table} VALUES (1, '{table}')")
            place = f"database.hostname: 127.0.0.1\n  database.port: {server.port}"
            text = example("mirrors.md", "yaml", tmp_path / "file").replace("database.hostname: db", place)
            file = tmp_path / "mirror.yaml"
            file.write_text(text + "trigger: {availableNow: true}\n")
            start_query(spark, load_file(file).only).awaitTermination(int(within(120)))
            for table in ("orders", "customers"):
                assert rows_of(tmp_path / "file" / "lake" / "shop" / f"public.{table}") == [{"id": 1, "v": table}]
            assert not (tmp_path / "file" / "lake" / "shop" / "public.others").exists()
            options = dict(load_file(file).only.source)
            conn.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
            names: dict[str, Any] = {"spark": spark, "options": {**options, "state.dir": str(tmp_path / "python")}}
            exec(example("mirrors.md", "python", tmp_path / "python"), names)
            try:
                conn.execute("UPDATE orders SET v = 'new'")
                shown = tmp_path / "python" / "lake" / "shop" / "public.orders"
                wait_for(lambda: rows_of(shown) == [{"id": 1, "v": "new"}], "the mirror follows")
            finally:
                names["query"].stop()
