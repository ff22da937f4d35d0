"""The schema history in a Kafka topic: it is there when state.dir is lost, and nothing less than in state.dir."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from floodmark.connectors.mysql.schema_history import kafka
from floodmark.connectors.mysql.schema_history.kafka import BURST, TopicFiles
from floodmark.errors import ConfigError, ConnectError
from tests.support.inprocess import InProcess
from tests.support.kafka import Broker
from tests.support.mysql import MysqlServer
from tests.support.patience import within

KAFKA = "io.debezium.storage.kafka.history.KafkaSchemaHistory"
HISTORY = "schema.history.internal"


def files_of(broker: Broker, topic: str, owner: str = "owner", **consumer: str) -> TopicFiles:
    brokers = {"bootstrap.servers": broker.servers}
    return TopicFiles(topic, owner, brokers | consumer, brokers, 20, 20)


def records_of(broker: Broker, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": str(uuid.uuid4())})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=within(20))
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Any] = []
    while len(found) < end:
        found += [(message.key(), message.value()) for message in consumer.consume(end - len(found), 20)]
    consumer.close()
    return found


class Unsettled(Consumer):
    """Gets the answers that brokers give for a moment after a topic was made."""

    answers = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART)

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self._answers = list(self.answers)

    def get_watermark_offsets(self, *args: Any, **kwargs: Any) -> tuple[int, int]:
        if self._answers:
            raise KafkaException(KafkaError(self._answers.pop()))
        return super().get_watermark_offsets(*args, **kwargs)


def test_a_topic_without_leader_is_waited_for(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "Consumer", Unsettled)
    files = files_of(broker, f"files-{uuid.uuid4()}")
    assert files.names() == []
    monkeypatch.setattr(Unsettled, "answers", (KafkaError.TOPIC_AUTHORIZATION_FAILED,))
    with pytest.raises(ConnectError, match="authorization"):
        files_of(broker, f"files-{uuid.uuid4()}").names()


def test_files_are_there_for_another_process(broker: Broker) -> None:
    topic = f"files-{uuid.uuid4()}"
    files = files_of(broker, topic)
    assert files.names() == []
    files.write("a", [b"1", b"2", b"3"])
    files.write("b", [b"x"])
    files.write("c", [b"y"])
    files.remove(["b"])
    files.write("a", [b"4"])
    broker.send(topic, None, "someone else's")
    broker.send(topic, "key", "someone else's")
    # The writer of this one has died.
    broker.send(topic, "owner/d/0/2", "first")
    broker.send(topic, "owner/no/line/at-all", "someone else's")
    files_of(broker, topic, "other").write("a", [b"other"])
    for again in (files, files_of(broker, topic)):
        assert sorted(again.names()) == ["a", "c"]
        assert again.read("a") == [b"4"]
        with pytest.raises(ValueError, match="not there"):
            again.read("d")


def test_more_lines_than_the_client_holds(broker: Broker) -> None:
    topic = f"large-{uuid.uuid4()}"
    lines = [b"%d" % number for number in range(2 * BURST + 5)]
    files_of(broker, topic).write("a", lines)
    assert files_of(broker, topic).read("a") == lines


def test_a_topic_of_several_partitions_is_refused(broker: Broker) -> None:
    topic = f"parts-{uuid.uuid4()}"
    broker.create(topic, 2)
    with pytest.raises(ConfigError, match="2 partitions"):
        files_of(broker, topic).names()


def test_brokers_that_are_away() -> None:
    away = {"bootstrap.servers": "127.0.0.1:1", "sasl.password": "hidden"}
    with pytest.raises(ConnectError, match="cannot be read") as caught:
        TopicFiles("t", "o", away, away, 1, 1).names()
    assert "hidden" not in str(caught.value)


def test_a_setting_that_is_wrong(broker: Broker) -> None:
    with pytest.raises(ConfigError, match=r"no\.such\.setting"):
        files_of(broker, "t", **{"no.such.setting": "1"}).names()


def test_a_query_goes_on_without_its_state(binlog_server: MysqlServer, broker: Broker, tmp_path: Path) -> None:
    database, topic = f"h{uuid.uuid4().hex[:8]}", f"history-{uuid.uuid4()}"
    binlog_server.execute(f"CREATE DATABASE {database}")
    binlog_server.execute("CREATE TABLE t (id int PRIMARY KEY, a int)", database=database)
    state = tmp_path / "state"
    options = {
        **binlog_server.options(),
        "topic.prefix": "p",
        "state.dir": str(state),
        "database.include.list": database,
        HISTORY: KAFKA,
        f"{HISTORY}.kafka.topic": topic,
        f"{HISTORY}.kafka.bootstrap.servers": broker.servers,
        f"{HISTORY}.consumer.fetch.max.wait.ms": "100",
        f"{HISTORY}.producer.linger.ms": "0",
    }
    query = InProcess(options)
    query.drain()
    binlog_server.execute("INSERT INTO t VALUES (1, 2)", "ALTER TABLE t ADD b int FIRST", database=database)
    query.restart()
    query.drain()
    binlog_server.execute(
        "INSERT INTO t VALUES (3, 4, 5)",
        "ALTER TABLE t DROP a",
        "INSERT INTO t VALUES (6, 7)",
        database=database,
    )
    query.stop()
    assert not list(state.rglob("schema-history"))
    shutil.rmtree(state)
    again = InProcess(options, query.offset)
    rows = [json.loads(row["value"])["after"] for row in again.drain() if row["table"] == "t" and row["value"]]
    again.stop()
    assert rows == [{"b": 3, "id": 4, "a": 5}, {"b": 6, "id": 7}]
    told = [json.loads(value) for _, value in records_of(broker, topic) if value]
    statements = [one["ddl"] for one in told if "ddl" in one]
    # Debezium's records, of which the query that went on made the last.
    assert [text for text in statements if text.startswith("ALTER")] == [
        "ALTER TABLE t ADD b int FIRST",
        "ALTER TABLE t DROP a",
    ]
    assert all({"source", "position", "databaseName", "tableChanges"} <= one.keys() for one in told if "ddl" in one)
