"""Options of other connectors: Debezium's that have no effect here, and those that are similar."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.config import debezium
from floodmark.config.debezium import JAVA_CLASS, NO_JVM, Foreign
from floodmark.connectors.registry import CONNECTORS

_CONNECTOR_CLASSES = tuple(CONNECTORS[name].debezium_class for name in ("mysql", "mariadb"))
_SOURCE_MAKERS = (
    "io.debezium.connector.mysql.MySqlSourceInfoStructMaker",
    "io.debezium.connector.mariadb.MariaDbSourceInfoStructMaker",
)
_CONNECTIONS = "pieces are as large as snapshot.chunk.bytes says; see snapshot.max.threads"
_STREAMED = "the log is read as one stream, and rows of tables too"

ACCEPTED: Mapping[str, Foreign] = {
    **debezium.ACCEPTED,
    "binlog.buffer.size": Foreign("a transaction is delivered when it is committed, however large it is"),
    "binlog.net.read.timeout": Foreign(_STREAMED),
    "binlog.net.write.timeout": Foreign(_STREAMED),
    "connect.keep.alive": Foreign("a lost connection is noticed by the server's heartbeats"),
    "connect.keep.alive.interval.ms": Foreign("a lost connection is noticed by the server's heartbeats"),
    "connector.class": Foreign("the option connector names the database", _CONNECTOR_CLASSES),
    "database.jdbc.driver": Foreign(NO_JVM),
    "database.protocol": Foreign(NO_JVM),
    "database.server.id.offset": Foreign("one client reads the log"),
    "ddl.parser.type": Foreign("there is one parser of DDL"),
    "driver.<property>": Foreign("there is no JDBC driver; see database.initial.statements"),
    "incremental.snapshot.allow.schema.changes": Foreign("tables may be altered during an incremental snapshot"),
    "memory.management.<what>.class": Foreign("the tables' structures are held in memory"),
    "min.row.count.to.stream.results": Foreign(_STREAMED),
    "resolve.create.table.like.schema": Foreign("the schema history has the structures of all tables"),
    "schema.history.internal.<option>": Foreign("the schema history is in state.dir, or in a Kafka topic"),
    "snapshot.max.threads.multiplier": Foreign(_CONNECTIONS),
    "snapshot.max.threads.multiplier.<table>": Foreign(_CONNECTIONS),
    "legacy.snapshot.max.threads": Foreign(_CONNECTIONS),
    "sourceinfo.struct.maker": Foreign(JAVA_CLASS, _SOURCE_MAKERS),
    "use.nongraceful.disconnect": Foreign("a connection is closed at once in any case"),
}
SIMILAR: Mapping[str, str] = {
    "database.dbname": "database.include.list",
    "database.sslcert": "database.ssl.keystore",
    "database.sslkey": "database.ssl.keystore",
    "database.sslmode": "database.ssl.mode",
    "database.sslpassword": "database.ssl.keystore.password",
    "database.sslrootcert": "database.ssl.truststore",
    "schema.exclude.list": "database.exclude.list",
    "schema.include.list": "database.include.list",
}
