"""``floodmark run`` writes to a real Kafka broker, by itself and with Spark's connector."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Message

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.spark.versions import GIVES_START
from tests.integration.test_run import AVAILABLE_NOW, Pipeline, conn, pipeline, server
from tests.support.kafka import Broker, running_broker, spark_jars
from tests.support.maven import CACHE

__all__ = ["conn", "pipeline", "server"]
pytestmark = pytest.mark.slow
NO_JARS = {"spark.master": "local[2]"}
DOWNLOADED = {"spark.master": "local[2]", "spark.jars.ivy": str(CACHE / "ivy")}
"""Spark finds the connector itself, as it does by default."""
JARS = {**DOWNLOADED, **({"spark.jars": ",".join(map(str, spark_jars()))} if GIVES_START else {})}
"""Here it needn't look for it again, which takes ten seconds."""


CREATION = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}


def sink(broker: Broker, **options: str) -> dict[str, Any]:
    given = {name.replace("_", "."): value for name, value in options.items()}
    return {"type": "kafka", "options": {"kafka.bootstrap.servers": broker.servers, **given}}


def values_by_key(records: Iterable[Message]) -> dict[bytes | None, list[bytes | None]]:
    found: dict[bytes | None, list[bytes | None]] = defaultdict(list)
    for record in records:
        found[record.key()].append(record.value())
    return found


@pytest.mark.parametrize("engine", ["floodmark", pytest.param("spark", marks=pytest.mark.long)])
def test_the_topics_hold_the_changes_of_each_key_in_their_order(
    engine: str, pipeline: Pipeline, conn: psycopg.Connection[Any], broker: Broker
) -> None:
    pipeline.content["source"]["topic.prefix"] = conn.info.dbname
    topic = f"{conn.info.dbname}.public.orders"
    broker.create(topic, 3)
    changes = {"sink": sink(broker, engine=engine), "trigger": AVAILABLE_NOW}
    spark = {"floodmark": NO_JARS, "spark": JARS}[engine]
    assert pipeline.finish(**changes, spark=DOWNLOADED if engine == "spark" else NO_JARS)[0] == 0, pipeline.stderr
    assert broker.count(topic) == 100
    conn.execute("UPDATE orders SET note = note || id WHERE id <= 50")
    conn.execute("UPDATE orders SET note = 'größer' WHERE id % 2 = 0")
    conn.execute("DELETE FROM orders WHERE id % 10 = 0")
    conn.execute("INSERT INTO orders VALUES (10, 'again')")
    # With a transform, topics are made from what it returns, and the order stays.
    every = f"{topic}.all"
    twice = f"SELECT key, value, explode(array(topic, '{every}')) AS topic FROM events"
    changes["sink"] = {**sink(broker, engine=engine), "transform": twice}
    changes["sink"]["options"] |= CREATION
    assert pipeline.finish(**changes, spark=spark)[0] == 0, pipeline.stderr
    records = broker.records(topic)
    # The first record of each key is the snapshot's.
    changed = {key: values[1:] for key, values in values_by_key(records).items() if len(values) > 1}
    assert values_by_key(broker.records(every)) == changed
    assert len({record.partition() for record in records}) == 3
    kept: dict[int, Any] = {}
    operations: dict[int, str] = {}
    for record in records:
        key, text = json.loads(record.key() or b"{}")["id"], record.value()
        if text is None:
            # Other keys' records may be between: several tasks write to the same partition.
            assert operations[key] == "d"
            del kept[key], operations[key]
            continue
        event = json.loads(text)
        # Each change begins where the key's last one has ended.
        assert event["before"] is None or event["op"] == "d" or key in kept
        kept[key] = event["after"]
        operations[key] = event["op"]
    rows = conn.execute("SELECT id, note FROM orders").fetchall()
    assert kept == {key: {"id": key, "note": note} for key, note in rows}


@pytest.mark.long
@pytest.mark.parametrize("engine", ["floodmark", "spark"])
@pytest.mark.parametrize("made", [False, True])
def test_a_transform_decides_on_partitions(
    engine: str, made: bool, pipeline: Pipeline, conn: psycopg.Connection[Any], broker: Broker
) -> None:
    topic = f"{conn.info.dbname}.public.orders"
    source = pipeline.content["source"]
    source["topic.prefix"] = conn.info.dbname
    source["transforms"] = "place"
    source["transforms.place.type"] = "io.debezium.transforms.partitions.PartitionRouting"
    source["transforms.place.partition.payload.fields"] = "after.id"
    source["transforms.place.partition.topic.num"] = "3"
    own = sink(broker, engine=engine)
    if made:
        own["options"] |= {**CREATION, "topic.creation.default.partitions": "3"}
    else:
        broker.create(topic, 3)
    spark = DOWNLOADED if engine == "spark" else NO_JARS
    assert pipeline.finish(sink=own, trigger=AVAILABLE_NOW, spark=spark)[0] == 0, pipeline.stderr
    records = broker.records(topic)
    assert len(records) == 100
    assert all(one.partition() == json.loads(one.key() or b"{}")["id"] % 3 for one in records)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["floodmark", "spark"])
def test_a_topic_that_is_missing_and_a_record_that_is_too_large(
    engine: str, pipeline: Pipeline, conn: psycopg.Connection[Any], server: EmbeddedPostgres, tmp_path: Path
) -> None:
    with running_broker(tmp_path / "broker", "auto.create.topics.enable=false") as broker:
        target = sink(broker, kafka_max_block_ms="2000", engine=engine)
        changes = {"sink": target, "spark": JARS if engine == "spark" else NO_JARS, "trigger": AVAILABLE_NOW}
        assert pipeline.finish(**changes)[0] == 1
        assert "error: Kafka has no topic 't.public.orders', and doesn't make it" in pipeline.stderr
        changes["sink"]["options"] |= CREATION
        conn.execute("INSERT INTO orders VALUES (1000, repeat('x', 2000000))")
        assert pipeline.finish(**changes)[0] == 1
        assert "bytes, more than the 1048576 that the producer sends. Raise kafka.max.request.size" in pipeline.stderr
        changes["sink"]["options"]["kafka.max.request.size"] = "4000000"
        broker.allow("t.public.orders", "max.message.bytes", "4000000")
        assert pipeline.finish(**changes)[0] == 0, pipeline.stderr
        keys = {json.loads(record.key() or b"{}")["id"] for record in broker.records("t.public.orders")}
        assert keys == {*range(1, 101), 1000}
