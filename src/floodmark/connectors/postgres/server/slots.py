"""Creates, checks and drops the replication slot."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from floodmark.capture.gaps import AcceptedGaps, Gap
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import format_lsn, parse_lsn, position
from floodmark.connectors.postgres.server.catalog import Conn, literal
from floodmark.connectors.postgres.server.connection import run, server_version
from floodmark.errors import LogGoneError, SlotBusyError, SourceStateError
from floodmark.logger import get_logger

log = get_logger(__name__)

POLL_S = 0.25
TRUSTING = ("trust_slot", "trust_greater_lsn")
WAYS_OUT = (
    "Ways out: set snapshot.mode=when_needed (a new snapshot follows), or start with a new checkpoint and "
    "snapshot.mode=initial (a new snapshot) or no_data (accept the gap)."
)

INVALIDATIONS = {
    "": "max_slot_wal_keep_size, or a crash",
    "wal_removed": "wal_removed: max_slot_wal_keep_size",
    "idle_timeout": "idle_timeout: idle_replication_slot_timeout",
    "wal_level_insufficient": "wal_level_insufficient: wal_level of the primary",
}

END_OF_LOG = """
    SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END::text
"""


@dataclass(frozen=True)
class Slot:
    """A replication slot as the server shows it.

    Attributes:
        two_phase: whether prepared transactions are sent before they are committed.
        invalidation: why the server has invalidated it; empty if it hasn't, or gives no reason.
    """

    name: str
    plugin: str
    database: str
    active_pid: int | None
    confirmed: int
    wal_status: str | None
    restart: int | None
    two_phase: bool = False
    invalidation: str = ""

    @property
    def invalidated(self) -> bool:
        """Whether the server has removed log that the slot needs."""
        return self.wal_status == "lost" or self.restart is None or bool(self.invalidation)


def find_slot(conn: Conn, name: str) -> Slot | None:
    """Return the slot, or None if there is none of that name."""
    rows = run(
        conn,
        "SELECT slot_name, plugin, database, active_pid, confirmed_flush_lsn::text, wal_status, restart_lsn::text, "
        # Columns of later versions: two_phase of 14, conflicting of 16, invalidation_reason of 17.
        "coalesce((to_jsonb(s) ->> 'two_phase')::boolean, false), coalesce(to_jsonb(s) ->> 'invalidation_reason', "
        "CASE WHEN (to_jsonb(s) ->> 'conflicting')::boolean THEN 'conflict with recovery' END, '') "
        f"FROM pg_replication_slots s WHERE slot_name = {literal(name)}",
        "the replication slots",
    )
    if not rows:
        return None
    slot, plugin, database, pid, confirmed, status, restart, two_phase, invalidation = rows[0]
    return Slot(
        slot,
        plugin or "",
        database or "",
        pid,
        parse_lsn(confirmed) if confirmed else 0,
        status,
        parse_lsn(restart) if restart else None,
        two_phase,
        invalidation,
    )


def end_of_log(conn: Conn) -> int:
    """Return the LSN of the end of the server's log."""
    return parse_lsn(str(run(conn, END_OF_LOG, "the end of the log")[0][0]))


def check_slot(slot: Slot, options: PostgresOptions) -> None:
    """Verify that this source can read the slot.

    Raises:
        SourceStateError: the slot belongs to another plug-in or database, or is a two-phase slot.
        LogGoneError: the server has invalidated it.
    """
    if slot.plugin != "pgoutput":
        raise SourceStateError(
            f"The replication slot '{slot.name}' uses the plug-in '{slot.plugin or 'none (a physical slot)'}', "
            "not pgoutput.",
            "Set another slot.name.",
        )
    if slot.database != options.dbname:
        raise SourceStateError(
            f"The replication slot '{slot.name}' belongs to the database '{slot.database}', not '{options.dbname}'.",
            "Set another slot.name.",
        )
    if slot.two_phase:
        raise SourceStateError(
            f"The replication slot '{slot.name}' is a two-phase slot: it may have passed prepared transactions before "
            "they are committed.",
            "Set another slot.name.",
        )
    if slot.invalidated:
        raise LogGoneError(
            f"The replication slot '{slot.name}' was invalidated: the server has removed log that it still needed "
            f"({INVALIDATIONS.get(slot.invalidation, slot.invalidation)}).",
            f"Drop the slot (SELECT pg_drop_replication_slot('{slot.name}')). {WAYS_OUT}",
        )


