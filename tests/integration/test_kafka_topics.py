"""Topics are made as ``topic.creation.*`` says, with ``engine=spark`` by the Java client of Spark's connector."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from py4j import java_gateway, protocol
from py4j.java_gateway import JavaGateway
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from floodmark.cli.checks.kafka_topics import check_topics
from floodmark.connectors.contract.findings import Finding
from floodmark.errors import ConfigError, TargetError
from floodmark.sinks.kafka.topics import TopicRules, topic_rules
from floodmark.spark.pipelines.model import parse_pipeline
from floodmark.spark.sinks.producer import check_producer
from floodmark.spark.sinks.topics import KafkaTopics
from floodmark.spark.versions import GIVES_START
from tests.integration.test_kafka_sink import JARS, NO_JARS, sink
from tests.integration.test_run import Pipeline, conn, pipeline, server, wait_for
from tests.support.kafka import PASSWORD, Broker, running_broker, spark_jars
from tests.support.patience import within

__all__ = ["conn", "pipeline", "server"]
pytestmark = pytest.mark.slow
ZSTD = 4
"""The number of the codec in Kafka's record batches."""
DEFAULT = {"default.partitions": "1", "default.replication.factor": "1"}


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Return a broker that makes no topics by itself, and has users with rights."""
    with running_broker(
        tmp_path_factory.mktemp("kafka") / "broker", "auto.create.topics.enable=false", users=True
    ) as broker:
        broker.let_write("t.")
        yield broker


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """Return a JVM with Spark's connector in it."""
    if not GIVES_START:
        pytest.skip("the jars are those of the connector for Spark 4.2 and 4.3")
    # A session of another test asks its own JVM about each exception of this one.
    converting = java_gateway.get_return_value
    java_gateway.get_return_value = protocol.get_return_value
    # PySpark has no types for it.
    launch: Callable[[SparkConf], JavaGateway] = launch_gateway
    gateway = launch(SparkConf(loadDefaults=False).set("spark.jars", ",".join(map(str, spark_jars()))))
    yield gateway.jvm
    gateway.shutdown()
    java_gateway.get_return_value = converting


def rules(**given: str) -> TopicRules:
    found = topic_rules({**DEFAULT, **{name.replace("__", "."): value for name, value in given.items()}})
    assert found is not None
    return found


@pytest.mark.parametrize("engine", ["floodmark", pytest.param("spark", marks=pytest.mark.long)])
def test_topics_are_made_before_their_first_events(
    engine: str, pipeline: Pipeline, conn: psycopg.Connection[Any], strict: Broker
) -> None:
    name = pipeline.content["source"]["topic.prefix"] = conn.info.dbname
    conn.execute("CREATE TABLE kept (id int PRIMARY KEY)")
    conn.execute("INSERT INTO kept VALUES (1)")
    strict.create(f"{name}.public.kept", 2)
    creation = {
        "topic.creation.groups": "ordered",
        "topic.creation.ordered.include": rf"{name}\.public\.ord.*",
        "topic.creation.ordered.partitions": "3",
        "topic.creation.ordered.cleanup.policy": "compact",
        "topic.creation.default.partitions": "2",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.retention.ms": "3600000",
        "kafka.compression.type": "zstd",
    }
    target = sink(strict, engine=engine)
    target["options"] |= creation
    with pipeline.started(sink=target, spark=JARS if engine == "spark" else NO_JARS) as process:
        wait_for(lambda: f"{name}.public.orders" in strict.topics(), process)
        wait_for(lambda: strict.count(f"{name}.public.orders") == 100, process)
        # A table that comes later has a topic before its first event, too.
        conn.execute("CREATE TABLE later (id int PRIMARY KEY)")
        conn.execute("INSERT INTO later SELECT generate_series(1, 5)")
        conn.execute("UPDATE orders SET id = 1000 WHERE id = 1")
        wait_for(lambda: f"{name}.public.later" in strict.topics(), process)
        wait_for(lambda: strict.count(f"{name}.public.later") == 5, process)
        wait_for(lambda: strict.count(f"{name}.public.orders") == 103, process)
        process.terminate()
        assert process.wait(within(60)) == 0, pipeline.stderr
    # The source is read once, though topics are looked for before events are written.
    assert pipeline.log()[-1]["events"] == 109
    made = {topic: count for topic, count in strict.topics().items() if topic.startswith(name)}
    assert made == {f"{name}.public.orders": 3, f"{name}.public.kept": 2, f"{name}.public.later": 2}
    assert strict.settings(f"{name}.public.orders")["cleanup.policy"] == "compact"
    assert "retention.ms" not in strict.settings(f"{name}.public.orders")
    assert strict.settings(f"{name}.public.later")["retention.ms"] == "3600000"
    # A changed key: the record of each key names the other in a header.
    headers = [dict(record.headers() or []) for record in strict.records(f"{name}.public.orders")]
    moved = [(key, json.loads(value or b"")) for found in headers for key, value in found.items()]
    assert {(key, value["id"]) for key, value in moved if "key" in key} == {
        ("__debezium.newkey", 1000),
        ("__debezium.oldkey", 1),
    }
    assert strict.codecs(f"{name}.public.orders") == {ZSTD}


