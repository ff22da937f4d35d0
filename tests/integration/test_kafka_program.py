"""A program writes a stream to Kafka in its own session."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import floodmark
from floodmark.connectors.load import load_options
from floodmark.spark.sinks import kafka_tasks
from tests.conftest import Source
from tests.integration.test_program import small
from tests.support.kafka import Broker

__all__ = ["small"]
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("blocks", ["0", "3"])
def test_events_and_blocks_of_them_are_written(
    blocks: str, spark: SparkSession, small: Source, broker: Broker, tmp_path: Path
) -> None:
    prefix = f"program_{blocks}_{tmp_path.name}"
    source = {**small.options, "topic.prefix": prefix, "event.blocks": blocks, "trigger.available.now": "true"}
    events = spark.readStream.format("floodmark").options(**source).load()
    writer = floodmark.kafka(events, {"kafka.bootstrap.servers": broker.servers})
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.processAllAvailable()
    query.stop()
    records = broker.records(f"{prefix}.public.t")
    assert sorted(json.loads(one.key() or b"{}")["id"] for one in records) == list(range(1, 21))


@pytest.mark.long
@pytest.mark.parametrize("blocks", ["0", "2"])
def test_a_query_gets_a_transform_that_decides_on_partitions(
    blocks: str, spark: SparkSession, small: Source, broker: Broker, tmp_path: Path
) -> None:
    prefix = f"placed_{blocks}_{tmp_path.name}"
    broker.create(f"{prefix}.public.t", 5)
    source = {**small.options, "topic.prefix": prefix, "event.blocks": blocks, "trigger.available.now": "true"}
    place = {
        "type": "io.debezium.transforms.partitions.PartitionRouting",
        "partition.payload.fields": "change.id",
        "partition.topic.num": "5",
    }
    placed = {"transforms": "place", **{f"transforms.place.{name}": value for name, value in place.items()}}
    for options in (source, source | placed):
        events = spark.readStream.format("floodmark").options(**options).load()
        assert ("partition" in events.columns) == (blocks == "0" and "transforms" in options)
        writer = floodmark.kafka(events, {"kafka.bootstrap.servers": broker.servers})
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.processAllAvailable()
        query.stop()
        small.execute("INSERT INTO t SELECT n FROM generate_series((SELECT max(id) + 1 FROM t), 40) n")
    found = {json.loads(one.key() or b"{}")["id"]: one.partition() for one in broker.records(f"{prefix}.public.t")}
    assert sorted(found) == list(range(1, 41))
    assert all(partition == number % 5 for number, partition in found.items() if number > 20)
    assert any(partition != number % 5 for number, partition in found.items() if number <= 20)


@pytest.mark.parametrize(
    "change", ["repartition", *(pytest.param(one, marks=pytest.mark.long) for one in ("", "coalesce"))]
)
def test_events_of_a_key_are_in_order_whatever_a_program_does_with_blocks(
    change: str, spark: SparkSession, small: Source, broker: Broker, tmp_path: Path
) -> None:
    prefix = f"order_{change}_{tmp_path.name}"
    options = {"topic.prefix": prefix, "event.blocks": "2", "segment.bytes": "65536"}
    source = {**small.options, **options, "trigger.available.now": "true"}
    events = spark.readStream.format("floodmark").options(**source).load()
    if change:
        events = events.coalesce(1) if change == "coalesce" else events.repartition(3)
    writer = floodmark.kafka(events, {"kafka.bootstrap.servers": broker.servers})
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    small.execute("ALTER TABLE t ADD v text")
    for first in (0, 400):
        for number in range(first, first + 400):
            small.execute(f"UPDATE t SET v = '{number} {'x' * 300}' WHERE id % 4 = {number % 4}")
        query = writer.start()
        query.processAllAvailable()
        query.stop()
    written: dict[bytes, list[int]] = {}
    for one in broker.records(f"{prefix}.public.t"):
        found = json.loads(one.value() or b"{}")
        if found["op"] == "u":
            written.setdefault(one.key() or b"", []).append(int(found["after"]["v"].split()[0]))
    assert len(written) == 20
    assert all(numbers == sorted(numbers) for numbers in written.values())
    assert all(numbers[-1] >= 796 for numbers in written.values())


def test_a_task_writes_a_block_before_it_has_the_next(
    spark: SparkSession, small: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = kafka_tasks._WRITTEN
    told: set[str] = set()

    def sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            yield pa.RecordBatch.from_pylist([{"topics": [f"{number}: {batch.num_rows}"]}], schema=schema)

    monkeypatch.setattr(kafka_tasks, "_writing", lambda *_: sizes)
    topics = SimpleNamespace(add=told.update)
    monkeypatch.setattr(kafka_tasks.KafkaTasks, "_topics", lambda *_: topics)
    source = {**small.options, "event.blocks": "2", "trigger.available.now": "true"}
    events = spark.readStream.format("floodmark").options(**source).load().coalesce(1)
    writer = floodmark.kafka(events, {"kafka.bootstrap.servers": "127.0.0.1:1"})
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.processAllAvailable()
    query.stop()
    assert told == {"0: 1", "1: 1"}


def test_what_the_sink_refuses(spark: SparkSession, small: Source) -> None:
    blocks = spark.readStream.format("floodmark").options(**small.options, **{"event.blocks": "2"}).load()
    brokers = {"kafka.bootstrap.servers": "127.0.0.1:1"}
    with pytest.raises(floodmark.ConfigError, match=r"takes events, not blocks of them\. Leave out .* event\.blocks"):
        floodmark.kafka(blocks, {**brokers, "engine": "spark"})
    with pytest.raises(floodmark.ConfigError, match=r"'kafka\.lingr\.ms' sets it\. Did you mean 'kafka\.linger\.ms'"):
        floodmark.kafka(blocks, {**brokers, "kafka.lingr.ms": "5"})
    conf = spark.sparkContext._conf
    conf.set("spark.speculation", "true")
    try:
        with pytest.raises(floodmark.ConfigError, match=r"'spark\.speculation' is true"):
            floodmark.kafka(blocks, brokers)
    finally:
        conf.set("spark.speculation", "false")
    with pytest.raises(floodmark.ConfigError, match=r"'event\.blocks' needs format=events"):
        load_options({**small.options, "format": "arrow", "event.blocks": "2"})
