"""Debezium's options that are not Floodmark's: those that are accepted without effect, and those that are refused.

``floodmark.config.debezium_page`` makes the page that lists every option of Debezium 3.6 for its databases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from floodmark.errors import ConfigError
from floodmark.log import get_logger

log = get_logger(__name__)

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
CONNECTOR_CLASS = "io.debezium.connector.postgresql.PostgresConnector"

_QUEUE = "there is no queue between reading and delivering; see max.batch.rows and max.batch.bytes"
_CONNECT = "there is no Kafka Connect worker; Spark's checkpoint holds the offsets and Spark's cores do the work"
_JVM = "there is no JVM connector whose metrics or lineage it would describe"
_THREADS = "a snapshot's tasks run on Spark's cores; see snapshot.max.threads and snapshot.chunk.bytes"
_FLUSH = "telling the server what it may discard is a message that nobody waits for"
_SPARK = "transform the DataFrame in Spark"
_JAVA = "it names a Java class"


@dataclass(frozen=True)
class Foreign:
    """An option of Debezium's that Floodmark doesn't have.

    Attributes:
        reason: why it has no effect, or why it is refused.
        values: the values that are accepted, if not all are; others are refused.
    """

    reason: str
    values: tuple[str, ...] | None = None


ACCEPTED: Mapping[str, Foreign] = {
    "config.action.reload": Foreign(_CONNECT),
    "connection.validation.timeout.ms": Foreign("`floodmark check` uses connect.timeout.ms"),
    "connector.class": Foreign("the option connector names the database", (CONNECTOR_CLASS,)),
    "custom.metric.tags": Foreign(_JVM),
    "custom.sanitize.pattern": Foreign("Floodmark never logs passwords"),
    "driver.<property>": Foreign("libpq has other parameters than the JDBC driver; see database.initial.statements"),
    "errors.log.enable": Foreign(_CONNECT),
    "errors.log.include.messages": Foreign(_CONNECT),
    "errors.tolerance": Foreign("see errors.tables and event.processing.failure.handling.mode"),
    "event.converting.failure.handling.mode": Foreign(
        "a value that cannot be converted makes its record undecodable; see event.processing.failure.handling.mode"
    ),
    "exactly.once.support": Foreign("delivery is exactly once with a sink that is idempotent for each micro-batch"),
    "executor.shutdown.timeout.ms": Foreign(_CONNECT),
    "extended.headers.enabled": Foreign("the headers name a Connect task; there is none"),
    "header.converter": Foreign("headers are bytes: JSON without schemas", (JSON_CONVERTER,)),
    "header.converter.schemas.enable": Foreign("headers have no schemas", ("false",)),
    "heartbeat.topics.prefix": Foreign("Debezium 3.6 reads topic.heartbeat.prefix instead, and so does Floodmark"),
    "include.schema.comments": Foreign("Debezium adds comments to schemas of other databases only"),
    "internal.<switch>": Foreign("it is a switch inside Debezium"),
    "key.converter": Foreign("keys are JSON", (JSON_CONVERTER,)),
    "legacy.snapshot.max.threads": Foreign(_THREADS),
    "lsn.flush.timeout.action": Foreign(_FLUSH),
    "lsn.flush.timeout.ms": Foreign(_FLUSH),
    "max.batch.size": Foreign(_QUEUE),
    "max.queue.size": Foreign(_QUEUE),
    "max.queue.size.in.bytes": Foreign(_QUEUE),
    "memory.management.<what>.class": Foreign("no history of schemas is held in memory"),
    "name": Foreign("a query's name is set with queryName"),
    "offset.commit.policy": Foreign(_CONNECT),
    "offset.flush.interval.ms": Foreign(_CONNECT),
    "offset.flush.timeout.ms": Foreign(_CONNECT),
    "offset.storage": Foreign(_CONNECT),
    "offset.storage.<option>": Foreign(_CONNECT),
    "openlineage.integration.<option>": Foreign(_JVM),
    "poll.interval.ms": Foreign("the trigger of the query says how often it looks for events"),
    "query.fetch.size": Foreign("rows come as one stream, not in fetches"),
    "queue.provider.type": Foreign(_QUEUE),
    "queue.<option>": Foreign(_QUEUE),
    "record.processing.<option>": Foreign(_CONNECT),
    "sanitize.field.names": Foreign("Debezium 3.6 reads field.name.adjustment.mode instead, and so does Floodmark"),
    "schema.history.internal": Foreign("there is no schema history"),
    "schema.history.internal.<option>": Foreign("there is no schema history"),
    "schema.refresh.mode": Foreign(
        "the log announces each version of a table, so a missing large value never looks like an alteration",
        ("columns_diff", "columns_diff_exclude_unchanged_toast"),
    ),
    "slot.seek.to.known.offset.on.start": Foreign("see offset.mismatch.strategy"),
    "snapshot.max.threads.multiplier": Foreign(_THREADS),
    "snapshot.max.threads.multiplier.<table>": Foreign(_THREADS),
    "sourceinfo.struct.maker": Foreign(_JAVA, ("io.debezium.connector.postgresql.PostgresSourceInfoStructMaker",)),
    "statistics.metrics.enabled": Foreign(_JVM),
    "task.management.timeout.ms": Foreign(_CONNECT),
    "tasks.max": Foreign("one task reads the log, and Spark decodes it in as many as it has cores"),
    "topic.creation.<option>": Foreign("the sink creates topics"),
    "transaction.boundary": Foreign(_CONNECT),
    "transaction.metadata.factory": Foreign(
        _JAVA, ("io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory",)
    ),
    "value.converter": Foreign("values are JSON", (JSON_CONVERTER,)),
}
"""Options that are accepted, and why they have no effect. A ``<…>`` stands for anything."""

REFUSED: Mapping[str, str] = {
    "database.connection.factory.class": _JAVA,
    "database.sslfactory": f"{_JAVA}; see database.sslmode and the options beside it",
    "post.processors": f"{_JAVA}; {_SPARK}",
    "predicates": _SPARK,
    "predicates.<option>": _SPARK,
    "transforms": _SPARK,
    "transforms.<option>": _SPARK,
}
"""Options that would change events in a way that Floodmark doesn't have, and why they are refused."""