def test_what_is_there_stays_and_what_is_missing_is_made(jvm: Any, strict: Broker) -> None:
    strict.create("there", 2)
    topics = KafkaTopics({"bootstrap.servers": strict.servers}, rules(default__partitions="-1"))
    topics.require(jvm, ["there", "made.1", "made.2"])
    topics.require(jvm, ["made.1", "made.3"])
    found = strict.topics()
    assert [found[name] for name in ("there", "made.1", "made.2", "made.3")] == [2, 1, 1, 1]


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"default__replication__factor": "3"}, ConfigError, "replication.factor"),
        ({"default__cleanup__policy": "burn"}, ConfigError, "cleanup.policy"),
        ({"default__colour": "red"}, ConfigError, "colour"),
    ],
)
def test_settings_that_the_broker_refuses(
    given: dict[str, str], error: type[Exception], says: str, jvm: Any, strict: Broker
) -> None:
    topics = KafkaTopics({"bootstrap.servers": strict.servers}, rules(**given))
    with pytest.raises(error, match=r"Kafka doesn't make the topic 'refused' \(partitions=1, replication.factor=") as e:
        topics.require(jvm, ["refused"])
    assert says in str(e.value)
    assert "topic.creation.…" in str(e.value)
    assert "refused" not in strict.topics()


def test_names_that_kafka_does_not_allow(jvm: Any, strict: Broker) -> None:
    with pytest.raises(ConfigError, match=r"Choose another topic\.prefix"):
        KafkaTopics({"bootstrap.servers": strict.servers}, rules()).require(jvm, ["x" * 250])


def test_a_user_without_the_right_to_create_topics(jvm: Any, strict: Broker) -> None:
    topics = KafkaTopics(strict.login(), rules())
    strict.create("t.there")
    topics.require(jvm, ["t.there"])
    with pytest.raises(TargetError, match=r"the topic 't\.new' \(.*\): Authorization failed.* Give the right") as error:
        topics.require(jvm, ["t.new"])
    assert PASSWORD not in str(error.value)


