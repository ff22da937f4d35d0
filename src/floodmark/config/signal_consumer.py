"""The options ``signal.consumer.*``: librdkafka's names, and what becomes of those of Kafka's Java client."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import SecretStr

FAMILY = "signal.consumer."
RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
"""Names of the Java client that have another one here."""

VALUES = {("auto.offset.reset", "none"): "error", ("ssl.endpoint.identification.algorithm", ""): "none"}
"""Values of the Java client that have another one here."""

_AUTHORITIES = f"give the authorities' certificates as a PEM file by '{FAMILY}ssl.ca.location'"
_PEM = f"give PEM files by '{FAMILY}ssl.certificate.location' and '{FAMILY}ssl.key.location'"
_CALLBACKS = f"librdkafka loads no Java classes; '{FAMILY}sasl.oauthbearer.method' and its kin are in its place"
_FIXED = "leave it out, since a signal's offset is committed when what follows from it is"
REFUSED = {
    "sasl.jaas.config": f"give '{FAMILY}sasl.username' and '{FAMILY}sasl.password'",
    "ssl.truststore.location": _AUTHORITIES,
    "ssl.truststore.password": _AUTHORITIES,
    "ssl.truststore.type": _AUTHORITIES,
    "ssl.truststore.certificates": _AUTHORITIES,
    "ssl.keystore.type": f"'{FAMILY}ssl.keystore.location' is a PKCS#12 file; else {_PEM}",
    "ssl.keystore.key": _PEM,
    "ssl.keystore.certificate.chain": _PEM,
    "sasl.login.callback.handler.class": _CALLBACKS,
    "sasl.client.callback.handler.class": _CALLBACKS,
    "sasl.login.class": _CALLBACKS,
    "interceptor.classes": "leave it out, since librdkafka loads no Java classes",
    "key.deserializer": "leave it out, since keys are texts",
    "value.deserializer": "leave it out, since values are JSON texts",
    "enable.auto.commit": _FIXED,
    "enable.auto.offset.store": _FIXED,
    "enable.partition.eof": "leave it out, since Floodmark needs it on",
}
"""Names that can't be given, and what to do instead."""


def refuse_java_names(given: Mapping[str, SecretStr]) -> None:
    """Check that no option is one that only the Java client has.

    Raises:
        ValueError: one is; it says what to give instead.
    """
    for name in given:
        if name.lower() in REFUSED:
            raise ValueError(f"Option '{FAMILY}{name}' is not allowed: {REFUSED[name.lower()]}.")


def librdkafka_settings(given: Mapping[str, SecretStr]) -> dict[str, str]:
    """Return the options by librdkafka's names, secrets in the clear."""
    settings = {}
    for name, secret in given.items():
        name, value = name.lower(), secret.get_secret_value()
        settings[RENAMED.get(name, name)] = VALUES.get((name, value), value)
    return settings
