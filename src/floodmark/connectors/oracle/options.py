"""The options of the Oracle connector."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, SecretStr, model_validator

from floodmark.config.common import CommonOptions
from floodmark.config.hosts import Host
from floodmark.config.model import OWN, Words, option, statements
from floodmark.config.table_names import TableNames
from floodmark.connectors.oracle import debezium_options
from floodmark.connectors.oracle.mining.contents_query import BUILT_IN, TRACKED, ContentsFilter, Names
from floodmark.connectors.oracle.mining.dictionary import FILE, DictionaryChoice
from floodmark.connectors.oracle.mining.pushed_expressions import is_pushed_alike
from floodmark.connectors.oracle.types.settings import OracleSettings

_URL = re.compile(r"jdbc:oracle:(?P<driver>thin|oci):@(?://)?(?P<address>.+)", re.IGNORECASE | re.DOTALL)
"""A JDBC URL of Oracle's drivers; what follows is what python-oracledb calls a DSN."""
_HAS_PORT = re.compile(r":\d+$")
_NAME = r"^[A-Za-z][A-Za-z0-9_$#]{0,127}$"
"""A name that SQL takes without quotes."""
_PARTS = 3
"""Of a table's name with its database."""

_OTHER_MODE = {
    "in": "Write names, such as 'SHOP\\.ORDERS', or set the mode to 'regex' or 'none'.",
    "regex": "Write alternatives in parentheses, 'SHOP\\.(A|B)', and nothing that begins with '(?'; or set the mode to "
    "'none'.",
}


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


HYBRID = "hybrid"
Strategy = Annotated[
    Literal["online_catalog", "hybrid", "redo_log_catalog", "dictionary_from_file"], BeforeValidator(_lower)
]
_FILTERS_OF_LOGMINER = {
    f"log.mining.{what}.{way}.list" for what in ("username", "clientid") for way in ("include", "exclude")
}
_OF_LOGMINER = {"archive.destination.name", "archive.log.hours", "lob.enabled", "query.fetch.size", "rac.nodes"}
"""Options beside ``log.mining.*`` that only LogMiner's adapter has a use for."""
_BOUNDARY_MODE = "log.mining.transaction.snapshot.boundary.mode"
_REQUIRED_WITH_XSTREAM = ("xstream.out.server.name", "xstream.class.path")
Adapter = Annotated[Literal["logminer", "logminer_unbuffered", "olr", "xstream"], BeforeValidator(_lower)]
"""Debezium's values ignore case, and its documentation writes ``LogMiner``."""


