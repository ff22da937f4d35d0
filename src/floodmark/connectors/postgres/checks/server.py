"""Checks the server, the role, the slot and the checkpoint for what would make capture fail.

Tables and the publication are checked in ``checks.tables``, options of columns in ``checks.columns``. All checks only
read.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
from psycopg.rows import TupleRow

from floodmark.codecs.conversions import load_converters
from floodmark.connectors.contract.findings import Check, Finding, name_list, results
from floodmark.connectors.postgres.checks.columns import check_columns
from floodmark.connectors.postgres.checks.role import Role, current_role
from floodmark.connectors.postgres.checks.tables import check_publication, check_tables
from floodmark.connectors.postgres.continuity.check import Continuity
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import parse_position
from floodmark.connectors.postgres.server import slots
from floodmark.connectors.postgres.server.catalog import literal, quote
from floodmark.connectors.postgres.server.connection import MIN_VERSION, connect, connection, run, server_version
from floodmark.connectors.postgres.server.slots import Slot
from floodmark.connectors.postgres.snapshot.locks import make_lock
from floodmark.connectors.postgres.snapshot.tables import SnapshotTables
from floodmark.connectors.postgres.snapshot.watermarks import PostgresWatermarks
from floodmark.errors import FloodmarkError
from floodmark.json_data import Json, stored_object
from floodmark.signals.table import CHECK, signal_table_finding
from floodmark.snapshots.modes import make_query, make_snapshotter

Conn = psycopg.Connection[TupleRow]
FAILOVER_VERSION = 17
MIB = 1 << 20


def check_source(options: PostgresOptions, offset: Mapping[str, Json] | None = None) -> list[Finding]:
    """Check the server, the database and the slot that the options name.

    Args:
        options: the source's options.
        offset: the source's last offset in the query's checkpoint; None for a new query.
    """
    try:
        with connection(options) as conn:
            return _check_server(conn, options, offset)
    except FloodmarkError as exc:
        return [Finding("connection", "error", exc.what, exc.cure)]


def _check_server(conn: Conn, options: PostgresOptions, offset: Mapping[str, Json] | None) -> list[Finding]:
    version = server_version(conn)
    where = f"{options.hostname}:{options.port}, database {options.dbname}, role {options.user}"
    findings = [Finding("connection", "ok", where)]
    if version < MIN_VERSION:
        fix = f"Use PostgreSQL {MIN_VERSION} or later."
        return [*findings, Finding("server version", "error", f"PostgreSQL {version}", fix)]
    findings.append(Finding("server version", "ok", f"PostgreSQL {version}"))
    try:
        role = current_role(conn)
        slot = slots.find_slot(conn, options.slot_name)
    except FloodmarkError as exc:
        return [*findings, Finding("system catalogs", "error", exc.what, exc.cure)]
    try:
        snapshotter = make_snapshotter(options)
    except FloodmarkError as exc:
        return [*findings, Finding("snapshotter", "error", exc.what, exc.cure)]
    snapshot = snapshotter.should_snapshot_data(offset is not None, bool(offset and offset.get("snapshot")))
    again = offset is not None and snapshotter.should_snapshot_on_data_error()
    reads = snapshot or again or snapshotter.should_snapshot_data(False, False)
    checks: list[Check] = [
        ("wal_level", lambda: [_wal_level(conn)]),
        ("standby", lambda: _standby(role)),
        ("replication privilege", lambda: [_replication_privilege(role)]),
        ("walsenders", lambda: [_walsenders(conn, slot, 2 if snapshot else 1)]),
        ("replication connection", lambda: [_replication_connection(options, role)]),
        ("slot", lambda: _check_slot(conn, options, slot, version, snapshot)),
        ("checkpoint", lambda: _checkpoint(conn, options, slot, offset)),
        ("log retention", lambda: _retention(conn, version)),
        ("tables", lambda: check_tables(conn, options, reads)),
        ("columns", lambda: check_columns(conn, options)),
        ("converters", lambda: _converters(options)),
        ("snapshot", lambda: _snapshot(conn, options) if reads else []),
        ("publication", lambda: check_publication(conn, options, role)),
        (CHECK, lambda: _signals(conn, options)),
    ]
    return [*findings, *results(checks, again)]


def _setting(conn: Conn, name: str) -> str:
    rows = run(conn, f"SELECT setting FROM pg_settings WHERE name = {literal(name)}", f"the setting {name}")
    return str(rows[0][0]) if rows else ""


def _wal_level(conn: Conn) -> Finding:
    level = _setting(conn, "wal_level")
    if level == "logical":
        return Finding("wal_level", "ok", level)
    return Finding(
        "wal_level",
        "error",
        f"wal_level is {level}; capture needs logical.",
        "ALTER SYSTEM SET wal_level = 'logical', then restart the server (a managed service: set it in its "
        "parameters, e.g. rds.logical_replication = 1).",
    )


def _standby(role: Role) -> list[Finding]:
    if not role.standby:
        return []
    finding = "The server is a standby: where a snapshot lies in its log can't be determined."
    return [Finding("standby", "error", finding, "Connect to the primary server.")]


def _replication_privilege(role: Role) -> Finding:
    if role.replication:
        return Finding("replication privilege", "ok", f"{role.name} may replicate")
    return Finding(
        "replication privilege",
        "error",
        f"Role {role.name} may not start replication.",
        f"As a superuser: ALTER ROLE {quote(role.name)} REPLICATION (Amazon RDS: GRANT rds_replication TO "
        f"{quote(role.name)}).",
    )


def _walsenders(conn: Conn, slot: Slot | None, wanted: int) -> Finding:
    most = int(_setting(conn, "max_wal_senders"))
    used = int(run(conn, "SELECT count(*) FROM pg_stat_replication", "the walsenders")[0][0])
    text = f"{used} of {most} in use"
    if most - used >= wanted or (slot and slot.active_pid):
        return Finding("walsenders", "ok", text)
    fix = "Raise max_wal_senders and restart the server, or stop another receiver."
    return Finding("walsenders", "error", f"{text}; {wanted} must be free.", fix)


def _replication_connection(options: PostgresOptions, role: Role) -> Finding:
    name = "replication connection"
    if not role.replication:
        return Finding(name, "warning", "not tried, the role lacks the privilege")
    try:
        with connect(options, replication=True) as conn:
            conn.execute("IDENTIFY_SYSTEM")
    except psycopg.Error as exc:
        return Finding(name, "error", " ".join(str(exc).split()), "Allow it in the server's pg_hba.conf.")
    return Finding(name, "ok", "accepted")


def _check_slot(conn: Conn, options: PostgresOptions, slot: Slot | None, version: int, snapshot: bool) -> list[Finding]:
    if options.slot_failover and version < FAILOVER_VERSION:
        text = f"slot.failover is true, but PostgreSQL {version} has no failover slots."
        return [Finding("slot", "error", text, "Set slot.failover to false.")]
    if slot is None:
        return [_free_slots(conn, f"{options.slot_name} will be created")]
    slots.check_slot(slot, options)
    if slot.active_pid:
        text = f"Slot {slot.name} is in use by the server process {slot.active_pid}."
        fix = "Only one query can read a slot: stop the other one, or set another slot.name."
        return [Finding("slot", "error", text, fix)]
    end = slots.end_of_log(conn)
    kept = f"holding {(end - (slot.restart or end)) // MIB:,} MiB of log"
    if slot.wal_status == "unreserved":
        text = f"Slot {slot.name} is about to be lost, {kept}."
        return [Finding("slot", "warning", text, "Start the query now, or raise max_slot_wal_keep_size.")]
    findings = [Finding("slot", "ok", f"{slot.name} exists and is free, {kept}")]
    if snapshot:
        findings.append(_free_slots(conn, "the snapshot creates a temporary one"))
    return findings


def _free_slots(conn: Conn, purpose: str) -> Finding:
    most = int(_setting(conn, "max_replication_slots"))
    used = int(run(conn, "SELECT count(*) FROM pg_replication_slots", "the replication slots")[0][0])
    text = f"{purpose}; {used} of {most} slots in use"
    if used < most:
        return Finding("slot", "ok", text)
    fix = "Raise max_replication_slots and restart the server, or drop a slot that is not needed."
    return Finding("slot", "error", f"{text}.", fix)


def _checkpoint(
    conn: Conn, options: PostgresOptions, slot: Slot | None, offset: Mapping[str, Json] | None
) -> list[Finding]:
    """Check that the checkpoint is of this source, and that the log continues from its position."""
    if offset is None:
        return []
    stored = stored_object(offset, "The newest offset")
    source = stored.text_by_name("source") if stored.value("source") else {}
    sql = "SELECT system_identifier::text FROM pg_control_system()"
    system = str(run(conn, sql, "the system identifier")[0][0])
    here = {"system": system, "database": options.dbname, "slot": options.slot_name}
    other = [f"{key} {source[key]} (now {here[key]})" for key in here if source.get(key, here[key]) != here[key]]
    if other:
        text = f"The checkpoint was written for another source: {', '.join(other)}."
        return [Finding("checkpoint", "error", text, "Give this source a checkpoint of its own.")]
    log = stored.text("log")
    if stored.value("bookmark"):
        continuity = Continuity(options)
        continuity.resume(log, stored.value("bookmark"))
        with connect(options, replication=True) as replication:
            continuity.prove(replication)
    slots.check_position(slot, options, parse_position(log)[0])
    return [Finding("checkpoint", "ok", f"goes on at {log}")]


def _snapshot(conn: Conn, options: PostgresOptions) -> list[Finding]:
    """Check what the snapshot's options name: tables, statements, installed packages."""
    make_lock(options)
    readings = SnapshotTables(options, make_query(options)).readings(conn)
    if not readings and options.snapshot_include_collection_list:
        fix = "Correct snapshot.include.collection.list, unless the tables are yet to be created."
        return [Finding("snapshot", "warning", "The snapshot reads no table.", fix)]
    own = [reading.published.full_name for reading in readings if reading.statement is not None]
    rest = f", {name_list(own)} with a statement" if own else ""
    return [Finding("snapshot", "ok", f"reads {len(readings)} tables{rest}")]


