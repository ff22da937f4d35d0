"""Checks what Kafka's producer is given, by the client that Spark's connector brings, before a query starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.java_gateway import JavaClass

from floodmark.config.kafka_clients import kafka_secrets, without_secrets
from floodmark.config.model import nearest
from floodmark.errors import ConfigError
from floodmark.sinks.kafka.options import PRODUCER
from floodmark.spark.java import java_exceptions, java_map
from floodmark.spark.sinks.kafka import kafka_package
from floodmark.spark.sinks.topics import JAVA_ERRORS

SERIALIZER = "org.apache.kafka.common.serialization.ByteArraySerializer"
_NEAR = 0.85
"""From which similarity on a name is taken for a misspelt one: plug-ins of the client have settings of their own."""


def check_producer(jvm: Any, settings: Mapping[str, str]) -> None:
    """Check the producer's settings.

    Args:
        jvm: Spark's.
        settings: the producer's, by Kafka's names.

    Raises:
        ConfigError: a value isn't allowed, a name is misspelt, or the client isn't there.
    """
    client = jvm.org.apache.kafka.clients.producer.ProducerConfig
    if not isinstance(client, JavaClass):
        raise ConfigError(
            "Spark's connector for Kafka is not loaded.",
            f"Start Spark with spark.jars.packages={kafka_package()}, or let floodmark run do it.",
        )
    known = [str(name) for name in client.configNames()]
    for name in settings:
        if name not in known and (near := nearest(f"{PRODUCER}{name}", [f"{PRODUCER}{one}" for one in known], _NEAR)):
            raise ConfigError(f"Kafka's producer has no setting '{name}', as '{PRODUCER}{name}' sets it.", near)
    given = {**settings, "key.serializer": SERIALIZER, "value.serializer": SERIALIZER}
    try:
        client(java_map(jvm, given))
    except JAVA_ERRORS as error:
        outermost = next(java_exceptions(error))
        reason = without_secrets(kafka_secrets(settings), str(outermost.getMessage()).rstrip("."))
        raise ConfigError(
            f"Kafka's producer refuses its settings: {reason}.", f"They are the sink's options {PRODUCER}…."
        ) from None
