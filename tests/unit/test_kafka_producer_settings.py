"""Settings of Kafka's Java producer, as librdkafka gets and checks them."""

from __future__ import annotations

import pytest

from floodmark.errors import ConfigError
from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.sinks.kafka.producer_settings import check_settings, producer_settings

BROKERS = {"bootstrap.servers": "127.0.0.1:1"}
LOGIN = 'org.apache.kafka.common.security.{}.{}LoginModule required username="u" password="p\\"w";'


def test_names_and_units_are_translated() -> None:
    found = producer_settings(
        {
            **BROKERS,
            "buffer.memory": "67108864",
            "max.request.size": "2000000",
            "max.block.ms": "2000",
            "compression.zstd.level": "7",
            "send.buffer.bytes": "65536",
            "linger.ms": "20",
            "sasl.jaas.config": LOGIN.format("scram", "Scram"),
            "sasl.mechanism": "SCRAM-SHA-512",
            "ssl.endpoint.identification.algorithm": "",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "/ca.pem",
        }
    )
    assert found == {
        **BROKERS,
        "queue.buffering.max.kbytes": "65536",
        "message.max.bytes": "2000000",
        "topic.metadata.propagation.max.ms": "2000",
        "compression.level": "7",
        "socket.send.buffer.bytes": "65536",
        "linger.ms": "20",
        "sasl.username": "u",
        "sasl.password": 'p"w',
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.ca.location": "/ca.pem",
        "log_level": "0",
        "enable.idempotence": "true",
        "max.in.flight.requests.per.connection": "5",
        "delivery.timeout.ms": "120000",
        "partitioner": "murmur2_random",
        "batch.size": "524288",
    }


@pytest.mark.parametrize(
    "given",
    [{"acks": "1"}, {"request.required.acks": "1"}, {"retries": "0"}, {"max.in.flight.requests.per.connection": "9"}],
)
def test_what_excludes_idempotence_turns_it_off_unless_it_is_asked_for(given: dict[str, str]) -> None:
    assert "enable.idempotence" not in producer_settings({**BROKERS, **given})
    check_settings({**BROKERS, **given})
    with pytest.raises(ConfigError, match="Kafka's producer refuses its settings"):
        check_settings({**BROKERS, **given, "enable.idempotence": "true"})


def test_the_defaults_are_taken_by_librdkafka() -> None:
    options = KafkaOptions.parse({"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.linger.ms": "7"})
    assert options.librdkafka["batch.size"] == "524288"
    assert options.librdkafka["compression.type"] == "lz4"
    check_settings(options.settings)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"compression.type": "zip"}, r"refuses the option 'kafka.compression.type': Invalid value \"zip\""),
        ({"compresion.type": "zstd"}, r"no setting 'compresion.type', .* Did you mean 'kafka.compression.type'"),
        ({"max.reqest.size": "1"}, r"no setting 'max.reqest.size', .* Did you mean 'kafka.max.request.size'"),
        ({"buffer.memory": "much"}, "refuses the option 'kafka.buffer.memory': Invalid value"),
        ({"linger.ms": "soon"}, "refuses the option 'kafka.linger.ms': Invalid value"),
        ({"partitioner.class": "my.Own"}, r"no setting 'partitioner.class', .*\. Leave it out, or set engine=spark"),
        ({"metric.reporters": "my.Own"}, "or set engine=spark"),
        (
            {"sasl.password": "hidden1", "security.protocol": "hidden1"},
            r"refuses the option 'kafka.security.protocol': .*…",
        ),
    ],
)
def test_settings_that_librdkafka_refuses(given: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        check_settings({**BROKERS, **given})
    assert "hidden1" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("kafka.ssl.truststore.location", r"a PEM file by 'kafka\.ssl\.ca\.location'"),
        ("kafka.ssl.keystore.key", r"'kafka\.ssl\.key\.location'"),
        ("kafka.sasl.jaas.config", r"give 'kafka\.sasl\.username' and 'kafka\.sasl\.password'"),
    ],
)
def test_settings_of_java_need_the_other_engine(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=f"{says}.* or set engine=spark"):
        KafkaOptions.parse({name: "hidden2"})
    assert KafkaOptions.parse({name: "hidden2", "engine": "spark"}).settings[name.removeprefix("kafka.")] == "hidden2"