def test_brokers_that_do_not_answer_and_a_wrong_password(jvm: Any, strict: Broker) -> None:
    away = {"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": "300", "request.timeout.ms": "200"}
    with pytest.raises(TargetError, match=r"The topics that Kafka has can't be read: .* See to the brokers"):
        KafkaTopics(away, rules()).require(jvm, ["t"])
    login = strict.login()
    login["sasl.jaas.config"] = login["sasl.jaas.config"].replace(PASSWORD, "wrong")
    with pytest.raises(TargetError, match="Authentication failed") as error:
        KafkaTopics(login, rules()).require(jvm, ["t"])
    assert "wrong" not in str(error.value)
    with pytest.raises(TargetError, match="can't be read: Invalid url"):
        KafkaTopics({"bootstrap.servers": "x"}, rules()).require(jvm, ["t"])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"compression.type": "zip"}, "refuses its settings: Invalid value zip for configuration compression.type"),
        ({"compresion.type": "zstd"}, "no setting 'compresion.type', .* Did you mean 'kafka.compression.type'"),
        ({"acks": "1", "enable.idempotence": "true"}, "refuses its settings: Must set acks to all"),
        ({"linger.ms": "soon"}, "Invalid value soon for configuration linger.ms"),
    ],
)
def test_wrong_settings_of_the_producer(given: dict[str, str], says: str, jvm: Any) -> None:
    with pytest.raises(ConfigError, match=says):
        check_producer(jvm, {"bootstrap.servers": "k:9092", **given})


def test_settings_that_only_plug_ins_know(jvm: Any) -> None:
    check_producer(jvm, {"bootstrap.servers": "k:9092", "acks": "1", "my.interceptor.threshold": "7"})


def found_topics(pipeline: Pipeline, options: dict[str, str]) -> Finding:
    content = {**pipeline.content, "sink": {"type": "kafka", "options": options}}
    content["source"] = {name: str(value) for name, value in content["source"].items()}
    (found,) = check_topics(parse_pipeline(content))
    return found


def as_sink(settings: dict[str, str]) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in settings.items()}


CREATION = {f"topic.creation.{name}": value for name, value in DEFAULT.items()}


def test_check_says_which_topics_are_missing(
    pipeline: Pipeline, conn: psycopg.Connection[Any], strict: Broker, broker: Broker
) -> None:
    name = pipeline.content["source"]["topic.prefix"] = f"checked_{conn.info.dbname}"
    topic = f"{name}.public.orders"
    to_strict = as_sink({"bootstrap.servers": strict.servers})
    found = found_topics(pipeline, to_strict)
    assert (found.status, found.finding) == (
        "error",
        f"Kafka has no topic '{topic}', and doesn't make topics (auto.create.topics.enable).",
    )
    assert "topic.creation.default.partitions" in found.fix
    assert found_topics(pipeline, {**to_strict, **CREATION}).finding == "0 are there, 1 will be made"
    found = found_topics(pipeline, {**to_strict, **CREATION, "topic.creation.default.replication.factor": "3"})
    assert found.status == "error"
    assert found.finding.startswith(f"Kafka would not make the topic '{topic}' (partitions=1, replication.factor=3):")
    assert topic not in strict.topics()
    found = found_topics(pipeline, {**to_strict, **CREATION, "topic": "all"})
    assert found.finding == "0 are there, 1 will be made"
    to_other = as_sink({"bootstrap.servers": broker.servers})
    assert "will be made by the brokers" in found_topics(pipeline, to_other).finding
    strict.create(topic)
    assert found_topics(pipeline, to_strict).finding == "1 are there"


def test_check_logs_in_as_the_producer_does(pipeline: Pipeline, conn: psycopg.Connection[Any], strict: Broker) -> None:
    pipeline.content["source"]["topic.prefix"] = f"t.{conn.info.dbname}"
    login = as_sink(strict.login())
    found = found_topics(pipeline, {**login, **CREATION})
    assert (found.status, "authorization failed" in found.finding.lower()) == ("error", True)
    found = found_topics(pipeline, login)
    assert (found.status, "can't be read" in found.finding) == ("warning", True)
    found = found_topics(pipeline, {**login, "engine": "spark", "kafka.ssl.truststore.location": "/x.jks"})
    assert found.finding == "not checked: the Python client has no 'ssl.truststore.location' of the Java client"
    wrong = {**login, "kafka.sasl.jaas.config": login["kafka.sasl.jaas.config"].replace(PASSWORD, "wrong-one")}
    found = found_topics(pipeline, wrong)
    assert (found.status, "Authentication failed" in found.finding) == ("error", True)
    assert "wrong-one" not in found.finding
