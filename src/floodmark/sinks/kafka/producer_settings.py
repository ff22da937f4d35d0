"""Translates the settings of Kafka's Java producer to librdkafka's, with the Java client's defaults."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.config.kafka_clients import (
    VALUES,
    JavaSettingError,
    connection_settings,
    kafka_secrets,
    without_secrets,
)
from floodmark.config.model import nearest
from floodmark.errors import ConfigError

_RENAMED = {
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
    "max.block.ms": "topic.metadata.propagation.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
"""Names of the Java client, and librdkafka's where they differ."""
_ALIASES = (
    "acks",
    "compression.type",
    "connections.max.idle.ms",
    "delivery.timeout.ms",
    "linger.ms",
    "max.in.flight.requests.per.connection",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retries",
)
"""Names that both clients have, but that librdkafka doesn't list."""
_MEMORY, _KIBIBYTES = "buffer.memory", "queue.buffering.max.kbytes"
_LARGEST = "message.max.bytes"
_IDEMPOTENCE, _IN_FLIGHT = "enable.idempotence", "max.in.flight.requests.per.connection"
_DEFAULTS = {
    _IDEMPOTENCE: "true",
    _IN_FLIGHT: "5",
    _KIBIBYTES: "32768",
    _LARGEST: "1048576",
    # A task flushes at its end, so waiting delays nothing, and without it the client's thread looks after each event.
    "batch.size": "524288",
    "linger.ms": "100",
    "delivery.timeout.ms": "120000",
    "topic.metadata.propagation.max.ms": "60000",
    # As the Java client chooses a key's partition, so that a topic can go on with either.
    "partitioner": "murmur2_random",
}
_ACKS = ("acks", "request.required.acks")
_MOST_IN_FLIGHT = 5
_ENGINE = "Leave it out, or set engine=spark, which writes with the Java client."
_NEAR = 0.85
"""From which similarity on a name is taken for a misspelt one."""


def producer_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's settings, with secrets in plain text.

    Args:
        settings: the producer's, by the Java client's names or librdkafka's, in small letters.

    Raises:
        ValueError: librdkafka lacks one of them, such as a keystore of Java's.
    """
    try:
        connection = connection_settings(settings)
    except JavaSettingError as error:
        raise ValueError(
            f"Option 'kafka.{error.name}' is the Java client's; librdkafka, which writes to Kafka, lacks it: "
            f"{error.cure}, or set engine=spark."
        ) from None
    rest = {name: value for name, value in settings.items() if name not in connection and not _of_connection(name)}
    found = {**_DEFAULTS, **connection}
    if _without_idempotence(rest):
        del found[_IDEMPOTENCE]
    for name, value in rest.items():
        if name == _MEMORY:
            found[_translated(name)] = _kibibytes(value)
        else:
            found[_translated(name)] = VALUES.get((name, value), value)
    return found


def largest(settings: Mapping[str, str]) -> tuple[int, str]:
    """Return how many bytes a record may have, and the option of the sink that says so.

    Args:
        settings: by librdkafka's names.
    """
    memory = int(settings[_KIBIBYTES]) * 1024
    most = int(settings[_LARGEST])
    return (memory, f"kafka.{_MEMORY}") if memory < most else (most, "kafka.max.request.size")


def check_settings(settings: Mapping[str, str]) -> None:
    """Let librdkafka check the producer's settings.

    Args:
        settings: by the Java client's names, in small letters.

    Raises:
        ConfigError: a value isn't allowed, a name is unknown, or the package isn't installed.
    """
    from floodmark.sinks.kafka.librdkafka import SettingError, library, new_client, setting_names

    found = producer_settings(settings)
    try:
        client = new_client(found)
    except SettingError as error:
        given = {_translated(name): name for name in settings}.get(error.name, error.name)
        if error.unknown:
            names = [f"kafka.{name}" for name in {*setting_names(), *_ALIASES, *_RENAMED, _MEMORY}]
            raise ConfigError(
                f"librdkafka, which writes to Kafka, has no setting '{given}', as 'kafka.{given}' sets it.",
                nearest(f"kafka.{given}", names, _NEAR) or _ENGINE,
            ) from None
        reason = without_secrets(kafka_secrets(settings), error.what.rstrip("."))
        what = f"the option 'kafka.{given}'" if given in settings else "its settings"
        cure = "" if given in settings else "They are the sink's options kafka.…."
        raise ConfigError(f"Kafka's producer refuses {what}: {reason}.", cure) from None
    library().rd_kafka_destroy(client)


def _translated(name: str) -> str:
    return _KIBIBYTES if name == _MEMORY else _RENAMED.get(name, name)


def _of_connection(name: str) -> bool:
    return name.startswith(("sasl.jaas", "ssl.truststore"))


def _without_idempotence(given: Mapping[str, str]) -> bool:
    """Return whether settings exclude idempotence where it isn't asked for, as the Java client has it."""
    acks = next((given[name] for name in _ACKS if name in given), "all")
    in_flight = given.get(_IN_FLIGHT, "")
    excluded = in_flight.isdigit() and int(in_flight) > _MOST_IN_FLIGHT
    return acks not in ("all", "-1") or given.get("retries") == "0" or excluded


def _kibibytes(value: str) -> str:
    """Return a number of bytes in KiB; what is no number is left to librdkafka's check."""
    return str(max(1, int(value) // 1024)) if value.isdigit() else value
