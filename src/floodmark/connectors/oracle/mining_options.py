"""The options that say what is read of the redo logs, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, model_validator

from floodmark.config.model import OWN, Words, option
from floodmark.connectors.oracle.connection_options import NAME, ConnectionOptions, driver_of, lower
from floodmark.connectors.oracle.mining.dictionary import FILE, DictionaryChoice
from floodmark.connectors.oracle.mining.pushed_expressions import is_pushed_alike

_OTHER_MODE = {
    "in": "Write names, such as 'SHOP\\.ORDERS', or set the mode to 'regex' or 'none'.",
    "regex": "Write alternatives in parentheses, 'SHOP\\.(A|B)', and nothing that begins with '(?'; or set the mode to "
    "'none'.",
}
HYBRID = "hybrid"
Strategy = Annotated[
    Literal["online_catalog", "hybrid", "redo_log_catalog", "dictionary_from_file"], BeforeValidator(lower)
]
_FILTERS_OF_LOGMINER = {
    f"log.mining.{what}.{way}.list" for what in ("username", "clientid") for way in ("include", "exclude")
}
_OF_LOGMINER = {"archive.destination.name", "archive.log.hours", "lob.enabled", "query.fetch.size", "rac.nodes"}
"""Options beside ``log.mining.*`` that only LogMiner's adapter has a use for."""
_BOUNDARY_MODE = "log.mining.transaction.snapshot.boundary.mode"


class MiningOptions(ConnectionOptions):
    """Options of mining."""

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
        pattern=NAME,
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
            for text in sources(expressions):
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
        if self.secondary_url is not None and driver_of(self.secondary_url) != "thin":
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

    @property
    def without_effect(self) -> list[str]:
        """The options that are given and have no effect with the adapter."""
        if self.mines:
            return []
        given = self._given() - ({_BOUNDARY_MODE} if self.replicates else set())
        return sorted(name for name in given if name in _OF_LOGMINER or name.startswith("log.mining."))

    @property
    def dictionary(self) -> DictionaryChoice:
        """Where LogMiner takes names from."""
        return DictionaryChoice(self.strategy, self.dictionary_path or "")


def sources(patterns: Sequence[object]) -> tuple[str, ...]:
    """Return the texts of regular expressions."""
    return tuple(str(getattr(one, "pattern", one)) for one in patterns)
