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

_CONNECTING = ("bootstrap.servers", "client.id", "security.protocol", "sasl.", "ssl.")
"""How the names of settings begin that a connection needs."""
_JAAS = "sasl.jaas.config"
_TEXT = r'"((?:[^"\\]|\\.)*)"'
_LOGIN = re.compile(rf"(?:PlainLoginModule|ScramLoginModule)\s+required\s+username={_TEXT}\s+password={_TEXT}\s*;\s*$")
"""How nearly everyone writes a login by name and password for the Java client."""
_SECRET = re.compile(r"password|secret|token|pem|config|assertion")


class JavaSettingError(ConfigError):
    """A setting of the Java client that librdkafka lacks.

    Attributes:
        name: its name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"the Python client has no '{name}' of the Java client", REFUSED[name].format(family="kafka."))
        self.name = name


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


def connection_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's settings to connect as the Java client does whose settings are given.

    Args:
        settings: by the Java client's names, in small letters.

    Raises:
        JavaSettingError: librdkafka lacks one of them, such as a keystore of Java's.
    """
    found = {"log_level": "0"}
    for name, value in settings.items():
        if name == _JAAS and (login := _LOGIN.search(value)) is not None:
            found |= {"sasl.username": _unescaped(login[1]), "sasl.password": _unescaped(login[2])}
        elif name == "ssl.truststore.location" and settings.get("ssl.truststore.type", "").upper() == "PEM":
            found["ssl.ca.location"] = value
        elif name == "ssl.truststore.type":
            continue
        elif name in REFUSED and name.startswith(_CONNECTING):
            raise JavaSettingError(name)
        elif name.startswith(_CONNECTING):
            found[name] = VALUES.get((name, value), value)
    return found


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


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
