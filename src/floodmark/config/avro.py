"""The options of Confluent's ``AvroConverter``, which are given behind ``key.converter.`` or ``value.converter.``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self

from pydantic import SecretStr, model_validator

from floodmark.config.model import Options, Words, option
from floodmark.redact import shown_uri

AVRO = "io.confluent.connect.avro.AvroConverter"
_STRATEGIES = "io.confluent.kafka.serializers.subject"
_SOURCE, _LOGIN = "basic.auth.credentials.source", "basic.auth.user.info"
_BEARER, _TOKEN = "bearer.auth.credentials.source", "bearer.auth.token"
_TRUSTED, _KEYS = "schema.registry.ssl.truststore", "schema.registry.ssl.keystore"
Strategy = Literal[
    "io.confluent.kafka.serializers.subject.TopicNameStrategy",
    "io.confluent.kafka.serializers.subject.RecordNameStrategy",
    "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy",
]
_STRATEGY = f"{_STRATEGIES}.TopicNameStrategy"
_SUBJECTS = "The subject of schemas is the topic with `-{0}`, the record's name, or both (`TopicRecordNameStrategy`)."


class AvroOptions(Options):
    """Options of one converter."""

    urls: Words = option(
        "schema.registry.url", ..., "The registry's address, or several of one registry, which are tried in order."
    )
    credentials_source: Literal["URL", "USER_INFO"] = option(
        _SOURCE, "URL", f"Where name and password come from: the address, or `{_LOGIN}`."
    )
    user_info: SecretStr | None = option(_LOGIN, None, "Name and password, with a colon between them.")
    bearer_source: Literal["STATIC_TOKEN"] | None = option(
        _BEARER, None, f"`STATIC_TOKEN`: the token is that of `{_TOKEN}`."
    )
    token: SecretStr | None = option(_TOKEN, None, "The token.")
    logical_cluster: str = option("bearer.auth.logical.cluster", "", "Confluent Cloud's name of the registry.")
    identity_pool: str | None = option("bearer.auth.identity.pool.id", None, "Confluent Cloud's identity pool.")
    truststore: str | None = option(
        f"{_TRUSTED}.location", None, "A PEM file with the certificates that are trusted; without it, the usual ones."
    )
    truststore_type: Literal["PEM"] = option(f"{_TRUSTED}.type", "PEM", "Only PEM.")
    keystore: str | None = option(f"{_KEYS}.location", None, "A PEM file with the client's key and certificate.")
    keystore_type: Literal["PEM"] = option(f"{_KEYS}.type", "PEM", "Only PEM.")
    key_password: SecretStr | None = option("schema.registry.ssl.key.password", None, "The password of that key.")
    read_timeout_ms: int = option("http.read.timeout.ms", 60_000, "How long the registry may take to answer.", ge=1)
    auto_register: bool = option("auto.register.schemas", True, "Whether schemas are registered that a subject lacks.")
    use_latest: bool = option(
        "use.latest.version",
        False,
        "With `auto.register.schemas=false`: write with the subject's latest schema, which must have the same fields.",
    )
    normalize: bool = option("normalize.schemas", False, "Whether the registry normalizes schemas before it compares.")
    key_strategy: Strategy = option("key.subject.name.strategy", _STRATEGY, f"For keys. {_SUBJECTS.format('key')}")
    value_strategy: Strategy = option(
        "value.subject.name.strategy", _STRATEGY, f"For values. {_SUBJECTS.format('value')}"
    )
    metadata: bool = option(
        "connect.meta.data", True, "Whether schemas keep what Avro has no place for, as properties `connect.…`."
    )
    scrub: bool = option(
        "scrub.invalid.names", False, "Whether names that Avro doesn't allow are replaced, as Confluent does it."
    )
    ignores_defaults: bool = option(
        "ignore.default.for.nullables", False, "Whether a null in a column with a default stays null."
    )
    enhanced: bool = option(
        "enhanced.avro.schema.support", False, "No effect: Debezium's schemas have nothing that it changes."
    )
    most_schemas: int = option("max.schemas.per.subject", 1000, "No effect: all ids are remembered.", ge=1)
    cached_schemas: int = option("schemas.cache.config", 1000, "No effect: all schemas are remembered.", ge=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for url in self.urls:
            if not url.lower().startswith(("http://", "https://")):
                raise ValueError(
                    f"Option 'schema.registry.url' has the value '{shown_uri(url)}', which is not allowed: an address "
                    "begins with http:// or https://."
                )
        if not self.urls:
            raise ValueError("Option 'schema.registry.url' is empty: give the registry's address.")
        if (self.credentials_source == "USER_INFO") != (self.user_info is not None):
            raise ValueError(f"Option '{_SOURCE}' must be USER_INFO if '{_LOGIN}' is given, and only then.")
        if self.user_info is not None and ":" not in self.user_info.get_secret_value():
            raise ValueError(f"Option '{_LOGIN}' must be a name and a password with a colon between them.")
        if (self.bearer_source is None) != (self.token is None):
            raise ValueError(f"Option '{_BEARER}' must be STATIC_TOKEN if '{_TOKEN}' is given, and only then.")
        if self.use_latest and self.auto_register:
            raise ValueError("Option 'use.latest.version' needs 'auto.register.schemas=false'.")
        return self

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Show no logins."""
        yield "urls", self.shown_url

    @property
    def shown_url(self) -> str:
        """The addresses, without secrets."""
        return ", ".join(map(shown_uri, self.urls))

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown: logins, tokens and passwords."""
        given = (self.user_info, self.token, self.key_password)
        found = [one.get_secret_value() for one in given if one is not None]
        return tuple(filter(None, (*found, *(part for one in found[:1] for part in one.split(":", 1)))))