_POSTGRES_ALONE = (
    "lsn.flush.timeout.action",
    "lsn.flush.timeout.ms",
    "include.schema.comments",
    "schema.history.internal",
    "schema.history.internal.<option>",
    "schema.refresh.mode",
    "slot.seek.to.known.offset.on.start",
)
_MYSQL_CLASSES = (
    "io.debezium.connector.mysql.MySqlConnector",
    "io.debezium.connector.mariadb.MariaDbConnector",
)
_MYSQL_SOURCE = (
    "io.debezium.connector.mysql.MySqlSourceInfoStructMaker",
    "io.debezium.connector.mariadb.MariaDbSourceInfoStructMaker",
)
_CONNECTIONS = "pieces are as large as snapshot.chunk.bytes says; see snapshot.max.threads"
_STREAMED = "the log is read as one stream, and rows of tables too"

ACCEPTED_BY_MYSQL: Mapping[str, Foreign] = {
    **{name: foreign for name, foreign in ACCEPTED.items() if name not in _POSTGRES_ALONE},
    "binlog.buffer.size": Foreign("a transaction is delivered when it is committed, however large it is"),
    "binlog.net.read.timeout": Foreign(_STREAMED),
    "binlog.net.write.timeout": Foreign(_STREAMED),
    "connect.keep.alive": Foreign("a lost connection is noticed by the server's heartbeats"),
    "connect.keep.alive.interval.ms": Foreign("a lost connection is noticed by the server's heartbeats"),
    "connector.class": Foreign("the option connector names the database", _MYSQL_CLASSES),
    "database.jdbc.driver": Foreign(_JVM),
    "database.protocol": Foreign(_JVM),
    "database.server.id.offset": Foreign("one client reads the log"),
    "ddl.parser.type": Foreign("there is one parser of DDL"),
    "driver.<property>": Foreign("there is no JDBC driver; see database.initial.statements"),
    "incremental.snapshot.allow.schema.changes": Foreign("tables may be altered during an incremental snapshot"),
    "memory.management.<what>.class": Foreign("the tables' structures are held in memory"),
    "min.row.count.to.stream.results": Foreign(_STREAMED),
    "schema.history.internal.<option>": Foreign("the schema history is in state.dir, or in a Kafka topic"),
    "snapshot.max.threads.multiplier": Foreign(_CONNECTIONS),
    "snapshot.max.threads.multiplier.<table>": Foreign(_CONNECTIONS),
    "legacy.snapshot.max.threads": Foreign(_CONNECTIONS),
    "sourceinfo.struct.maker": Foreign(_JAVA, _MYSQL_SOURCE),
    "use.nongraceful.disconnect": Foreign("a connection is closed at once in any case"),
}
"""Those of the MySQL and MariaDB connectors."""

REFUSED_BY_MYSQL: Mapping[str, str] = {
    name: reason for name, reason in REFUSED.items() if name != "database.sslfactory"
}

_logged: set[str] = set()


def accept_mysql(name: str, value: str) -> bool:
    """Tell whether an option is one of Debezium's for MySQL or MariaDB that is accepted without effect.

    Raises:
        ConfigError: it is one that is refused.
    """
    return accept(name, value, ACCEPTED_BY_MYSQL, REFUSED_BY_MYSQL)


def accept(
    name: str, value: str, accepted: Mapping[str, Foreign] = ACCEPTED, refused: Mapping[str, str] = REFUSED
) -> bool:
    """Tell whether an option is one of Debezium's that is accepted without effect; log once why it has none.

    Args:
        name: the option.
        value: its value.
        accepted: the options that are.
        refused: the options that are not, and why.

    Raises:
        ConfigError: it is one that is refused.
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
    """Return the entry that stands for an option; the first one, if several do."""
    lower = name.lower()
    return next((known for known in options if _pattern(known).fullmatch(lower)), None)


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(".+".join(re.escape(part.lower()) for part in re.split("<[^>]*>", name)))
