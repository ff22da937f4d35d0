"""The options of the MySQL and MariaDB connectors."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from typing import Literal, Self

from pydantic import SecretStr, model_validator

from floodmark.config.common import CommonOptions
from floodmark.config.debezium import REFUSED
from floodmark.config.hosts import Host
from floodmark.config.kafka_clients import refuse_java_names
from floodmark.config.model import OWN, Patterns, SecretFamily, matches, option, statements
from floodmark.config.snapshot import MIB
from floodmark.connectors.mysql import debezium_options

SYSTEM_DATABASES = frozenset({"mysql", "information_schema", "performance_schema", "sys"})
_MARIADB_TLS = {
    "disable": "disabled",
    "trust": "required",
    "verify-ca": "verify_ca",
    "verify-full": "verify_identity",
}
_SERVER_IDS = 1 << 30
"""Derived server ids lie in [2**30, 2**31), a range that is unlikely for ids chosen by hand."""


class BinlogOptions(CommonOptions):
    """Options of ``connector=mysql`` and ``connector=mariadb``."""

    accepted = debezium_options.ACCEPTED
    refused = REFUSED
    similar = debezium_options.SIMILAR

    hostname: Host = option("database.hostname", ..., "Host name or address of the server.")
    port: int = option("database.port", 3306, "Port of the server.", ge=1, le=65535)
    user: str = option(
        "database.user", ..., "Account to log in as; it needs SELECT, REPLICATION SLAVE and REPLICATION CLIENT."
    )
    password: SecretStr | None = option("database.password", None, "The account's password.")
    snapshot_chunk_bytes: int = option(
        "snapshot.chunk.bytes", 4 * MIB, "Size of table data that one snapshot task decodes.", OWN, ge=8192
    )
    ssl_keystore: str | None = option(
        "database.ssl.keystore",
        None,
        "File with the client's certificate and key.",
        "same; a PEM or PKCS 12 file, not JKS",
    )
    ssl_keystore_password: SecretStr | None = option(
        "database.ssl.keystore.password", None, "Password of that file, or of the key in it."
    )
    ssl_truststore: str | None = option(
        "database.ssl.truststore",
        None,
        "File with the accepted authorities' certificates.",
        "same; a PEM or PKCS 12 file, not JKS",
    )
    ssl_truststore_password: SecretStr | None = option(
        "database.ssl.truststore.password", None, "Password of that file, if it is a PKCS 12 file."
    )
    connect_timeout_ms: int = option("connect.timeout.ms", 30_000, "How long to wait for a connection.", ge=1000)
    query_timeout_ms: int = option(
        "database.query.timeout.ms",
        600_000,
        "How long a query of the catalogs may take; 0: without end. Reading tables has no limit. MySQL limits `SELECT` "
        "only.",
        ge=0,
    )
    initial_statements: str = option(
        "database.initial.statements",
        "",
        "Statements to run at the beginning of each session, separated by `;` (`;;` is a semicolon). Only for settings "
        "of the session; `sql_mode` and `time_zone` are set afterwards.",
        secret=True,
    )
    server_id: int | None = option(
        "database.server.id",
        None,
        "Number of this client among the server's replicas; made from `topic.prefix` and `state.dir` if not given.",
        "same; it is required",
        ge=1,
        le=(1 << 32) - 1,
    )
    schema_include_list: Patterns = option(
        "database.include.list", (), "Regular expressions of the databases to capture; all if empty."
    )
    schema_exclude_list: Patterns = option(
        "database.exclude.list", (), "Regular expressions of the databases not to capture."
    )
    table_include_list: Patterns = option(
        "table.include.list", (), "Regular expressions of the tables to capture, as `database.table`; all if empty."
    )
    table_exclude_list: Patterns = option(
        "table.exclude.list", (), "Regular expressions of the tables not to capture, as `database.table`."
    )
    table_ignore_builtin: bool = option(
        "table.ignore.builtin", True, "Whether tables of the server's own databases (`mysql`, `sys` …) are left out."
    )
    bigint_unsigned_handling_mode: Literal["long", "precise"] = option(
        "bigint.unsigned.handling.mode",
        "long",
        "How BIGINT UNSIGNED is represented: as a signed 64-bit number, or as a decimal.",
    )
    time_precision_mode: Literal[
        "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"
    ] = option("time.precision.mode", "adaptive_time_microseconds", "How dates and times are represented.")
    enable_time_adjuster: bool = option(
        "enable.time.adjuster",
        True,
        "Whether the years 1 to 69 of dates are taken for 2001 to 2069, 70 to 99 for 1970 to 1999, and the `YEAR` 0 "
        "for 2000.",
    )
    include_query: bool = option(
        "include.query",
        False,
        "Whether events hold the statement that made them; the server must log it (`binlog_rows_query_log_events`, on "
        "MariaDB `binlog_annotate_row_events`).",
    )
    include_schema_changes: bool = option(
        "include.schema.changes", True, "Whether DDL is delivered to the topic `<prefix>`."
    )
    include_schema_comments: bool = option(
        "include.schema.comments",
        False,
        "Whether schema changes hold the comments of tables and columns; MariaDB's always do.",
    )
    gtid_source_includes: Patterns = option(
        "gtid.source.includes",
        (),
        "Regular expressions of the GTIDs' sources whose transactions count, all if empty: MySQL's UUIDs, MariaDB's "
        "`domain-server`.",
    )
    gtid_source_excludes: Patterns = option(
        "gtid.source.excludes", (), "Regular expressions of the GTIDs' sources whose transactions don't count."
    )
    gtid_source_filter_dml_events: bool = option(
        "gtid.source.filter.dml.events",
        True,
        "Whether changes of transactions whose source doesn't count are left out; otherwise the lists only decide "
        "where a query goes on, on another server.",
    )
    gtid_ignore_on_recovery: bool = option(
        "gtid.ignore.on.recovery",
        False,
        "Whether a query that is started again goes on by file and offset in any case. Otherwise it does on the server "
        "that the checkpoint comes from, and goes on by GTIDs on another one.",
    )
    snapshot_locking_mode: Literal[
        "minimal",
        "minimal_percona",
        "minimal_percona_no_table_locks",
        "minimal_at_least_once",
        "extended",
        "none",
    ] = option(
        "snapshot.locking.mode",
        "minimal",
        "How long a snapshot locks the tables: with `minimal` and its kinds for a moment, if there is no read point "
        "without a lock; with `extended` until its end; with `none` not at all.",
        "same, without `custom`",
    )
    inconsistent_schema_handling_mode: Literal["fail", "warn", "skip"] = option(
        "inconsistent.schema.handling.mode",
        "fail",
        "A change of a captured table whose structure is not known, or has another number of columns, or that the log "
        "has only as a statement's text, or whose rows it lacks (`EXCHANGE PARTITION`). `fail`: as `errors.tables` "
        "says. `skip` and `warn`: it is left out, with `warn` with a line of the log.",
        "same; `fail` ends the connector",
    )
    event_deserialization_failure_handling_mode: Literal["fail", "warn", "skip"] = option(
        "event.deserialization.failure.handling.mode",
        "fail",
        "A record of rows that cannot be split into them. `fail`: as `errors.tables` says. `skip` and `warn`: it is "
        "left out, with `warn` with a line of the log; so are the changes of an XA transaction whose rows are in no "
        "log any more, as a gap that consumers see. Other damage to the log is always an error.",
        "same; `fail` ends the connector",
    )
    history: Literal[
        "io.debezium.storage.file.history.FileSchemaHistory",
        "io.debezium.storage.kafka.history.KafkaSchemaHistory",
        "io.debezium.relational.history.MemorySchemaHistory",
    ] = option(
        "schema.history.internal",
        "io.debezium.storage.file.history.FileSchemaHistory",
        "Where the schema history is kept: with `KafkaSchemaHistory` in a Kafka topic, with the others in `state.dir`.",
        "same; its default is Kafka",
    )
    history_topic: str | None = option(
        "schema.history.internal.kafka.topic",
        None,
        "Topic that the schema history is kept in, of one partition; it is made if it isn't there.",
        pattern=r"^[A-Za-z0-9._\-]{1,249}$",
    )
    history_brokers: str | None = option(
        "schema.history.internal.kafka.bootstrap.servers",
        None,
        "Kafka brokers, as `host:port,…`; required for `KafkaSchemaHistory`.",
    )
    history_attempts: int = option(
        "schema.history.internal.kafka.recovery.attempts",
        100,
        "How many times `…recovery.poll.interval.ms` the brokers may take to go on while the topic is read.",
        ge=1,
    )
    history_poll_ms: int = option(
        "schema.history.internal.kafka.recovery.poll.interval.ms",
        100,
        "See `…recovery.attempts`.",
        ge=1,
    )
    history_create_ms: int = option(
        "schema.history.internal.kafka.create.timeout.ms",
        30000,
        "How long the brokers may take to make the topic.",
        ge=1,
    )
    history_consumer: SecretFamily = option(
        "schema.history.internal.consumer.<option>",
        {},
        "An option of the client that reads the topic, by librdkafka's name.",
        "same, with the names of Kafka's Java client",
    )
    history_producer: SecretFamily = option(
        "schema.history.internal.producer.<option>",
        {},
        "An option of the client that writes the topic, by librdkafka's name.",
        "same, with the names of Kafka's Java client",
    )
    history_skip_unparseable: bool = option(
        "schema.history.internal.skip.unparseable.ddl",
        False,
        "Whether DDL that cannot be understood is left out; otherwise it is an error.",
    )
    history_only_captured_tables: bool = option(
        "schema.history.internal.store.only.captured.tables.ddl",
        False,
        "Whether the schema change topic has captured tables only. The schema history holds all.",
        "same, for the topic",
    )
    history_only_captured_databases: bool = option(
        "schema.history.internal.store.only.captured.databases.ddl",
        False,
        "Whether the schema change topic has captured databases only. The schema history holds all.",
        "same, for the topic",
    )
    binlog_heartbeat_ms: int = option(
        "binlog.heartbeat.ms",
        1000,
        "How often the server tells that there is nothing new while it is idle.",
        OWN,
        ge=10,
    )

    @property
    def history_in_kafka(self) -> bool:
        """Whether the schema history is in a topic."""
        return self.history.endswith("KafkaSchemaHistory")

    @property
    def schema_history_brokers(self) -> str | None:
        """The brokers of the topic that holds the schema history; None if it is in ``state.dir``."""
        return self.history_brokers or "" if self.history_in_kafka else None

    @model_validator(mode="after")
    def _check_history(self) -> Self:
        if not self.history_in_kafka:
            return self
        for name, value in (("topic", self.history_topic), ("bootstrap.servers", self.history_brokers)):
            if not value:
                raise ValueError(
                    f"Option 'schema.history.internal.kafka.{name}' is required, since 'schema.history.internal' is "
                    f"'{self.history}'."
                )
        refuse_java_names("schema.history.internal.consumer.", self.history_consumer)
        refuse_java_names("schema.history.internal.producer.", self.history_producer)
        return self

    @model_validator(mode="after")
    def _check_gtid_sources(self) -> Self:
        if self.gtid_source_includes and self.gtid_source_excludes:
            raise ValueError(
                "Options 'gtid.source.includes' and 'gtid.source.excludes' exclude each other: give only one."
            )
        return self

    def topic_parts(self, schema: str, table: str) -> tuple[str, ...]:
        """Return the table's database and name."""
        return schema, table

    @property
    @abstractmethod
    def ssl_mode(self) -> str:
        """Whether and how to use TLS, as MySQL's client names it."""

    @property
    def replica_id(self) -> int:
        """The number of this client among the server's replicas."""
        if self.server_id is not None:
            return self.server_id
        digest = hashlib.sha256(f"{self.topic_prefix} {self.state_dir}".encode()).digest()
        return _SERVER_IDS + int.from_bytes(digest[:4], "big") % _SERVER_IDS

    @property
    def unshared(self) -> dict[str, str]:
        """What no other query may have, by option."""
        own = {} if self.server_id is None else {"database.server.id": str(self.server_id)}
        if self.history_in_kafka:
            own["schema.history.internal.kafka.topic"] = self.history_topic or ""
        return {**super().unshared, **own}

    def session_statements(self) -> list[str]:
        """Return ``database.initial.statements``, one by one."""
        return statements(self.initial_statements)

    @property
    def owner(self) -> str:
        """The name of the source's directory below ``state.dir``, which no other source may share.

        It stays the same when the query moves to another server.
        """
        return f"{self.topic_prefix}-{self.connector}-{self.replica_id}"

    @property
    def includes_comments(self) -> bool:
        """Whether schemas and schema changes include comments; MariaDB's schema changes always do."""
        return self.include_schema_comments or (self.connector == "mariadb" and self.include_schema_changes)

    def captures_database(self, database: str) -> bool:
        """Return whether the filters let a database through."""
        if self.table_ignore_builtin and database in SYSTEM_DATABASES:
            return False
        included = not self.schema_include_list or matches(self.schema_include_list, database)
        return included and not matches(self.schema_exclude_list, database)

    def reports_database(self, database: str) -> bool:
        """Return whether the schema change topic reports a database's tables."""
        if self.history_only_captured_databases:
            return self.captures_database(database)
        return not self.table_ignore_builtin or database not in SYSTEM_DATABASES

    def captures(self, schema: str, table: str) -> bool:
        """Return whether the filters let a table through."""
        if self.table_ignore_builtin and schema in SYSTEM_DATABASES:
            return False
        return super().captures(schema, table)


class MysqlOptions(BinlogOptions):
    """Options of ``connector=mysql``."""

    tls_mode: Literal["disabled", "preferred", "required", "verify_ca", "verify_identity"] = option(
        "database.ssl.mode", "preferred", "Whether and how to use TLS."
    )

    @property
    def ssl_mode(self) -> str:
        """Whether and how to use TLS, as MySQL's client names it."""
        return self.tls_mode


class MariadbOptions(BinlogOptions):
    """Options of ``connector=mariadb``."""

    tls_mode: Literal["disable", "trust", "verify-ca", "verify-full"] = option(
        "database.ssl.mode", "disable", "Whether and how to use TLS; `trust`: without looking at certificates."
    )

    @property
    def ssl_mode(self) -> str:
        """Whether and how to use TLS, as MySQL's client names it."""
        return _MARIADB_TLS[self.tls_mode]
