"""Asks a registry for ids of schemas, with the client of the package confluent-kafka."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from floodmark.capture.retry import RetryPolicy
from floodmark.config.avro import AvroOptions
from floodmark.errors import ConnectError, LoginError, RegistryError
from floodmark.logger import get_logger
from floodmark.schema_registry.failures import client_is_missing, failure

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

log = get_logger(__name__)

T = TypeVar("T")
_AVRO = "AVRO"
_BEARER = "STATIC_TOKEN"
_PACKAGES = ("confluent_kafka", "authlib", "fastavro")
"""What `floodmark[avro]` installs, with one of those that the client asks for."""


def require_client() -> None:
    """Refuse to go on without what the client consists of; nothing is imported.

    Raises:
        ConfigError: a package isn't installed.
    """
    for name in _PACKAGES:
        if find_spec(name) is None:
            raise client_is_missing(name)


class Registry:
    """A registry, with the ids that it has given.

    Args:
        options: of the registry.
        policy: how often and when a request is repeated while it can't be reached.
    """

    def __init__(self, options: AvroOptions, policy: RetryPolicy) -> None:
        self._options = options
        self._policy = policy
        self._ids: dict[tuple[str, str], int] = {}
        # A task may decode parts of the log in several threads, which meet the same schemas.
        self._asking = Lock()
        self._client: SchemaRegistryClient | None = None

    def id_of(self, subject: str, schema: str) -> int:
        """Return the id of a schema, which is registered if the options say so; asks once for each.

        Args:
            subject: what it belongs to.
            schema: as JSON text.

        Raises:
            ConnectError: the registry can't be reached, and the retries are used up.
            RegistryError: it refuses the schema, or lacks it.
        """
        found = self._ids.get((subject, schema))
        if found is not None:
            return found
        with self._asking:
            if (subject, schema) not in self._ids:
                self._ids[subject, schema] = self._with_retries(lambda: self._ask(subject, schema), subject)
            return self._ids[subject, schema]

    def check(self) -> None:
        """Ask for what every registry answers, once.

        Raises:
            ConfigError: the client isn't installed.
            ConnectError: the registry can't be reached, or doesn't allow it.
            RegistryError: it is none, or knows no Avro.
        """
        kinds = self._tried(lambda client: client.get_schema_types(), "for the kinds of schemas")
        if _AVRO not in kinds:
            raise RegistryError(
                f"The schema registry {self._options.shown_url} takes no schemas of Avro.",
                "Correct schema.registry.url of the converter.",
            )

    def _with_retries(self, action: Callable[[], T], subject: str) -> T:
        failures = 0
        while True:
            try:
                return action()
            except LoginError:
                raise
            except ConnectError as exc:
                failures += 1
                if self._policy.gave_up(failures):
                    raise
                delay = self._policy.delay_s(failures)
                log.warning("registry_is_away", subject=subject, error=str(exc), retry=failures, delay_s=delay)
                time.sleep(delay)

    def _ask(self, subject: str, schema: str) -> int:
        from confluent_kafka.schema_registry import Schema

        options, about = self._options, f"about the subject '{subject}'"
        given: int | None
        asked = Schema(schema, _AVRO)
        if options.auto_register:
            given = self._tried(lambda client: client.register_schema(subject, asked, options.normalize), about)
        elif options.use_latest:
            latest = self._tried(lambda client: client.get_latest_version(subject), about)
            _require_same(options, subject, schema, str(latest.schema.schema_str))
            given = latest.schema_id
        else:
            known = self._tried(lambda client: client.lookup_schema(subject, asked, options.normalize), about)
            given = known.schema_id
        assert given is not None, "a registry answers with an id"
        log.info("schema_has_an_id", subject=subject, id=given)
        return given

    def _tried(self, request: Callable[[SchemaRegistryClient], T], doing: str) -> T:
        try:
            if self._client is None:
                self._client = _client(self._options)
            return request(self._client)
        except ModuleNotFoundError as exc:
            raise client_is_missing(str(exc.name)) from None
        except (AttributeError, TypeError):
            # Not the registry's fault: a release of the client that has another interface.
            raise
        except Exception as exc:
            # The client passes on what its library for HTTP raises, which depends on its release.
            raise failure(self._options, doing, exc) from None


_registries: dict[tuple[AvroOptions, RetryPolicy], Registry] = {}
"""Those of this process, which runs tasks of many micro-batches."""


def registry_of(options: AvroOptions, policy: RetryPolicy) -> Registry:
    """Return this process's client of a registry."""
    return _registries.setdefault((options, policy), Registry(options, policy))


def check_registries(converters: Iterable[AvroOptions | None]) -> None:
    """Ask the registries of converters, each once, so that mistakes show before any work is done.

    Raises:
        ConfigError: the client isn't installed.
        ConnectError: one can't be reached, or doesn't allow it.
        RegistryError: one is none.
    """
    for options in dict.fromkeys(one for one in converters if one is not None):
        Registry(options, RetryPolicy(0, 0.0, 0.0)).check()


def _client(options: AvroOptions) -> SchemaRegistryClient:
    from confluent_kafka.schema_registry import SchemaRegistryClient

    given: dict[str, Any] = {
        "url": ",".join(options.urls),
        "timeout": options.read_timeout_ms / 1000,
        # Requests are repeated here, as those to the source are.
        "max.retries": 0,
        "ssl.ca.location": options.truststore,
        "ssl.certificate.location": options.keystore,
        "ssl.key.password": options.key_password and options.key_password.get_secret_value(),
        "basic.auth.user.info": options.user_info and options.user_info.get_secret_value(),
    }
    if options.token is not None:
        given |= {
            "bearer.auth.credentials.source": _BEARER,
            "bearer.auth.token": options.token.get_secret_value(),
            "bearer.auth.logical.cluster": options.logical_cluster,
            "bearer.auth.identity.pool.id": options.identity_pool,
        }
    return SchemaRegistryClient({name: value for name, value in given.items() if value is not None})


def _require_same(options: AvroOptions, subject: str, schema: str, latest: str) -> None:
    """Refuse a subject's latest schema unless values are the same bytes with it.

    Raises:
        RegistryError: they aren't.
    """
    if _canonical(schema) != _canonical(latest):
        raise RegistryError(
            f"The latest schema of the subject '{subject}' in the registry {options.shown_url} has other fields than "
            "the events.",
            "Register a schema with the events' fields in their order, or leave use.latest.version out.",
        )


def _canonical(schema: str) -> str:
    """Return what of a schema decides on bytes: its Parsing Canonical Form."""
    from fastavro.schema import SchemaParseException, to_parsing_canonical_form

    try:
        return str(to_parsing_canonical_form(json.loads(schema)))
    except SchemaParseException:
        # Java's library allows more names.
        return schema