def _converters(options: PostgresOptions) -> list[Finding]:
    """Check that the converters are installed here."""
    if not options.converters:
        return []
    load_converters(options)
    return [Finding("converters", "ok", f"{name_list(options.converters)} can be loaded")]


def _signals(conn: Conn, options: PostgresOptions) -> list[Finding]:
    """Check that the signal tables have the columns of signals and, if it is needed, that watermarks can be written."""
    names = options.signal_data_collection if "source" in options.signal_enabled_channels else ()
    findings = [signal_table_finding(name, _columns(conn, name)) for name in names]
    if options.incremental_snapshot_read_points == "exact" or any(item.status == "error" for item in findings):
        return findings
    table, _ = PostgresWatermarks(options).check(conn)
    return [*findings, Finding(CHECK, "ok", f"watermarks can be written to {table}")]


def _columns(conn: Conn, table: str) -> list[str]:
    sql = f"""
        SELECT a.attname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE n.nspname || '.' || c.relname = {literal(table)} AND c.relkind IN ('r', 'p') ORDER BY a.attnum
    """
    return [str(name) for (name,) in run(conn, sql, "the columns of the signal table")]


def _retention(conn: Conn, version: int) -> list[Finding]:
    findings = []
    keep = int(_setting(conn, "max_slot_wal_keep_size") or -1)
    if keep < 0:
        text = "max_slot_wal_keep_size is unlimited: the slot of a stopped query can fill the server's disk."
        fix = "Set it to the log of the longest pause that you want to survive without a new snapshot."
        findings.append(Finding("log retention", "warning", text, fix))
    else:
        text = f"a slot may hold {keep:,} MiB; a longer pause loses it"
        findings.append(Finding("log retention", "ok", text))
    idle = _setting(conn, "idle_replication_slot_timeout") if version >= 18 else ""
    if idle not in ("", "0"):
        text = f"idle_replication_slot_timeout is {idle} s: a query stopped for longer loses its slot."
        fix = "Set it to 0, or to more than the longest pause."
        findings.append(Finding("log retention", "warning", text, fix))
    return findings