def check_position(slot: Slot | None, options: PostgresOptions, lsn: int, gaps: AcceptedGaps | None = None) -> None:
    """Verify that the log from ``lsn`` on can still be read, unless ``offset.mismatch.strategy`` trusts the slot.

    A slot that was recreated while the log went on begins beyond ``lsn``; if it doesn't, nothing is missing.

    Args:
        slot: as the server shows it; None if there is none.
        options: the source's options.
        lsn: the log has been received up to here.
        gaps: collects the changes that are left out.

    Raises:
        LogGoneError: the slot is gone, or has moved beyond the checkpoint.
    """
    name = options.slot_name
    if slot is None:
        raise LogGoneError(
            f"The replication slot '{name}', which the checkpoint needs, does not exist any more: the changes since "
            f"{format_lsn(lsn)} are lost.",
            WAYS_OUT,
        )
    if slot.confirmed > lsn and options.offset_mismatch_strategy in TRUSTING:
        log.warning(
            "slot_is_beyond_checkpoint",
            slot=name,
            at=format_lsn(slot.confirmed),
            checkpoint=format_lsn(lsn),
            strategy=options.offset_mismatch_strategy,
            next="the changes between are left out",
        )
        if gaps is not None:
            reason = f"The replication slot '{name}' was at {format_lsn(slot.confirmed)}, beyond {format_lsn(lsn)}."
            option = f"offset.mismatch.strategy={options.offset_mismatch_strategy}"
            gaps.add(Gap(position(lsn), position(slot.confirmed), reason, option))
    elif slot.confirmed > lsn:
        raise LogGoneError(
            f"The replication slot '{name}' is at {format_lsn(slot.confirmed)}, beyond the checkpoint's "
            f"{format_lsn(lsn)}: it was created again, advanced or read by something else, and the changes between are "
            "lost.",
            WAYS_OUT,
        )


def wait_until_free(conn: Conn, options: PostgresOptions, half_made: Collection[int] = ()) -> Slot | None:
    """Return the slot once no connection reads it.

    After a crash the server needs a moment to notice that the old connection is gone.

    Args:
        half_made: server processes of this source, still creating the slot after their connection was lost; they are
            terminated.

    Raises:
        SlotBusyError: the slot is still in use after ``slot.max.retries`` waits.
    """
    deadline = time.monotonic() + options.slot_max_retries * options.slot_retry_delay_ms / 1000
    while True:
        slot = find_slot(conn, options.slot_name)
        if slot is None or slot.active_pid is None:
            return slot
        if slot.active_pid in half_made:
            run(conn, f"SELECT pg_terminate_backend({slot.active_pid})", "ending what is left of a lost connection")
        if time.monotonic() >= deadline:
            raise SlotBusyError(
                f"The replication slot '{slot.name}' is in use by the server process {slot.active_pid}.",
                "Only one query can read a slot: stop the other one, or set another slot.name.",
            )
        time.sleep(POLL_S)


def create_command(conn: Conn, name: str, temporary: bool, failover: bool) -> str:
    """Return the replication command that creates a slot and exports its snapshot."""
    kind = " TEMPORARY" if temporary else ""
    version = server_version(conn)
    if failover and version < 17:
        raise SourceStateError(
            f"Option 'slot.failover' needs PostgreSQL 17 or later; the server has version {version}.",
            "Set it to false.",
        )
    if version < 15:
        return f'CREATE_REPLICATION_SLOT "{name}"{kind} LOGICAL pgoutput EXPORT_SNAPSHOT'
    settings = "SNAPSHOT 'export'" + (", FAILOVER true" if failover and not temporary else "")
    return f'CREATE_REPLICATION_SLOT "{name}"{kind} LOGICAL pgoutput ({settings})'


def drop_slot(conn: Conn, name: str) -> None:
    """Drop a slot."""
    run(conn, f"SELECT pg_drop_replication_slot({literal(name)})", f"dropping the replication slot '{name}'")
