"""The options of the replication stream and of the sessions beside it."""

from __future__ import annotations

import difflib
from typing import Literal, Self

from pydantic import model_validator

from floodmark.config.common import CommonOptions
from floodmark.config.model import Patterns, option, statements

STREAM_PARAMETERS = {
    "binary": ("false", "off"),
    "messages": ("true", "on"),
    "origin": ("any", "none"),
    "proto_version": ("1",),
    "streaming": ("false", "off"),
    "two_phase": ("false", "off"),
}
"""The parameters of pgoutput, each with the values that a stream can be read with."""

DRIVER_HEARTBEAT_MS = 600_000


class ReplicationOptions(CommonOptions):
    """Options of the replication stream and of the sessions beside it."""

    message_prefix_include_list: Patterns = option(
        "message.prefix.include.list",
        (),
        "Regular expressions of the prefixes of logical decoding messages to deliver; all if empty.",
    )
    message_prefix_exclude_list: Patterns = option(
        "message.prefix.exclude.list",
        (),
        "Regular expressions of the prefixes of logical decoding messages not to deliver.",
    )
    slot_stream_params: str = option(
        "slot.stream.params",
        "",
        "Parameters for pgoutput, as `name=value;…`. Only `origin=none` (PostgreSQL 16 and later) changes anything: "
        "changes that another server replicated to this one are left out.",
    )
    lsn_flush_mode: Literal["connector", "manual", "connector_and_driver"] = option(
        "lsn.flush.mode",
        "connector",
        "Who tells the server what it may discard. `connector`: Floodmark, what finished micro-batches delivered. "
        "`manual`: the user. `connector_and_driver`: as `connector`, with a heartbeat every ten minutes if "
        "`heartbeat.interval.ms` is 0.",
    )
    flush_lsn_source: bool | None = option(
        "flush.lsn.source", None, "Older form of `lsn.flush.mode`, which comes first: `false` is `manual`."
    )
    offset_mismatch_strategy: Literal["no_validation", "trust_offset", "trust_slot", "trust_greater_lsn"] = option(
        "offset.mismatch.strategy",
        "no_validation",
        "When the slot is beyond the checkpoint, or the publication was altered since: `trust_slot` and "
        "`trust_greater_lsn` go on, and record a gap; otherwise the query ends with an error, since changes were lost "
        "or may have been.",
        "same; its `no_validation` goes on without a warning",
    )
    xmin_fetch_interval_ms: int = option(
        "xmin.fetch.interval.ms",
        0,
        "How often to ask for the slot's `catalog_xmin`, for `source.xmin`; 0: never, it is null.",
        ge=0,
    )
    initial_statements: str = option(
        "database.initial.statements",
        "",
        "Statements to run at the beginning of each session, except the replication stream's, separated by `;` (`;;` "
        "is a semicolon). Only for settings of the session.",
        secret=True,
    )
    query_timeout_ms: int = option(
        "database.query.timeout.ms",
        600_000,
        "How long a query of the catalogs may take; 0: without end. Reading tables has no limit.",
        ge=0,
    )

    @model_validator(mode="after")
    def _check_prefixes(self) -> Self:
        if self.message_prefix_include_list and self.message_prefix_exclude_list:
            raise ValueError(
                "Options 'message.prefix.include.list' and 'message.prefix.exclude.list' exclude each other: "
                "give only one."
            )
        return self

    @model_validator(mode="after")
    def _check_stream_params(self) -> Self:
        for item in filter(None, self.slot_stream_params.split(";")):
            name, equals, value = item.partition("=")
            problem = f"Option 'slot.stream.params' has '{item}', which is not allowed:"
            if not equals or not name or not value or "=" in value:
                raise ValueError(f"{problem} it must be name=value, several separated by ';'.")
            if name not in STREAM_PARAMETERS:
                close = difflib.get_close_matches(name.lower(), STREAM_PARAMETERS, n=1)
                hint = f" Did you mean '{close[0]}'?" if close else ""
                raise ValueError(f"{problem} the name must be one of {', '.join(STREAM_PARAMETERS)}.{hint}")
            if value not in STREAM_PARAMETERS[name]:
                allowed = ", ".join(STREAM_PARAMETERS[name])
                raise ValueError(f"{problem} the value must be one of {allowed}.")
        return self

    def stream_params(self) -> dict[str, str]:
        """Return ``slot.stream.params`` by name."""
        return dict(item.split("=") for item in self.slot_stream_params.split(";") if item)

    @property
    def flushes(self) -> bool:
        """Whether delivered positions are confirmed to the server, so that it may discard the log before them."""
        if "lsn_flush_mode" in self.model_fields_set:
            return self.lsn_flush_mode != "manual"
        return self.flush_lsn_source is not False

    @property
    def heartbeat_ms(self) -> int:
        """The interval of heartbeats; 0 for none."""
        forced = self.lsn_flush_mode == "connector_and_driver" and not self.provide_transaction_metadata
        return self.heartbeat_interval_ms or (DRIVER_HEARTBEAT_MS if forced else 0)

    def session_statements(self) -> list[str]:
        """Return ``database.initial.statements``, one by one."""
        return statements(self.initial_statements)
