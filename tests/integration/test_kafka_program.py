"""A program writes a stream to Kafka in its own session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import floodmark
from floodmark.connectors.load import load_options
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