class OracleOptions(CommonOptions):
    """Options of ``connector=oracle``."""

    accepted = debezium_options.ACCEPTED
    refused = debezium_options.REFUSED
    similar = debezium_options.SIMILAR

    hostname: Host | None = option(
        "database.hostname", None, "Host name or address of the server; required unless `database.url` is given."
    )
    port: int = option("database.port", 1528, "Port of the listener; Oracle's own default is 1521.", ge=1, le=65535)
    user: str = option("database.user", ..., "Account to log in as; with containers a common one, such as C##CDC.")
    password: SecretStr | None = option("database.password", None, "The account's password.")
    dbname: str = option(
        "database.dbname", ..., "Service name of the database; with containers that of the container database."
    )
    url: str | None = option(
        "database.url",
        None,
        "Address instead of `database.hostname` and `database.port`: `jdbc:oracle:thin:@…`, with what Oracle's drivers "
        "take as a connect string behind the `@`; with the adapter `xstream` also `jdbc:oracle:oci:@…`.",
        secret=True,
    )
    pluggable: str = option(
        "database.pdb.name", "", "Name of the pluggable database; to be left out if there are no containers."
    )
    tls: bool = option(
        "database.ssl", False, "Whether the connection is encrypted with TLS; a `database.url` says it itself.", OWN
    )
    tls_wallet: str | None = option(
        "database.ssl.wallet", None, "Directory with `ewallet.pem`: the accepted authorities and the client's key.", OWN
    )
    tls_wallet_password: SecretStr | None = option(
        "database.ssl.wallet.password", None, "Password of the key in it.", OWN
    )
    connect_timeout_ms: int = option(
        "connect.timeout.ms",
        30_000,
        "How long to wait for a connection.",
        "connect.timeout.ms (MySQL)",
        ge=1000,
    )
    query_timeout_ms: int = option(
        "database.query.timeout.ms", 600_000, "How long the server may take for an answer; 0: without end.", ge=0
    )
    initial_statements: str = option(
        "database.initial.statements",
        "",
        "Statements to run at the beginning of each session, separated by `;` (`;;` is a semicolon).",
        "database.initial.statements (PostgreSQL)",
        secret=True,
    )
    adapter: Adapter = option(
        "database.connection.adapter",
        "logminer",
        "How the log is read: with LogMiner, which shows changes before it is known whether they are committed, or "
        "(`logminer_unbuffered`) only committed transactions, which it then puts together in the server's memory; or "
        "from an OpenLogReplicator server (`olr`), or from an XStream outbound server of the database (`xstream`).",
        "same, with more values",
    )
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
    strategy: Strategy = option(
        "log.mining.strategy",
        "online_catalog",
        "Where the names of tables and columns come from: from the database's dictionary as it is now, or (`hybrid`), "
        "for what was logged before a table was altered or dropped, from the structure that it had then; or from "
        "dictionaries in the redo logs (`redo_log_catalog`), or one in a file on the server (`dictionary_from_file`).",
    )
    dictionary_path: str | None = option(
        "log.mining.path.dictionary",
        None,
        "The dictionary's file, as the server names it; required with `log.mining.strategy=dictionary_from_file`.",
    )
    filter_mode: Literal["none", "in", "regex"] = option(
        "log.mining.query.filter.mode",
        "none",
        "Whether the query of LogMiner's view has the filters of schemas, tables, accounts and clients, too: not, as "
        "lists of names, or as regular expressions of Oracle's. What it returns is filtered again in any case. Options "
        "of which Oracle would read an expression in another way are refused.",
    )
    capture_mode: Literal["primary", "physical_standby"] = option(
        "capture.mode",
        "primary",
        "Where the log is mined: in the database whose tables are captured, or in a physical standby (`secondary.*`).",
    )
    secondary_hostname: Host | None = option(
        "secondary.hostname", None, "Host name or address of the standby; with the same account as the primary."
    )
    secondary_port: int | None = option(
        "secondary.port",
        None,
        "Port of its listener; `database.port` if left out.",
        "same; its default is 1528",
        ge=1,
        le=65535,
    )
    secondary_url: str | None = option(
        "secondary.url", None, "Its address instead of these, as in `database.url`.", secret=True
    )
    secondary_dbname: str | None = option("secondary.dbname", None, "Its service name; `database.dbname` if left out.")
    archived_only: bool = option(
        "log.mining.archive.log.only.mode",
        False,
        "Whether only archived logs are read; changes then come when their log is archived.",
    )
    archive_hours: int = option("archive.log.hours", 0, "Only archived logs that are no older are read; 0: all.", ge=0)
    destinations: Words = option(
        "archive.destination.name",
        (),
        "Archive destinations whose copies are read, the first one that has a copy first. By default the first that is "
        "local and valid.",
    )
    log_count_min: int = option(
        "log.mining.log.count.min",
        2,
        "How many logs of each redo thread are read at once; 0: all there are.",
        ge=0,
    )
    fetch_size: int = option(
        "query.fetch.size", 10_000, "How many rows of LogMiner's view are fetched at once.", ge=1, le=1_000_000
    )
    poll_interval_ms: int = option(
        "log.mining.poll.interval.ms",
        1000,
        "How long to wait until LogMiner is started again once all that there is has been read.",
        OWN,
        ge=10,
    )
    session_max_ms: int = option(
        "log.mining.session.max.ms",
        0,
        "How long a connection mines before another one is opened, which returns the server's memory; 0: without end.",
        "same; there it is for the session of LogMiner alone",
        ge=0,
    )
    log_wait_ms: int = option(
        "log.mining.log.wait.ms",
        300_000,
        "How long a log may be in none of the places where it is looked for, as while it is archived, before that is "
        "an error.",
        OWN,
        ge=0,
    )
    boundary_mode: Literal["transaction_view_only", "skip"] = option(
        _BOUNDARY_MODE,
        "transaction_view_only",
        "What happens to transactions that are open when a new query begins: their changes are read from where the "
        "oldest one began (`V$TRANSACTION`), or those before the beginning are lost (`skip`).",
        "internal.log.mining.transaction.snapshot.boundary.mode; its default is skip",
    )
    flush_table: str = option(
        "log.mining.flush.table.name",
        "LOG_MINING_FLUSH",
        "Table that is written to so that the server writes its log; it is created if it isn't there.",
        pattern=_NAME,
    )
    rac_nodes: Words = option(
        "rac.nodes",
        (),
        "Hosts of a cluster's instances, each with `:port` if it isn't `database.port`: all of them must write their "
        "log, or changes wait for those that have nothing to write.",
    )
    mining_read_only: bool = option(
        "log.mining.read.only", False, "Whether nothing is written to the database; changes may then come later."
    )
    transaction_retention_ms: int = option(
        "log.mining.transaction.retention.ms",
        0,
        "How long a transaction may stay open, in full minutes, before its changes are left out, which an event tells "
        "of as a gap; until then the logs are needed from where it began. 0: for ever.",
        "an event tells of what is left out",
        ge=0,
    )
    usernames_include: Words = option(
        "log.mining.username.include.list", (), "Accounts whose changes are captured; all if empty."
    )
    usernames_exclude: Words = option(
        "log.mining.username.exclude.list", (), "Accounts whose changes are not captured."
    )
    clients_include: Words = option(
        "log.mining.clientid.include.list",
        (),
        "Client identifiers (`CLIENT_ID`) whose changes are captured; all if empty. Changes without an identifier are "
        "captured, too, unless `log.mining.query.filter.mode` is `in` or `regex`.",
    )
    clients_exclude: Words = option(
        "log.mining.clientid.exclude.list", (), "Client identifiers whose changes are not captured."
    )
    include_redo_sql: bool = option(
        "log.mining.include.redo.sql", False, "Whether the source block has LogMiner's statement."
    )
    lob_enabled: bool = option(
        "lob.enabled",
        False,
        "Whether values of large objects, XML and long strings are captured. Each transaction is then decoded as a "
        "whole, in one task.",
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
    def _check_address(self) -> Self:
        if self.url is None and self.hostname is None:
            raise ValueError("Option 'database.hostname' is required, unless 'database.url' is given.")
        is_oci = self.url is not None and _driver(self.url) == "oci"
        if self.url is not None and not (_driver(self.url) == "thin" or (is_oci and self.receives_lcrs)):
            raise ValueError(
                "Option 'database.url' has a value that is not allowed: it must begin with 'jdbc:oracle:thin:@'; "
                "Oracle's other drivers need libraries that Floodmark doesn't use."
            )
        return self

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
    def _check_filters_of_logminer(self) -> Self:
        for name in sorted(self._given() & _FILTERS_OF_LOGMINER) if not self.mines else ():
            raise ValueError(
                f"Option '{name}' has no effect with 'database.connection.adapter={self.adapter}', so changes would be "
                "delivered that it leaves out. Filter by user in the server's configuration, and leave the option out."
            )
        return self

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for what, include, exclude in (
            ("username", self.usernames_include, self.usernames_exclude),
            ("clientid", self.clients_include, self.clients_exclude),
        ):
            if include and exclude:
                raise ValueError(
                    f"Options 'log.mining.{what}.include.list' and 'log.mining.{what}.exclude.list' exclude each "
                    "other: give only one."
                )
        if self.pluggable and not re.fullmatch(_NAME, self.pluggable):
            raise ValueError(
                f"Option 'database.pdb.name' has the value '{self.pluggable}', which is not allowed: it must be a name "
                "of letters, digits, '_', '$' and '#'."
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
    def _check_adapter(self) -> Self:
        if self.adapter != "logminer_unbuffered":
            return self
        without = {
            "log.mining.transaction.retention.ms": self.transaction_retention_ms != 0,
            "log.mining.transaction.snapshot.boundary.mode": self.boundary_mode == "skip",
        }
        for name in (one for one, is_set in without.items() if is_set):
            raise ValueError(
                f"Option '{name}' has no meaning with 'database.connection.adapter={self.adapter}', where LogMiner "
                "itself keeps open transactions. Leave it out."
            )
        return self

    @model_validator(mode="after")
    def _check_pushed_filters(self) -> Self:
        pushed = {
            "schema.include.list": self.schema_include_list,
            "schema.exclude.list": self.schema_exclude_list,
            "table.include.list": self.table_include_list,
            "table.exclude.list": self.table_exclude_list,
        }
        for name, expressions in pushed.items():
            for text in _sources(expressions):
                if is_pushed_alike(self.filter_mode, text):
                    continue
                what = "a name" if self.filter_mode == "in" else "an expression that Oracle reads alike"
                raise ValueError(
                    f"Option '{name}' has the value '{text}', which is not {what}, so with "
                    f"'log.mining.query.filter.mode={self.filter_mode}' the query would leave out changes that are "
                    f"wanted. {_OTHER_MODE[self.filter_mode]}"
                )
        return self

    @model_validator(mode="after")
    def _check_standby(self) -> Self:
        named = sorted(name for name in self._given() if name.startswith("secondary."))
        if not self.mines_standby:
            if named:
                raise ValueError(
                    f"Option '{named[0]}' has no effect with 'capture.mode=primary': set that to 'physical_standby', "
                    "or leave the option out."
                )
            return self
        where = "'capture.mode=physical_standby'"
        if self.secondary_hostname is None and self.secondary_url is None:
            raise ValueError(f"Option 'secondary.hostname' or 'secondary.url' is required with {where}.")
        if self.secondary_url is not None and _driver(self.secondary_url) != "thin":
            raise ValueError(
                "Option 'secondary.url' has a value that is not allowed: it must begin with 'jdbc:oracle:thin:@'."
            )
        if self.adapter != "logminer":
            raise ValueError(
                f"Option 'database.connection.adapter' is '{self.adapter}', but {where} needs 'logminer': a standby "
                "doesn't show which transactions are open."
            )
        if self.strategy != FILE:
            raise ValueError(
                f"Option 'log.mining.strategy' is '{self.strategy}', but {where} needs '{FILE}': LogMiner has no "
                "other dictionary there."
            )
        if not self.archived_only:
            raise ValueError(
                f"Option 'log.mining.archive.log.only.mode' must be 'true' with {where}: what is being written is only "
                "in the primary's own logs."
            )
        return self

    @model_validator(mode="after")
    def _check_dictionary(self) -> Self:
        if (self.dictionary_path is None) == (self.strategy == FILE):
            raise ValueError(
                f"Option 'log.mining.path.dictionary' is required with 'log.mining.strategy={FILE}', and has no effect "
                f"otherwise; it is '{self.strategy}'."
            )
        return self

    @model_validator(mode="after")
    def _check_statements_shown(self) -> Self:
        if self.lob_enabled and self.strategy == HYBRID:
            raise ValueError(
                "Options 'lob.enabled' and 'log.mining.strategy=hybrid' exclude each other: LogMiner doesn't show "
                "large objects of tables as they were. Set log.mining.strategy to online_catalog."
            )
        if self.lob_enabled and self.include_redo_sql:
            raise ValueError(
                "Options 'lob.enabled' and 'log.mining.include.redo.sql' exclude each other: an event with large "
                "objects has no statement of its own. Set one of them to false."
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

    def _given(self) -> set[str]:
        """Return the names of the options that aren't left out."""
        return {type(self).model_fields[name].alias or name for name in self.model_fields_set}

    @property
    def replicates(self) -> bool:
        """Whether the log comes from an OpenLogReplicator server."""
        return self.adapter == "olr"

    @property
    def receives_lcrs(self) -> bool:
        """Whether the log comes from an XStream outbound server."""
        return self.adapter == "xstream"

    @property
    def mines(self) -> bool:
        """Whether the log comes from LogMiner."""
        return not (self.replicates or self.receives_lcrs)

    @property
    def without_effect(self) -> list[str]:
        """The options that are given and have no effect with the adapter."""
        if self.mines:
            return []
        given = self._given() - ({_BOUNDARY_MODE} if self.replicates else set())
        return sorted(name for name in given if name in _OF_LOGMINER or name.startswith("log.mining."))

    @property
    def address(self) -> str:
        """What python-oracledb connects to, without account and password."""
        return self._address_of(self.url, self.hostname, self.port, self.dbname)

    @property
    def mines_standby(self) -> bool:
        """Whether the log is mined in a standby."""
        return self.capture_mode == "physical_standby"

    @property
    def mining_address(self) -> str:
        """The address of the database that mines the log."""
        if not self.mines_standby:
            return self.address
        port, dbname = self.secondary_port or self.port, self.secondary_dbname or self.dbname
        return self._address_of(self.secondary_url, self.secondary_hostname, port, dbname)

    def _address_of(self, url: str | None, host: str | None, port: int, dbname: str) -> str:
        found = None if url is None else _URL.fullmatch(url)
        if found is not None:
            return found["address"]
        protocol = "tcps://" if self.tls else ""
        shown = f"[{host}]" if ":" in str(host) else host
        return f"{protocol}{shown}:{port}/{dbname}"

    def node_addresses(self) -> list[str]:
        """Return what python-oracledb connects to for each of ``rac.nodes``."""
        protocol = "tcps://" if self.tls else ""
        return [
            f"{protocol}{node if _HAS_PORT.search(node) else f'{node}:{self.port}'}/{self.dbname}"
            for node in self.rac_nodes
        ]

    @property
    def place(self) -> str:
        """The address as errors show it: no part that may hold a password."""
        return "database.url" if self.url is not None else self.address

    @property
    def database(self) -> str:
        """What events name as the database: the pluggable one, if there is one."""
        return (self.pluggable or self.dbname).upper()

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
    def dictionary(self) -> DictionaryChoice:
        """Where LogMiner takes names from."""
        return DictionaryChoice(self.strategy, self.dictionary_path or "")

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

    def session_statements(self) -> list[str]:
        """Return ``database.initial.statements``, one by one."""
        return statements(self.initial_statements)

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
            schemas=Names(_sources(self.schema_include_list), _sources(self.schema_exclude_list)),
            tables=Names(_sources(self.table_include_list), _sources(self.table_exclude_list)),
            users=Names(self.usernames_include, self.usernames_exclude),
            clients=Names(self.clients_include, self.clients_exclude),
            signals=tuple(self.signal_tables),
            tracked=TRACKED,
        )


def _without_database(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[-2:]) if len(parts) == _PARTS else name


def _sources(patterns: Sequence[object]) -> tuple[str, ...]:
    return tuple(str(getattr(one, "pattern", one)) for one in patterns)


def _driver(url: str) -> str:
    """Return the driver that a URL is for, ``thin`` or ``oci``; empty if it is for none of Oracle's."""
    found = _URL.fullmatch(url)
    return "" if found is None else found["driver"].lower()
