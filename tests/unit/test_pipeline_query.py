"""What Spark is told about a pipeline."""

from __future__ import annotations

from typing import Any

import pytest

from floodmark.spark.pipelines.model import parse_pipeline
from floodmark.spark.pipelines.query import LOCAL_CHECKPOINTS, LOCAL_SOCKETS, spark_properties
from floodmark.spark.sinks.kafka import kafka_package
from tests.support.options import REQUIRED

KAFKA = kafka_package()


def properties(sink: str = "noop", checkpoint: str = "/c", **spark: str) -> dict[str, str]:
    sinks: dict[str, Any] = {
        "noop": {"type": "noop"},
        "kafka": {"type": "kafka", "options": {"kafka.bootstrap.servers": "k:9092"}},
        "kafka by spark": {"type": "kafka", "options": {"kafka.bootstrap.servers": "k:9092", "engine": "spark"}},
    }
    content = {"source": REQUIRED, "sink": sinks[sink], "checkpoint": checkpoint, "spark": spark}
    return spark_properties(parse_pipeline(content, {}))


def test_defaults_and_what_overrides_them() -> None:
    assert properties()["spark.master"] == "local[*]"
    assert properties()["spark.app.name"] == "shop"
    assert properties().items() >= LOCAL_SOCKETS.items()
    assert "spark.jars.packages" not in properties()
    changed = {"spark.master": "local[2]", "spark.sql.session.timeZone": "Asia/Tokyo"}
    assert properties(**changed) | changed == properties(**changed)


@pytest.mark.parametrize(
    ("checkpoint", "local"), [("/c", True), ("file:///c", True), ("s3a://bucket/c", False), ("hdfs://name/c", False)]
)
def test_checkpoints_on_a_local_disk_are_written_without_a_shell(checkpoint: str, local: bool) -> None:
    assert (properties(checkpoint=checkpoint).items() >= LOCAL_CHECKPOINTS.items()) is local


@pytest.mark.parametrize(
    ("spark", "packages"),
    [
        ({}, KAFKA),
        ({"spark.jars.packages": "io.delta:delta-spark_2.13:4.0.0"}, f"io.delta:delta-spark_2.13:4.0.0,{KAFKA}"),
        ({"spark.jars.packages": "x:spark-sql-kafka-0-10_2.13:1"}, "x:spark-sql-kafka-0-10_2.13:1"),
        ({"spark.jars": "/jars/spark-sql-kafka-0-10_2.13-4.3.0.jar"}, None),
    ],
)
def test_kafka_connector_comes_as_a_package(spark: dict[str, str], packages: str | None) -> None:
    assert properties("kafka by spark", **spark).get("spark.jars.packages") == packages
    assert properties("kafka", **spark).get("spark.jars.packages") == spark.get("spark.jars.packages")
