"""The quick start in the guide to Avro works as it is written: Spark, brokers, a registry and Confluent's consumer."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from floodmark.cli.checks.environment import check_query
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.spark.pipelines.file import load_file
from floodmark.spark.pipelines.query import start_query
from tests.support.avro import Consumer
from tests.support.guides import example
from tests.support.kafka import running_cluster
from tests.support.patience import within
from tests.support.schema_registry import RunningRegistry

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.usefixtures("other_process")]


@pytest.mark.parametrize("engine", ["floodmark", "spark"])
def test_the_example(
    engine: str,
    spark: SparkSession,
    registry: RunningRegistry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PASSWORD", "secret")
    with running_cluster(tmp_path / "brokers", 3) as (one, two, _), EmbeddedPostgres(18) as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as conn:
            conn.execute("CREATE ROLE cdc SUPERUSER LOGIN PASSWORD 'secret'")
            conn.execute("CREATE DATABASE shop")
        with psycopg.connect(server.conninfo("shop"), autocommit=True) as conn:
            conn.execute("CREATE TABLE orders (id int PRIMARY KEY, v text)")
            conn.execute("INSERT INTO orders SELECT g, 'v' || g FROM generate_series(1, 1000) g")
            text = example("avro.md", "yaml", tmp_path / "file")
            text = text.replace("broker1:9092,broker2:9092", f"{one.servers},{two.servers}")
            text = text.replace("http://registry:8081", registry.url)
            text = text.replace("hostname: db", f"hostname: 127.0.0.1\n  database.port: {server.port}")
            file = tmp_path / "avro.yaml"
            options = "  options:\n"
            file.write_text(
                text.replace(options, f"{options}    engine: {engine}\n") + "trigger: {availableNow: true}\n"
            )
            pipeline = load_file(file).only
            found = {item.check: item.status for item in check_query(pipeline)}
            assert found["schema registry"] == "ok"
            assert start_query(spark, pipeline).awaitTermination(int(within(120)))
            conn.execute("ALTER TABLE orders ADD COLUMN n int DEFAULT 7")
            conn.execute("UPDATE orders SET v = 'new' WHERE id <= 10")
            conn.execute("DELETE FROM orders WHERE id = 1")
            assert start_query(spark, pipeline).awaitTermination(int(within(120)))
            rows: dict[int, str] = dict(conn.execute("SELECT id, v FROM orders").fetchall())
        records = one.records("shop.public.orders")
    kept: dict[int, str] = {}
    read = Consumer(registry.url)
    for record in records:
        row = {"topic": record.topic(), "key": record.key(), "value": record.value()}
        if row["value"] is None:
            del kept[read(row, "key")["id"]]
            continue
        event = read(row, "value")
        if event["op"] != "d":
            kept[event["after"]["id"]] = event["after"]["v"]
    assert kept == rows
    first = next(record for record in records if record.value() is not None)
    exec(example("avro.md", "python", tmp_path), {"registry": registry.url, "record": first})
    assert capsys.readouterr().out.startswith("r {'id': ")
    assert len(registry.schemas("shop.public.orders-value")) == 2
