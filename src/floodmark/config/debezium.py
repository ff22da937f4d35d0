"""Debezium's options that Floodmark lacks: those that are accepted without effect, and those that are refused.

The tables here are for all connectors; each connector adds its own in its module ``debezium_options``.

``floodmark.cli.pages.debezium`` writes the page that lists every option of Debezium 3.6 for its databases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from floodmark.errors import ConfigError
from floodmark.logger import get_logger

log = get_logger(__name__)

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"

_QUEUE = "there is no queue between reading and delivering; see max.batch.rows and max.batch.bytes"
_CONNECT = "there is no Kafka Connect worker; Spark's checkpoint holds the offsets and Spark's cores do the work"
NO_JVM = "there is no JVM connector whose metrics or lineage it would describe"
_SPARK = "transform the DataFrame in Spark"
_AVRO_SCHEMA = "it is for the schemas of Avro, and CloudEvents are JSON"
JAVA_CLASS = "it names a Java class"


@dataclass(frozen=True)
class Foreign:
    """An option of Debezium that Floodmark doesn't have.

    Attributes:
        reason: why it has no effect, or why it is refused.
        values: the values that are accepted, if not all are; others are refused.
    """

    reason: str
    values: tuple[str, ...] | None = None


ACCEPTED: Mapping[str, Foreign] = {
    "config.action.reload": Foreign(_CONNECT),
    "connection.validation.timeout.ms": Foreign("`floodmark check` uses connect.timeout.ms"),
    "custom.metric.tags": Foreign(NO_JVM),
    "custom.sanitize.pattern": Foreign("Floodmark never logs passwords"),
    "errors.log.enable": Foreign(_CONNECT),
    "errors.log.include.messages": Foreign(_CONNECT),
    "errors.tolerance": Foreign("see errors.tables and event.processing.failure.handling.mode"),
    "event.converting.failure.handling.mode": Foreign(
        "a value that cannot be converted makes its record undecodable; see event.processing.failure.handling.mode"
    ),
    "exactly.once.support": Foreign("delivery is exactly once with a sink that is idempotent for each micro-batch"),
    "executor.shutdown.timeout.ms": Foreign(_CONNECT),
    "extended.headers.enabled": Foreign("the headers name a Connect task; there is none"),
    "heartbeat.topics.prefix": Foreign("Debezium 3.6 reads topic.heartbeat.prefix instead, and so does Floodmark"),
    "internal.<switch>": Foreign("it is a switch inside Debezium"),
    "max.batch.size": Foreign(_QUEUE),
    "max.queue.size": Foreign(_QUEUE),
    "max.queue.size.in.bytes": Foreign(_QUEUE),
    "name": Foreign("a query's name is set with queryName"),
    "offset.commit.policy": Foreign(_CONNECT),
    "offset.flush.interval.ms": Foreign(_CONNECT),
    "offset.flush.timeout.ms": Foreign(_CONNECT),
    "offset.storage": Foreign(_CONNECT),
    "offset.storage.<option>": Foreign(_CONNECT),
    "openlineage.integration.<option>": Foreign(NO_JVM),
    "poll.dispatch.interval.ms": Foreign(_QUEUE),
    "poll.interval.ms": Foreign("the trigger of the query sets how often events are fetched"),
    "query.fetch.size": Foreign("rows come as one stream, not in fetches"),
    "queue.provider.type": Foreign(_QUEUE),
    "queue.<option>": Foreign(_QUEUE),
    "record.processing.<option>": Foreign(_CONNECT),
    "sanitize.field.names": Foreign("Debezium 3.6 reads field.name.adjustment.mode instead, and so does Floodmark"),
    "signal.emit.failure.<option>": Foreign(
        "snapshots write no watermarks by default; see incremental.snapshot.read.points"
    ),
    "statistics.metrics.enabled": Foreign(NO_JVM),
    "task.management.timeout.ms": Foreign(_CONNECT),
    "tasks.max": Foreign("one task reads the log, and Spark decodes it in as many as it has cores"),
    "topic.creation.<option>": Foreign("the sink `kafka` makes topics; its `sink.options` take these names"),
    "transaction.boundary": Foreign(_CONNECT),
    "transaction.metadata.factory": Foreign(
        JAVA_CLASS, ("io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory",)
    ),
    "value.converter.opentelemetry.tracing.attributes.enable": Foreign("events have no trace", ("false",)),
    "value.converter.schema.cloudevents.name": Foreign(_AVRO_SCHEMA),
    "value.converter.schema.data.name.source.header.enable": Foreign(_AVRO_SCHEMA, ("false",)),
    "value.converter.schema.name.adjustment.mode": Foreign(_AVRO_SCHEMA),
}
"""Options of every connector that are accepted, and why they have no effect. A ``<…>`` stands for anything."""

REFUSED: Mapping[str, str] = {
    "database.connection.factory.class": JAVA_CLASS,
    "post.processors": f"{JAVA_CLASS}; {_SPARK}",
}
"""Options of every connector that are refused, and why: they would change events in a way that Floodmark lacks."""

_logged: set[str] = set()


def accept(name: str, value: str, accepted: Mapping[str, Foreign], refused: Mapping[str, str]) -> bool:
    """Return whether an option is one of Debezium's that is accepted without effect; log the reason once.

    Args:
        name: the option.
        value: its value.
        accepted: the options that are accepted.
        refused: the options that are refused, and why.

    Raises:
        ConfigError: the option is refused, or its value is not allowed.
    """
    no = find(refused, name)
    if no is not None:
        raise ConfigError(f"Option '{name}' is one of Debezium's that Floodmark does not have: {refused[no]}.")
    found = find(accepted, name)
    if found is None:
        return False
    foreign = accepted[found]
    if foreign.values is not None and value not in foreign.values:
        raise ConfigError(
            f"Option '{name}' has the value '{value}', which is not allowed: "
            f"it must be {' or '.join(foreign.values)}, since {foreign.reason}."
        )
    if name not in _logged:
        _logged.add(name)
        log.info("option_has_no_effect", option=name, reason=foreign.reason)
    return True


def find(options: Mapping[str, object], name: str) -> str | None:
    """Return the first entry that matches an option; None if none does."""
    lower = name.lower()
    return next((known for known in options if _pattern(known).fullmatch(lower)), None)


@lru_cache(maxsize=1024)
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(".+".join(re.escape(part.lower()) for part in re.split("<[^>]*>", name)))
