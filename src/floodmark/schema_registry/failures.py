"""Says what a registry's errors mean."""

from __future__ import annotations

from floodmark.config.avro import AvroOptions
from floodmark.errors import ConfigError, ConnectError, FloodmarkError, LoginError, RegistryError
from floodmark.redact import without_uri_secrets

_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _TIMEOUT, _CONFLICT, _TOO_MANY = 401, 403, 404, 408, 409, 429
_SERVER = 500
_LONGEST = 600
"""How many characters of a registry's explanation are shown: some have the whole schema."""


def failure(options: AvroOptions, doing: str, error: Exception) -> FloodmarkError:
    """Return the error for a request that failed.

    Args:
        options: of the registry.
        doing: what was asked for, as a part of a sentence: ``about the subject 'x'``.
        error: what the client of the package confluent-kafka raised.
    """
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    where = f"The schema registry {options.shown_url}"
    if not isinstance(error, SchemaRegistryError):
        return _without_answer(where, _shown(options, str(error) or type(error).__name__), error)
    status, reason = error.http_status_code, _shown(options, str(error.error_message))
    told = f"({reason}; HTTP {status}, code {error.error_code})"
    if status in (_UNAUTHORIZED, _FORBIDDEN):
        return LoginError(
            f"{where} doesn't allow requests {doing} {told}.",
            "Correct basic.auth.user.info (with basic.auth.credentials.source=USER_INFO) or bearer.auth.token of the "
            "converter, or give this user the right.",
        )
    if status == _CONFLICT:
        return RegistryError(
            f"{where} refuses a schema {doing}: it isn't compatible with those that the subject has {told}.",
            "Make the subject's compatibility one that allows the change, such as FORWARD or NONE, or undo the change "
            "of the table.",
        )
    if status == _NOT_FOUND:
        return RegistryError(
            f"{where} finds nothing {doing} {told}.",
            "Register the schema, or set auto.register.schemas=true; else correct schema.registry.url, which must "
            "lead to Confluent's interface (of Apicurio Registry: …/apis/ccompat/v7).",
        )
    if status in (_TIMEOUT, _TOO_MANY) or status >= _SERVER:
        return ConnectError(f"{where} can't answer requests {doing} for now {told}.", "Look at its log.")
    return RegistryError(
        f"{where} refuses a request {doing} {told}.",
        "If it is about names of tables or columns, set schema.name.adjustment.mode=avro and "
        "field.name.adjustment.mode=avro.",
    )


def client_is_missing(package: str) -> ConfigError:
    """Return the error for a package that isn't installed."""
    return ConfigError(
        f"A converter writes Avro, but the package '{package}' is not installed.",
        "Install it with: pip install 'floodmark[avro]'",
    )


def _without_answer(where: str, reason: str, error: Exception) -> FloodmarkError:
    if "certificate" in reason.lower():
        return LoginError(
            f"The connection to {where[0].lower()}{where[1:]} can't be trusted: {reason}.",
            "Give the authority's certificate as a PEM file: schema.registry.ssl.truststore.location of the converter.",
        )
    if isinstance(error, ValueError):
        return RegistryError(
            f"{where} answers with something else than a registry does: {reason}.", "Correct schema.registry.url."
        )
    return ConnectError(
        f"{where} can't be reached: {reason}.", "Start it, or correct schema.registry.url of the converter."
    )


def _shown(options: AvroOptions, text: str) -> str:
    """Return a registry's or the client's words, in one line and without secrets."""
    for url in options.urls:
        text = without_uri_secrets(url, text)
    for secret in options.secrets:
        text = text.replace(secret, "…")
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
