"""The options of the Oracle connector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import model_validator

from floodmark.config.hosts import Host
from floodmark.config.model import OWN, option
from floodmark.config.table_names import TableNames
from floodmark.connectors.oracle import debezium_options
from floodmark.connectors.oracle.mining.contents_query import BUILT_IN, TRACKED, ContentsFilter, Names
from floodmark.connectors.oracle.mining_options import MiningOptions, sources
from floodmark.connectors.oracle.types.settings import OracleSettings

_PARTS = 3
"""Of a table's name with its database."""
_REQUIRED_WITH_XSTREAM = ("xstream.out.server.name", "xstream.class.path")


class OracleOptions(MiningOptions):
    """Options of ``connector=oracle``."""

    accepted = debezium_options.ACCEPTED
    refused = debezium_options.REFUSED
    similar = debezium_options.SIMILAR

    replicator_source: str | None = option(
        "openlogreplicator.source",
        None,
        "Name of the source in the configuration of the OpenLogReplicator server; required with the adapter `olr`, as "
        "are the next two.",
        pattern=r"^[\x21-\x7e]+$",
    )
    replicator_host: Host | None = option(
        "openlogreplicator.host", None, "Host name or address of the OpenLogReplicator server."
    )
    replicator_port: int | None = option(
        "openlogreplicator.port", None, "Port of the OpenLogReplicator server.", ge=1, le=65535
    )
    outbound_server: str | None = option(
        "xstream.out.server.name",
        None,
        "Name of the XStream outbound server; required with the adapter `xstream`, as is the next one.",
        pattern=r"^[\x21-\x7e]+$",
    )
    xstream_class_path: str | None = option(
        "xstream.class.path",
        None,
        "Jars of Oracle's Instant Client, `ojdbc11.jar` and `xstreams.jar`, separated as in a class path of Java's.",
        OWN,
    )
    xstream_library_path: str | None = option(
        "xstream.library.path",
        None,
        "Folder of Oracle's Instant Client, of the same release as the jars; by default its libraries are looked for "
        "where the system does.",
        OWN,
    )
    xstream_java: str | None = option(
        "xstream.java",
        None,
        "Path of the `java` of a JDK, in which Oracle's interface runs; by default that of `JAVA_HOME`, or of `PATH`.",
        OWN,
    )
    include_schema_changes: bool = option(
        "include.schema.changes", True, "Whether DDL of captured tables is delivered to the topic `<prefix>`."
    )
    include_schema_comments: bool = option(
        "include.schema.comments", False, "Whether schemas and schema changes hold the comments of statements."
    )
    interval_handling_mode: Literal["numeric", "string"] = option(
        "interval.handling.mode", "numeric", "How intervals are represented: in microseconds, or as ISO 8601 text."
    )
    legacy_decimals: bool = option(
        "legacy.decimal.handling.strategy",
        False,
        "Whether whole numbers stay integers in whatever mode `decimal.handling.mode` says.",
    )
    table_ignore_builtin: bool = option(
        "table.ignore.builtin", True, "Whether tables of the server's own schemas (`SYS`, `XDB` …) are left out."
    )
    snapshot_locking_mode: Literal["shared", "none"] = option(
        "snapshot.locking.mode",
        "shared",
        "Whether tables are locked against being altered while a snapshot begins; `shared` lets others write.",
        "same, without `custom`",
    )

    @model_validator(mode="after")
    def _check_replicator(self) -> Self:
        for name, value in (
            ("source", self.replicator_source),
            ("host", self.replicator_host),
            ("port", self.replicator_port),
        ):
            if self.replicates and value is None:
                raise ValueError(
                    f"Option 'openlogreplicator.{name}' is required with 'database.connection.adapter=olr'."
                )
            if not self.replicates and value is not None:
                raise ValueError(
                    f"Option 'openlogreplicator.{name}' has no effect with 'database.connection.adapter={self.adapter}'"
                    ": set that to 'olr', or leave the option out."
                )
        return self

    @model_validator(mode="after")
    def _check_outbound(self) -> Self:
        given = {
            "xstream.out.server.name": self.outbound_server,
            "xstream.class.path": self.xstream_class_path,
            "xstream.library.path": self.xstream_library_path,
            "xstream.java": self.xstream_java,
        }
        for name, value in given.items():
            if self.receives_lcrs and value is None and name in _REQUIRED_WITH_XSTREAM:
                raise ValueError(f"Option '{name}' is required with 'database.connection.adapter=xstream'.")
            if not self.receives_lcrs and value is not None:
                raise ValueError(
                    f"Option '{name}' has no effect with 'database.connection.adapter={self.adapter}': set that to "
                    "'xstream', or leave the option out."
                )
        return self

    @model_validator(mode="after")
    def _check_signal_tables(self) -> Self:
        for name in self.signal_data_collection:
            if len(name.split(".")) == _PARTS and name.split(".")[0].upper() != self.database:
                raise ValueError(
                    f"Option 'signal.data.collection' has the value '{name}', which is not allowed: the query captures "
                    f"the database {self.database}. Write {self.database}{name[name.index('.') :]}, or leave the "
                    "database out."
                )
        return self

    @model_validator(mode="after")
    def _check_read_points(self) -> Self:
        if self.incremental_snapshot_read_points != "exact" and self.mining_read_only:
            raise ValueError(
                "Option 'log.mining.read.only' is 'true', but 'incremental.snapshot.read.points' is 'watermarks', "
                "which writes watermarks to the signal table: set one of them otherwise."
            )
        return self

    @property
    def owner(self) -> str:
        """The name of the source's directory below ``state.dir``, which no other source may share."""
        return f"{self.topic_prefix}-oracle-{self.database}"

    @property
    def whole_transactions(self) -> bool:
        """Whether a transaction can only be decoded as a whole, however large it is."""
        return (self.lob_enabled and self.mines) or self.provide_transaction_metadata

    def topic_parts(self, schema: str, table: str) -> tuple[str, ...]:
        """Return the table's schema, or the database, and its name."""
        return (schema if ".Schema" in self.topic_naming_strategy else self.database), table

    @property
    def settings(self) -> OracleSettings:
        """What codecs depend on."""
        return OracleSettings(
            self.decimal_handling_mode,
            self.time_precision_mode,
            self.binary_handling_mode,
            self.unavailable_value_placeholder,
            self.interval_handling_mode,
            self.legacy_decimals,
        )

    @property
    def table_names(self) -> TableNames:
        """How signals and ``snapshot.include.collection.list`` may write names: Debezium's begin with the database."""
        return TableNames(self.database)

    @property
    def signal_tables(self) -> Sequence[str]:
        """The tables whose inserts are signals, as ``schema.table``; the option may name the database, too."""
        return tuple(_without_database(name) for name in super().signal_tables)

    def captures(self, schema: str, table: str) -> bool:
        """Return whether the filters let a table through."""
        if self.table_ignore_builtin and schema in BUILT_IN:
            return False
        if (schema, table) == (str(self.user).upper(), self.flush_table.upper()):
            return False  # What Floodmark writes there itself says nothing.
        return super().captures(schema, table)

    def wanted_rows(self) -> ContentsFilter:
        """Return what is read of the logs."""
        return ContentsFilter(
            pluggable=self.pluggable.upper(),
            large_objects=self.lob_enabled,
            # Changes of captured tables that were dropped since have only a number for a name, and must be told of.
            by_object=True,
            mode=self.filter_mode,
            schemas=Names(sources(self.schema_include_list), sources(self.schema_exclude_list)),
            tables=Names(sources(self.table_include_list), sources(self.table_exclude_list)),
            users=Names(self.usernames_include, self.usernames_exclude),
            clients=Names(self.clients_include, self.clients_exclude),
            signals=tuple(self.signal_tables),
            tracked=TRACKED,
        )


def _without_database(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[-2:]) if len(parts) == _PARTS else name
