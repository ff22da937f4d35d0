"""The quick start in the guide to Avro works as it is written: Spark, brokers, a registry and Confluent's consumer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from floodmark.cli.checks.environment import check_query
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.spark.pipelines.file import load_file
from floodmark.spark.pipelines.query import start_query
from tests.integration.test_kafka_sink import JARS, NO_JARS, sink
from tests.integration.test_run import AVAILABLE_NOW, Pipeline, conn, pipeline, server
from tests.support.avro import Consumer, avro_options
from tests.support.guides import example
from tests.support.kafka import Broker, running_cluster
from tests.support.patience import within
from tests.support.schema_registry import RunningRegistry

__all__ = ["conn", "pipeline", "server"]
pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.usefixtures("other_process")]


def test_the_example(
    spark: SparkSession,
    registry: RunningRegistry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PASSWORD", "secret")
    with running_cluster(tmp_path / "brokers", 3) as (one, two, _), EmbeddedPostgres(18) as own:
        with psycopg.connect(own.conninfo(), autocommit=True) as session:
            session.execute("CREATE ROLE cdc SUPERUSER LOGIN PASSWORD 'secret'")
            session.execute("CREATE DATABASE shop")
        with psycopg.connect(own.conninfo("shop"), autocommit=True) as session:
            session.execute("CREATE TABLE orders (id int PRIMARY KEY, v text)")
            session.execute("INSERT INTO orders SELECT g, 'v' || g FROM generate_series(1, 1000) g")
            text = example("avro.md", "yaml", tmp_path / "file")
            text = text.replace("broker1:9092,broker2:9092", f"{one.servers},{two.servers}")
            text = text.replace("http://registry:8081", registry.url)
            text = text.replace("hostname: db", f"hostname: 127.0.0.1\n  database.port: {own.port}")
            file = tmp_path / "avro.yaml"
            file.write_text(f"{text}trigger: {{availableNow: true}}\n")
            pipeline = load_file(file).only
            found = {item.check: item.status for item in check_query(pipeline)}
            assert found["schema registry"] == "ok"
            assert start_query(spark, pipeline).awaitTermination(int(within(120)))
            session.execute("ALTER TABLE orders ADD COLUMN n int DEFAULT 7")
            session.execute("UPDATE orders SET v = 'new' WHERE id <= 10")
            session.execute("DELETE FROM orders WHERE id = 1")
            assert start_query(spark, pipeline).awaitTermination(int(within(120)))
            rows: dict[int, str] = dict(session.execute("SELECT id, v FROM orders").fetchall())
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


def test_a_transform_and_sparks_own_connector_take_the_bytes(
    pipeline: Pipeline, conn: psycopg.Connection[Any], broker: Broker, registry: RunningRegistry
) -> None:
    pipeline.content["source"] |= {**avro_options(registry.url), "topic.prefix": conn.info.dbname}
    topic = f"{conn.info.dbname}.public.orders"
    broker.create(topic, 2)
    every = {"transform": "SELECT topic, key, value FROM events WHERE op = 'r'"}
    for engine in ("spark", "floodmark"):
        target = {**sink(broker, engine=engine), **every}
        where = {"checkpoint": str(pipeline.directory / engine)}
        pipeline.content["source"] |= {"slot.name": f"{conn.info.dbname}_{engine}", "publication.name": engine}
        pipeline.content["source"]["state.dir"] = str(pipeline.directory / f"state_{engine}")
        done = pipeline.finish(
            sink=target, trigger=AVAILABLE_NOW, spark=JARS if engine == "spark" else NO_JARS, **where
        )
        assert done[0] == 0, pipeline.stderr
    read = Consumer(registry.url)
    records = broker.records(topic)
    assert len(records) == 200
    for record in records:
        row = {"topic": topic, "key": record.key(), "value": record.value()}
        assert read(row, "value")["after"]["id"] == read(row, "key")["id"]
