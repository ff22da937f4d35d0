"""The quick starts in the guide to the sink kafka work as they are written, with a cluster of three brokers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from floodmark.cli.checks.environment import check_sink
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.spark.pipelines.file import load_file
from floodmark.spark.pipelines.query import start_query
from tests.support.batch import wait_for
from tests.support.guides import example
from tests.support.kafka import running_cluster
from tests.support.patience import within


@pytest.mark.slow
def test_the_examples(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "secret")
    with running_cluster(tmp_path / "brokers", 3) as (one, two, _), EmbeddedPostgres(18) as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as conn:
            conn.execute("CREATE ROLE cdc SUPERUSER LOGIN PASSWORD 'secret'")
            conn.execute("CREATE DATABASE shop")
        with psycopg.connect(server.conninfo("shop"), autocommit=True) as conn:
            conn.execute("CREATE TABLE orders (id int PRIMARY KEY, v text)")
            conn.execute("INSERT INTO orders SELECT g, 'v' FROM generate_series(1, 100) g")
            text = example("kafka.md", "yaml", tmp_path / "file").replace(
                "broker1:9092,broker2:9092", f"{one.servers},{two.servers}"
            )
            text = text.replace(
                "database.hostname: db", f"database.hostname: 127.0.0.1\n  database.port: {server.port}"
            )
            file = tmp_path / "kafka.yaml"
            file.write_text(text + "trigger: {availableNow: true}\n")
            pipeline = load_file(file).only
            assert [found.status for found in check_sink(pipeline)] == ["ok"]
            query = start_query(spark, pipeline)
            assert query.awaitTermination(int(within(120)))
            topic = "shop.public.orders"
            assert one.topics()[topic] == 6
            assert sorted(json.loads(record.key() or b"")["id"] for record in one.records(topic)) == [*range(1, 101)]
            conn.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
            source = {**pipeline.source, "state.dir": str(tmp_path / "python"), "snapshot.mode": "no_data"}
            names: dict[str, Any] = {"spark": spark, "source": source, "options": dict(pipeline.sink.options)}
            exec(example("kafka.md", "python", tmp_path / "python"), names)
            try:
                wait_for(
                    lambda: conn.execute("SELECT 1 FROM pg_replication_slots WHERE active").fetchone() is not None,
                    "the stream begins",
                )
                conn.execute("UPDATE orders SET v = 'new' WHERE id <= 10")
                wait_for(lambda: one.count(topic) == 110, "the events follow")
            finally:
                names["query"].stop()
