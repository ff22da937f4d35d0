"""The quick starts in the guide to the sink jdbc work as they are written, in one server as source and target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from floodmark.cli.checks.environment import check_sink
from floodmark.cli.main import app
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.spark.pipelines.file import load_file
from floodmark.spark.pipelines.query import start_query
from tests.support.batch import wait_for
from tests.support.guides import example
from tests.support.patience import within


@pytest.mark.slow
def test_the_examples(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "secret")
    monkeypatch.setenv("TARGET_PASSWORD", "secret")
    with EmbeddedPostgres(18) as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as conn:
            conn.execute("CREATE ROLE cdc SUPERUSER LOGIN PASSWORD 'secret'")
            conn.execute("CREATE ROLE loader LOGIN PASSWORD 'secret'")
            conn.execute("CREATE DATABASE shop")
            conn.execute("CREATE DATABASE reports OWNER loader")

        def rows_of(table: str) -> list[Any]:
            with psycopg.connect(server.conninfo("reports"), autocommit=True) as conn:
                return conn.execute(f"SELECT id, v FROM {table} ORDER BY id").fetchall()

        with psycopg.connect(server.conninfo("shop"), autocommit=True) as conn:
            for table in ("orders", "customers", "others"):
                conn.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v text)")
                conn.execute(f"INSERT INTO {table} VALUES (1, '{table}')")
            text = example("jdbc.md", "yaml", tmp_path / "file").replace("warehouse:5432", f"127.0.0.1:{server.port}")
            text = text.replace(
                "database.hostname: db", f"database.hostname: 127.0.0.1\n  database.port: {server.port}"
            )
            file = tmp_path / "jdbc.yaml"
            file.write_text(text + "trigger: {availableNow: true}\n")
            pipeline = load_file(file).only
            (found,) = check_sink(pipeline)
            assert (found.status, found.finding) == (
                "ok",
                f"127.0.0.1:{server.port}/reports (PostgreSQL 18) can be written",
            )
            start_query(spark, pipeline).awaitTermination(int(within(120)))
            for table in ("orders", "customers"):
                assert rows_of(f"public_{table}") == [(1, table)]
            shown = CliRunner().invoke(app, ["status", str(file)])
            assert shown.exit_code == 0, shown.output
            options, target = dict(pipeline.source), dict(pipeline.sink.options)
            conn.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
            chosen = {**options, "state.dir": str(tmp_path / "python")}
            names: dict[str, Any] = {
                "spark": spark,
                "options": chosen,
                "target": {**target, "existing.tables": "empty"},
            }
            exec(example("jdbc.md", "python", tmp_path / "python"), names)
            try:
                conn.execute("UPDATE orders SET v = 'new'")
                wait_for(lambda: rows_of("public_orders") == [(1, "new")], "the target follows")
                # Its own writes are in the same server's log, and must not keep the query busy.
                wait_for(lambda: names["query"].lastProgress is not None, "Spark reports progress")
                conn.execute("SELECT pg_sleep(2)")
                batch = names["query"].lastProgress["batchId"]
                conn.execute("SELECT pg_sleep(4)")
                assert names["query"].lastProgress["batchId"] <= batch + 1
            finally:
                names["query"].stop()
