"""Options of the sink kafka, and which topics get which settings."""

from __future__ import annotations

import pytest

from floodmark.errors import ConfigError
from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.sinks.kafka.topics import TopicSettings

BROKERS = {"kafka.bootstrap.servers": "k:9092"}
DEFAULT = {"topic.creation.default.partitions": "2", "topic.creation.default.replication.factor": "3"}


def test_what_spark_gets() -> None:
    given = {**BROKERS, "kafka.Compression.type": "zstd", "kafka.acks": "1", "kafka.sasl.jaas.config": "hidden1"}
    given["engine"] = "spark"
    options = KafkaOptions.parse({**given, **DEFAULT})
    assert options.writer == {
        "kafka.bootstrap.servers": "k:9092",
        "kafka.compression.type": "zstd",
        "kafka.acks": "1",
        "kafka.batch.size": "262144",
        "kafka.sasl.jaas.config": "hidden1",
        "includeHeaders": "true",
    }
    assert options.settings["compression.type"] == "zstd"
    assert "hidden1" not in repr(options)
    assert KafkaOptions.parse({"includeheaders": "false", "kafka.batch.size": "9"}).writer == {
        "kafka.batch.size": "9",
        "kafka.compression.type": "lz4",
        "includeHeaders": "false",
    }


def test_the_first_group_that_has_a_topic_counts() -> None:
    options = KafkaOptions.parse(
        {
            **DEFAULT,
            "topic.creation.groups": "small, audit.log",
            "topic.creation.small.include": r"t\.s\..*,t\.x",
            "topic.creation.small.exclude": r"t\.s\.big",
            "topic.creation.small.partitions": "1",
            "topic.creation.small.cleanup.policy": "compact",
            "topic.creation.audit.log.include": r"t\..*big",
            "topic.creation.audit.log.replication.factor": "-1",
            "topic.creation.default.retention.ms": "1000",
        }
    )
    rules = options.rules
    assert rules is not None
    small = TopicSettings(1, 3, (("cleanup.policy", "compact"),))
    assert rules.settings("t.s.a") == small
    assert rules.settings("t.x") == small
    assert rules.settings("t.s.big") == TopicSettings(2, -1)
    # Names must match as wholes, and with their letters' case.
    other = TopicSettings(2, 3, (("retention.ms", "1000"),))
    assert rules.settings("t.x2") == other
    assert rules.settings("T.X") == other
    assert str(other) == "partitions=2, replication.factor=3, retention.ms=1000"


@pytest.mark.parametrize("given", [{}, {"enable": "true"}, {"enable": "false"}, {"enable": "False", "groups": ""}])
def test_topics_are_not_made_unless_something_says_how(given: dict[str, str]) -> None:
    assert KafkaOptions.parse({f"topic.creation.{name}": value for name, value in given.items()}).rules is None
    assert KafkaOptions.parse({**DEFAULT, "topic.creation.enable": "false"}).rules is None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kafka.key.serializer": "x"}, "'kafka.key.serializer' is not allowed: leave it out"),
        ({"kafka.Value.Serializer": "x"}, "is not allowed: leave it out"),
        ({"kafka.transactional.id": "x"}, "events aren't written in transactions"),
        ({"kafka.acks": "0"}, "'kafka.acks' is '0', with which"),
        ({"kafka.request.required.acks": "0"}, "'kafka.request.required.acks' is '0', with which"),
        ({"engine": "java"}, "it must be one of floodmark, spark"),
        ({"compression.type": "zstd"}, "Unknown option 'compression.type'"),
        ({"asyncProgressTrackingEnabled": "true"}, "Unknown option"),
        ({"includeHeaders": "yes please"}, "it must be true or false"),
        ({"topic": " "}, "'topic' is empty"),
        ({"topic.creation.enable": "on"}, "'topic.creation.enable' is 'on', but it must be true or false"),
        ({"topic.creation.default.partitions": "1"}, "'topic.creation.default.replication.factor' is required"),
        ({"topic.creation.groups": "a"}, "'topic.creation.default.partitions' is required"),
        ({**DEFAULT, "topic.creation.default.partitions": "0"}, "is '0', but it must be a whole number, 1 to"),
        ({**DEFAULT, "topic.creation.default.partitions": "two"}, "is 'two', but"),
        ({**DEFAULT, "topic.creation.default.replication.factor": "32768"}, "1 to 32767, or -1"),
        ({**DEFAULT, "topic.creation.default.include": "a"}, "the group 'default' has all topics"),
        ({**DEFAULT, "topic.creation.partitions": "1"}, "'topic.creation.partitions' is of no group"),
        ({**DEFAULT, "topic.creation.orders.partitions": "1"}, "'topic.creation.orders.partitions' is of no group"),
        ({**DEFAULT, "topic.creation.groups": "a,default"}, "leave it out"),
        ({**DEFAULT, "topic.creation.groups": "a,a"}, "each group must be named once"),
        ({**DEFAULT, "topic.creation.groups": "a"}, "'topic.creation.a.include' is required"),
        (
            {**DEFAULT, "topic.creation.groups": "a", "topic.creation.a.include": "(?=x)"},
            "'topic.creation.a.include' is '(?=x)', which has no regular expression that can be used",
        ),
        (
            {**DEFAULT, "topic.creation.groups": "a", "topic.creation.a.include": "x", "topic.creation.a.exclude": "("},
            "'topic.creation.a.exclude' is '('",
        ),
        ({**DEFAULT, "topic.creation.enable": "false", "topic.creation.default.partitions": "x"}, "is 'x', but"),
    ],
)
def test_wrong_options(given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        KafkaOptions.parse({**BROKERS, **given})
    assert told in str(caught.value)
