"""Debezium's offsets and schema history in Kafka topics."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from floodmark.cli.offsets.moving import Stores
from floodmark.debezium.offsets import find_offset
from floodmark.errors import ConfigError, ConnectError, OffsetError
from floodmark.json_data import Json
from tests.support.kafka import Broker

RECORD: dict[str, Json] = {
    "source": {"server": "test"},
    "position": {"file": "binlog.000001", "pos": 4},
    "ddl": "CREATE DATABASE x",
}


@pytest.fixture
def topic(broker: Broker) -> str:
    """Return the URI of a new topic of three partitions."""
    name = f"offsets-{uuid.uuid4()}"
    broker.create(name, 3)
    return f"kafka://{broker.servers}/{name}"


def test_the_last_offset_of_a_key_counts(broker: Broker, topic: str) -> None:
    store = Stores(topic).offset_store("now")
    assert store.read() == {}
    for server in ("test", "other", "gone"):
        for number in (1, 2):
            store.write(json.dumps(["reference", {"server": server}]).encode(), json.dumps({"lsn": number}).encode())
    store.write(b'["reference", {"server": "gone"}]', b"")
    assert find_offset(store, "test").fields == {"lsn": 2}
    with pytest.raises(OffsetError, match=r"no offset with topic\.prefix 'gone'"):
        find_offset(store, "gone")
    partitions = {record.key(): set[int | None]() for record in broker.records(topic.rpartition("/")[2])}
    for record in broker.records(topic.rpartition("/")[2]):
        partitions[record.key()].add(record.partition())
    assert all(len(found) == 1 for found in partitions.values()), "a key's values are in one partition"


def test_a_topic_of_something_else_is_no_history(topic: str, tmp_path: Path) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text("# of the worker\nclient.id=floodmark\n", encoding="utf-8")
    store = Stores(history=topic, settings=settings).history_store("now")
    assert store is not None
    Stores(topic).offset_store("now").write(b"[]", b"{}")
    with pytest.raises(OffsetError, match="is no record"):
        list(store.read())


def test_a_history_is_read_in_its_order(broker: Broker) -> None:
    name = f"history-{uuid.uuid4()}"
    broker.create(name)
    store = Stores(history=f"kafka://{broker.servers}/{name}").history_store("now")
    assert store is not None
    store.write([{**RECORD, "ts_ms": number} for number in range(50)])
    store.write([{**RECORD, "ts_ms": 50}])
    assert [record["ts_ms"] for record in store.read()] == list(range(51))


@pytest.mark.parametrize(
    ("uri", "error", "text"),
    [
        ("kafka://127.0.0.1:1", ConfigError, "names no Kafka topic"),
        ("kafka:///offsets", ConfigError, "names no Kafka topic"),
        ("kafka://{servers}/missing", OffsetError, "There is no Kafka topic 'missing'"),
        pytest.param("kafka://127.0.0.1:1/offsets", ConnectError, "cannot be read", marks=pytest.mark.long),
    ],
)
def test_a_topic_that_can_not_be_read(broker: Broker, uri: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Stores(uri.format(servers=broker.servers)).offset_store("now").read()


def test_a_topic_is_read_before_its_partitions_have_leaders(broker: Broker) -> None:
    for _ in range(5):
        name = f"new-{uuid.uuid4()}"
        broker.create(name, 20)
        assert Stores(f"kafka://{broker.servers}/{name}").offset_store("now").read() == {}
