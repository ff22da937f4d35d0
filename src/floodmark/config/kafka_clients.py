"""Translates the options of Kafka's Java client to librdkafka's, or refuses them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pydantic import SecretStr

from floodmark.errors import ConfigError

SIGNAL_CONSUMER = "signal.consumer."
RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
"""Names of the Java client, and librdkafka's where they differ."""

VALUES = {("auto.offset.reset", "none"): "error", ("ssl.endpoint.identification.algorithm", ""): "none"}
"""Values of the Java client, and librdkafka's where they differ."""

_AUTHORITIES = "give the authorities' certificates as a PEM file by '{family}ssl.ca.location'"
_PEM = "give PEM files by '{family}ssl.certificate.location' and '{family}ssl.key.location'"
_CALLBACKS = "librdkafka loads no Java classes; '{family}sasl.oauthbearer.method' and its kin are in its place"
_FIXED = "leave it out, since Floodmark sets it"
_TEXTS = "leave it out, since keys and values are texts"
REFUSED = {
    "sasl.jaas.config": "give '{family}sasl.username' and '{family}sasl.password'",
    "ssl.truststore.location": _AUTHORITIES,
    "ssl.truststore.password": _AUTHORITIES,
    "ssl.truststore.type": _AUTHORITIES,
    "ssl.truststore.certificates": _AUTHORITIES,
    "ssl.keystore.type": f"'{{family}}ssl.keystore.location' is a PKCS#12 file; else {_PEM}",
    "ssl.keystore.key": _PEM,
    "ssl.keystore.certificate.chain": _PEM,
    "sasl.login.callback.handler.class": _CALLBACKS,
    "sasl.client.callback.handler.class": _CALLBACKS,
    "sasl.login.class": _CALLBACKS,
    "interceptor.classes": "leave it out, since librdkafka loads no Java classes",
    "key.deserializer": _TEXTS,
    "value.deserializer": _TEXTS,
    "key.serializer": _TEXTS,
    "value.serializer": _TEXTS,
    "enable.auto.commit": _FIXED,
    "enable.auto.offset.store": _FIXED,
    "enable.partition.eof": _FIXED,
    "enable.idempotence": _FIXED,
}
"""Options that can't be given, and what to do instead."""

_SECRET = re.compile(r"password|secret|token|pem|config|assertion")


def refuse_java_names(family: str, given: Mapping[str, SecretStr]) -> None:
    """Refuse options that only the Java client has, and those that Floodmark sets.

    Args:
        family: the prefix of the options' names.
        given: the options, by the rest of their names.

    Raises:
        ValueError: an option is refused; the message includes what to do instead.
    """
    for name in given:
        if name.lower() in REFUSED:
            instead = REFUSED[name.lower()].format(family=family)
            raise ValueError(f"Option '{family}{name}' is not allowed: {instead}.")


def librdkafka_settings(given: Mapping[str, SecretStr]) -> dict[str, str]:
    """Return the options by librdkafka's names, with secrets in plain text."""
    settings = {}
    for name, secret in given.items():
        name, value = name.lower(), secret.get_secret_value()
        settings[RENAMED.get(name, name)] = VALUES.get((name, value), value)
    return settings


def client_is_missing(option: str, says: str, error: ModuleNotFoundError) -> ConfigError:
    """Return the error for a package for Kafka that isn't installed.

    Args:
        option: the option that requires Kafka.
        says: how it does, as a clause that follows the option's name.
        error: names the package.
    """
    return ConfigError(
        f"Option '{option}' {says}, but the package '{error.name}' is not installed.",
        "Install it with: pip install 'floodmark[kafka]'",
    )


def kafka_secrets(settings: Mapping[str, str]) -> list[str]:
    """Return the values of settings that must not be shown."""
    return [value for name, value in settings.items() if value and _SECRET.search(name)]


def without_secrets(secrets: Iterable[str], text: str) -> str:
    """Return a text with its secrets replaced."""
    for secret in secrets:
        text = text.replace(secret, "…")
    return text
