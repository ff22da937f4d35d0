"""What librdkafka is given reaches a real broker as it is; what it refuses is told."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from floodmark.errors import ConfigError, FloodmarkError, TargetError
from floodmark.events.columns import HEADERS
from floodmark.sinks.kafka.making import MissingTopics
from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.sinks.kafka.records import KafkaTarget, RecordWriter, drop_writer, writer_of
from tests.integration.test_kafka_topics import rules, strict
from tests.support.kafka import PASSWORD, Broker, running_broker

__all__ = ["strict"]
pytestmark = pytest.mark.slow
TEXT = pa.string()


@pytest.fixture
def topic(strict: Broker) -> str:
    """Return a new topic of three partitions."""
    name = f"t.{uuid.uuid4().hex}"
    strict.create(name, 3)
    return name


def target_of(broker: Broker, **options: str) -> KafkaTarget:
    """Return a target for tests; names of options have ``_`` for dots."""
    given = {name.replace("_", "."): value for name, value in options.items()}
    chosen = KafkaOptions.parse({"kafka.bootstrap.servers": broker.servers, **given})
    settings = tuple(sorted(chosen.librdkafka.items()))
    return KafkaTarget(uuid.uuid4().hex, settings, chosen.rules, chosen.topic, chosen.headers)


def written(target: KafkaTarget, *batches: pa.RecordBatch) -> None:
    """Write batches and wait until the broker has them."""
    writer = RecordWriter(target)
    try:
        for batch in batches:
            writer.write(batch)
        writer.flush()
    finally:
        writer.close()


def records(topic: str, *rows: dict[str, Any], text: pa.DataType = TEXT) -> pa.RecordBatch:
    schema = pa.schema(
        [("topic", pa.string()), ("key", text), ("value", text), ("headers", HEADERS), ("partition", pa.int32())]
    )
    return pa.RecordBatch.from_pylist([{"topic": topic, **row} for row in rows], schema=schema)


@pytest.mark.parametrize("text", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()], ids=str)
def test_records_arrive_as_they_are(text: pa.DataType, strict: Broker, topic: str) -> None:
    headers = [{"key": "__debezium.newkey", "value": b'{"id":2}'}, {"key": "empty", "value": b""}, {"key": "none"}]
    rows: list[dict[str, Any]] = [
        {"key": "left out", "value": "left out"},
        {"key": "größe", "value": "ü" * 1000, "partition": 1},
        {"key": "größe", "value": None, "partition": 1},
        {"key": "", "value": "", "partition": 1},
        {"key": None, "value": "no key", "partition": 1},
        {"key": "moved", "value": None, "partition": 1, "headers": headers},
        {"key": "after", "value": "moved", "partition": 1, "headers": []},
        {"key": "other", "value": "place", "partition": 2},
    ]
    if pa.types.is_binary(text) or pa.types.is_large_binary(text):
        rows = [
            {
                name: part.encode() if name in ("key", "value") and part is not None else part
                for name, part in row.items()
            }
            for row in rows
        ]
    # The columns begin in the middle of their buffers.
    written(target_of(strict), records(topic, *rows, text=text)[1:])
    found = [(one.partition(), one.key(), one.value(), one.headers()) for one in strict.records(topic)]
    in_first = [one[1:] for one in found if one[0] == 1]
    assert in_first == [
        ("größe".encode(), ("ü" * 1000).encode(), None),
        ("größe".encode(), None, None),
        (b"", b"", None),
        (None, b"no key", None),
        (b"moved", None, [("__debezium.newkey", b'{"id":2}'), ("empty", b""), ("none", None)]),
        (b"after", b"moved", None),
    ]
    assert [one[1:] for one in found if one[0] != 1] == [(b"other", b"place", None)]


@pytest.mark.parametrize(
    ("key", "java"),
    [("21", -973932308), ("foobar", -790332482), ("a-little-bit-long-string", -985981536), ("abc", 479470107)],
)
def test_partitions_are_those_of_the_java_client(key: str, java: int, strict: Broker, topic: str) -> None:
    # The hashes are those of the Java client's own test, UtilsTest.testMurmur2.
    written(target_of(strict), records(topic, {"key": key, "value": "v"}))
    (found,) = strict.records(topic)
    assert found.partition() == (java & 0x7FFFFFFF) % 3


def test_the_order_stays_where_the_producer_s_memory_is_full(strict: Broker, topic: str) -> None:
    other = f"{topic}.other"
    strict.create(other)
    target = target_of(strict, kafka_buffer_memory="65536", kafka_batch_size="4096")
    rows: list[dict[str, Any]] = [
        {"topic": topic if number % 3 else other, "key": str(number % 7), "value": f"{number}:{'x' * 500}"}
        for number in range(5_000)
    ]
    for number in range(0, len(rows), 1000):
        rows[number]["headers"] = [{"key": "n", "value": b"1"}]
    written(target, records("", *rows))
    found = [(one.topic(), one.key(), one.value()) for name in (topic, other) for one in strict.records(name)]
    assert len(found) == len(rows)
    for name in (topic, other):
        for key in range(7):
            own = [
                int((value or b"").split(b":")[0])
                for where, which, value in found
                if (where, which) == (name, b"%d" % key)
            ]
            assert own == sorted(own)


def test_the_target_s_topic_and_no_headers(strict: Broker, topic: str) -> None:
    row = {"key": "k", "value": "v", "headers": [{"key": "n", "value": b"1"}]}
    target = target_of(strict, topic=topic, includeHeaders="false")
    written(target, records("elsewhere", row).drop_columns(["topic"]))
    assert [one.headers() for one in strict.records(topic)] == [None]
    written(replace(target, headers=True), records("elsewhere", row).select(["value"]))
    assert {one.key() for one in strict.records(topic)} == {b"k", None}


@pytest.mark.parametrize(
    ("row", "options", "says"),
    [
        ({"topic": None}, {}, "A record has no topic"),
        ({"topic": "missing"}, {}, "Kafka has no topic 'missing', and doesn't make it"),
        ({"topic": "a b"}, {}, "Kafka"),
        ({"partition": 7}, {}, r"Kafka has not taken an event of the topic 't\.\w+': .*[Uu]nknown partition"),
        ({"value": "x" * 1_100_000}, {}, "An event has 1100001 bytes, more than the 1048576 that the producer sends"),
        (
            {"value": "x" * 1_100_000, "headers": [{"key": "n", "value": b""}]},
            {},
            "An event has 1100001 bytes, more than the 1048576",
        ),
        (
            {"value": "x" * 2_000_000},
            {"kafka.max.request.size": "3000000", "kafka.compression.type": "none"},
            "An event, or a batch of them, is larger than its topic takes",
        ),
        (
            {"value": "x" * 900_000},
            {"kafka.buffer.memory": "131072"},
            "An event has 900001 bytes, more than the 131072 .* Raise kafka.buffer.memory",
        ),
    ],
)
def test_records_that_are_not_taken(
    row: dict[str, Any], options: dict[str, str], says: str, strict: Broker, topic: str
) -> None:
    target = target_of(strict, **{"kafka.max.block.ms": "2000", **options})
    with pytest.raises(TargetError, match=says) as error:
        written(target, records(topic, {"key": "k", "value": "v", **row}))
    assert "nothing is lost" in str(error.value)


def test_a_topic_that_takes_less_than_a_batch(strict: Broker, topic: str) -> None:
    strict.allow(topic, "max.message.bytes", "100000")
    many = records(topic, *({"key": str(number), "value": "x" * 10_000} for number in range(30)))
    options = {"kafka.compression.type": "none"}
    with pytest.raises(TargetError, match=r"a batch of them, is larger .* lower kafka.batch.size"):
        written(target_of(strict, **options), many)
    written(target_of(strict, **options, **{"kafka.batch.size": "90000"}), many)
    assert {one.key() for one in strict.records(topic)} == {str(number).encode() for number in range(30)}


def login(strict: Broker, password: str = PASSWORD) -> dict[str, str]:
    settings = strict.login()
    settings["sasl.jaas.config"] = settings["sasl.jaas.config"].replace(PASSWORD, password)
    return {f"kafka.{name}": value for name, value in settings.items()}


def test_a_user_without_rights_and_a_wrong_password(strict: Broker) -> None:
    strict.create("theirs")
    with pytest.raises(TargetError, match=r"Kafka refuses to take events: .*\(theirs\)"):
        written(target_of(strict, **login(strict)), records("theirs", {"value": "v"}))
    with pytest.raises(TargetError, match=r"Kafka refuses the login: .*Authentication failed") as error:
        written(target_of(strict, **login(strict, "wrong-one")), records("theirs", {"value": "v"}))
    assert "wrong-one" not in str(error.value)


def test_brokers_that_go_away(tmp_path: Path) -> None:
    with running_broker(tmp_path / "broker") as broker:
        target = target_of(broker, **{"kafka.delivery.timeout.ms": "1500", "kafka.request.timeout.ms": "1000"})
        writer = RecordWriter(target)
        writer.write(records("t", {"value": "v"}))
        writer.flush()
        broker.kill()
        writer.write(records("t", {"value": "w"}))
        with pytest.raises(
            TargetError, match=r"Kafka has not taken events of the topic 't' in time: .*refused"
        ) as error:
            writer.flush()
        assert "See to its brokers" in str(error.value)
        writer.close()


def test_a_process_keeps_its_connections_until_one_fails(strict: Broker, topic: str) -> None:
    target = target_of(strict)
    writer = writer_of(target)
    assert writer_of(replace(target)) is writer
    drop_writer(target)
    assert writer_of(target) is not writer
    for number in range(9):
        writer_of(replace(target, run=str(number)))
    writer_of(target).write(records(topic, {"value": "v"}))
    writer_of(target).flush()
    assert strict.count(topic) == 1


def test_what_is_there_stays_and_what_is_missing_is_made(strict: Broker) -> None:
    strict.create("there", 2)
    settings = dict(target_of(strict).settings)
    topics = MissingTopics(settings, rules(default__partitions="-1", default__cleanup__policy="compact"))
    topics.require(["there", "made.1", "made.2"])
    topics.require(["made.1", "made.3"])
    found = strict.topics()
    assert [found[name] for name in ("there", "made.1", "made.2", "made.3")] == [2, 1, 1, 1]
    assert strict.settings("made.1")["cleanup.policy"] == "compact"


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"default__replication__factor": "3"}, ConfigError, "replication.factor"),
        ({"default__cleanup__policy": "burn"}, ConfigError, "cleanup.policy"),
        ({"default__colour": "red"}, ConfigError, "colour"),
    ],
)
def test_topics_that_the_broker_refuses(
    given: dict[str, str], error: type[FloodmarkError], says: str, strict: Broker
) -> None:
    target = replace(target_of(strict), rules=rules(**given))
    with pytest.raises(error, match=r"Kafka doesn't make the topic 'refused' \(partitions=1, replication.factor=") as e:
        written(target, records("refused", {"value": "v"}))
    assert says in str(e.value)
    assert "topic.creation.…" in str(e.value)
    assert "refused" not in strict.topics()


def test_names_that_kafka_does_not_allow(strict: Broker) -> None:
    with pytest.raises(ConfigError, match=r"Choose another topic\.prefix"):
        MissingTopics(dict(target_of(strict).settings), rules()).require(["x" * 250])


def test_a_user_without_the_right_to_create_topics(strict: Broker) -> None:
    topics = MissingTopics(dict(target_of(strict, **login(strict)).settings), rules())
    strict.create("t.there")
    topics.require(["t.there"])
    with pytest.raises(
        TargetError, match=r"the topic 't\.new' \(.*\): .*[Aa]uthorization failed.* Give the right"
    ) as error:
        topics.require(["t.new"])
    assert PASSWORD not in str(error.value)


def test_topics_of_brokers_that_do_not_answer(strict: Broker) -> None:
    with pytest.raises(TargetError, match=r"The topics that Kafka has can't be read: .*refused.* See to the brokers"):
        MissingTopics({"bootstrap.servers": "127.0.0.1:1"}, rules(), 0.5).require(["t"])
    wrong = dict(target_of(strict, **login(strict, "wrong-one")).settings)
    with pytest.raises(TargetError, match="Authentication failed") as error:
        MissingTopics(wrong, rules(), 2).require(["t"])
    assert "wrong-one" not in str(error.value)
