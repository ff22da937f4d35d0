"""Options of the sink ``jdbc``. Where Debezium's JDBC sink connector has an option, it has that name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import SecretStr

from floodmark.config.debezium import Foreign
from floodmark.config.model import OWN, Options, option
from floodmark.sinks.relational.names import NameFormat
from floodmark.sinks.relational.url import UrlOption

_ONE = "one connection writes a micro-batch, in one transaction"
_EQUAL = "the targets equal the source's tables"


class JdbcOptions(Options):
    """How tables of a relational database are kept."""

    accepted: ClassVar[Mapping[str, Foreign]] = {
        "batch.size": Foreign("a micro-batch is one transaction"),
        "connection.pool.<option>": Foreign(_ONE),
        "connection.provider": Foreign(_ONE),
        "connection.restart.on.errors": Foreign("a lost connection is opened again"),
        "database.time_zone": Foreign("times are written in UTC", ("UTC",)),
        "use.time.zone": Foreign("times are written in UTC", ("UTC",)),
        "delete.enabled": Foreign(_EQUAL, ("true",)),
        "insert.mode": Foreign(_EQUAL, ("upsert",)),
        "primary.key.mode": Foreign("the key is the source table's", ("record_key",)),
        "quote.identifiers": Foreign("names are always quoted", ("true",)),
        "truncate.enabled": Foreign(_EQUAL, ("true",)),
        "use.reduction.buffer": Foreign("changes of a key are always reduced to the last one"),
    }
    refused: ClassVar[Mapping[str, str]] = {
        "collection.naming.strategy": "it names a Java class; use collection.name.format",
        "connection.user": "its name is connection.username",
        "column.naming.strategy": "it names a Java class; columns have the source's names",
        "dialect.postgres.postgis.schema": "geometries are written as the source's typed rows have them",
        "field.include.list": "columns are chosen at the source, with column.include.list",
        "field.exclude.list": "columns are chosen at the source, with column.exclude.list",
        "primary.key.fields": "the key is the source table's; another one is chosen with message.key.columns there",
        "table.name.format": "its name is collection.name.format by now",
        "table.naming.strategy": "it names a Java class; use collection.name.format",
    }
    similar: ClassVar[Mapping[str, str]] = {}

    connection_url: UrlOption = option(
        "connection.url",
        ...,
        "The target database: `jdbc:postgresql://<host>:<port>/<database>`, or `jdbc:mysql://…` or `jdbc:mariadb://…`. "
        "Parameters may follow after a `?`: see docs/jdbc.md. It must hold no login.",
    )
    connection_username: str | None = option("connection.username", None, "The user to log in as.")
    connection_password: SecretStr | None = option("connection.password", None, "The user's password.")
    collection_name_format: NameFormat = option(
        "collection.name.format",
        "${source.schema}_${source.table}",
        "The names of the targets. `${source.schema}` and `${source.table}` are the names of the source's table, "
        "`${source.db}` is that of its database, and `${topic}` is `<topic.prefix>_<schema>_<table>`.",
    )
    schema_evolution: Literal["basic", "none"] = option(
        "schema.evolution",
        "basic",
        "`basic`: targets are made, get new columns, and columns of numbers get wider. `none`: they must exist and "
        "have the source's columns; one that hasn't is set aside.",
    )
    new_columns: Literal["read", "leave_null", "fail"] = option(
        "new.columns",
        "read",
        "When a table of the source gets a column, the log tells nothing of the values that its rows have there. "
        "`read`: the table is read again by an incremental snapshot while the stream goes on; until then its earlier "
        "rows have null. `leave_null`: they keep null. `fail`: the query ends before it writes the column.",
        OWN,
    )
    missing_tables: Literal["fail", "read"] = option(
        "missing.tables",
        "fail",
        "When a target that the query has made is gone: `fail` ends the query. `read` makes it again, and the table is "
        "read again by an incremental snapshot while the stream goes on, or, without a key, by a blocking one.",
        OWN,
    )
    existing_tables: Literal["fail", "empty"] = option(
        "existing.tables",
        "fail",
        "When a target has rows that another query, or somebody else, wrote: `fail` ends the query, since rows that "
        "were deleted between the two would stay. `empty` removes them with the first micro-batch that has rows of "
        "the table.",
        OWN,
    )
    stage_bytes: int = option(
        "stage.bytes",
        1 << 20,
        "From so many bytes on, what a task has of a table goes straight to the target, into a staging table; less "
        "goes through the driver, which is faster for small micro-batches.",
        OWN,
        ge=0,
        le=1 << 28,
    )
    retries: int = option(
        "flush.max.retries",
        5,
        "How often a micro-batch is written again after a deadlock, a lost connection or another error that may pass.",
        ge=0,
        le=1000,
    )
    retry_delay_ms: int = option(
        "flush.retry.delay.ms",
        1000,
        "How long to wait before that, in milliseconds; it doubles each time, up to a minute.",
        ge=1,
        le=600_000,
    )
