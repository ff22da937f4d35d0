"""Settings of Kafka's Java client for the Python client."""

from __future__ import annotations

import pytest

from floodmark.config.kafka_clients import connection_settings
from floodmark.errors import ConfigError

SCRAM = r'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="a\"b\\c";'


def test_what_a_connection_needs() -> None:
    assert connection_settings(
        {
            "bootstrap.servers": "k:9092",
            "compression.type": "zstd",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": SCRAM,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "/ca.pem",
            "ssl.endpoint.identification.algorithm": "",
        }
    ) == {
        "log_level": "0",
        "bootstrap.servers": "k:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": 'a"b\\c',
        "ssl.ca.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
    }


@pytest.mark.parametrize(
    "given",
    [
        {"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required keyTab=hidden1;"},
        {"ssl.truststore.location": "/ca.jks"},
        {"ssl.truststore.location": "/ca.jks", "ssl.truststore.type": "JKS"},
        {"sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler"},
    ],
)
def test_what_the_python_client_lacks(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="the Python client has no") as error:
        connection_settings(given)
    assert "hidden1" not in str(error.value)
