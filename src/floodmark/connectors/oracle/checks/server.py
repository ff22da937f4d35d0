"""Checks the database, the account, the log and the checkpoint for what would make capture fail; it only reads."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.connectors.contract.findings import Check, Finding, name_list, results
from floodmark.connectors.oracle.checks.dictionary import dictionary
from floodmark.connectors.oracle.checks.obstacles import (
    ROLE,
    log_mode,
    mining_rights,
    standby,
    supplemental_logging,
    undecided,
    unlogged_columns,
)
from floodmark.connectors.oracle.continuity.check import prove, prove_kept
from floodmark.connectors.oracle.continuity.resume_point import ResumePoint
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.mining.available_logs import archive_destinations, available_logs
from floodmark.connectors.oracle.mining.coverage import find_lack
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.replicator.continuity import asked, prove_replicated
from floodmark.connectors.oracle.replicator.protocol import ResponseCode
from floodmark.connectors.oracle.server.catalog import StoredTable, read_tables
from floodmark.connectors.oracle.server.connection import Connection, at_primary, connection, run, value
from floodmark.connectors.oracle.server.database import (
    current_scn,
    oldest_open_transaction,
    read_database,
    read_threads,
)
from floodmark.connectors.oracle.xstream.continuity import prove_outbound, require_outbound
from floodmark.connectors.oracle.xstream.outbound import OutboundServer
from floodmark.errors import FloodmarkError, NotReadyError
from floodmark.json_data import Json
from floodmark.signals.table import CHECK, signal_table_finding
from floodmark.snapshots.modes import make_snapshotter

_LONGEST_NAME = 30
"""LogMiner shows no changes of tables or columns with longer names, Oracle's documentation of DBMS_LOGMNR says."""
_VIEWS = {
    "V$LOG": "V_$LOG",
    "V$LOGFILE": "V_$LOGFILE",
    "V$THREAD": "V_$THREAD",
    "V$ARCHIVED_LOG": "V_$ARCHIVED_LOG",
    "V$ARCHIVE_DEST_STATUS": "V_$ARCHIVE_DEST_STATUS",
    "V$LOGMNR_LOGS": "V_$LOGMNR_LOGS",
    "V$PARAMETER": "V_$PARAMETER",
}


def check_source(options: OracleOptions, offset: Mapping[str, Json] | None = None) -> list[Finding]:
    """Check the database that the options name.

    Args:
        options: the source's options.
        offset: the source's last offset in the query's checkpoint; None for a new query.
    """
    try:
        with (
            connection(options, to_mine=True) as mined,
            connection(options) as conn,
            at_primary(options, mined) as root,
        ):
            return [*_connected(root, options), *_checked(mined, root, conn, options, offset)]
    except FloodmarkError as exc:
        return [Finding("connection", "error", exc.what, exc.cure)]


def _connected(root: Connection, options: OracleOptions) -> list[Finding]:
    found = read_database(root)
    version = value(root, "SELECT MAX(VERSION) FROM PRODUCT_COMPONENT_VERSION", "reading the version")
    text = f"{options.place}, {found.name} {version or ''} ({found.role}, {found.open_mode}), account {options.user}"
    return [
        Finding("connection", "ok", text),
        Finding(
            "evidence",
            "warning",
            "The connector has never been run against an Oracle server: it was tested against a stand-in, beside "
            "Debezium (docs/oracle.md says what proves what).",
            "Try it on a copy first, and compare tables with `floodmark verify`.",
        ),
    ]


def _checked(
    mined: Connection,
    root: Connection,
    conn: Connection,
    options: OracleOptions,
    offset: Mapping[str, Json] | None,
) -> list[Finding]:
    again = make_snapshotter(options).should_snapshot_on_data_error()
    logs: dict[str, list[Check]] = {
        "olr": [("OpenLogReplicator", lambda: _replicator(options, offset))],
        "xstream": [("XStream", lambda: _outbound(root, options, offset))],
    }
    log = logs.get(
        options.adapter,
        [
            ("privileges", lambda: _privileges(mined)),
            ("LogMiner", lambda: _logminer(mined, options)),
            ("dictionary", lambda: dictionary(mined, options)),
            ("logs", lambda: _logs(mined, options)),
        ],
    )
    opened: list[Check] = [("open transactions", lambda: _open_transactions(root, conn, options, offset is None))]
    checks: list[Check] = [
        (ROLE, lambda: standby(mined, options)),
        ("containers", lambda: _containers(root, options)),
        ("log mode", lambda: [log_mode(root)]),
        ("supplemental logging", lambda: [supplemental_logging(root)]),
        *log,
        *([] if options.receives_lcrs else opened),
        ("checkpoint", lambda: _checkpoint(mined, root, options, offset)),
        ("tables", lambda: _tables(conn, options)),
        (CHECK, lambda: _signals(conn, options)),
    ]
    return results(checks, again)


def _containers(root: Connection, options: OracleOptions) -> list[Finding]:
    has = value(root, "SELECT CDB FROM V$DATABASE", "reading V$DATABASE") == "YES"
    if has == bool(options.pluggable):
        return [Finding("containers", "ok", f"pluggable database {options.pluggable}" if has else "none")]
    if not has:
        return [Finding("containers", "error", "The database has no containers.", "Leave database.pdb.name out.")]
    names = [str(row[0]) for row in run(root, "SELECT NAME FROM V$PDBS", "reading V$PDBS")]
    text = f"The database has containers ({name_list(names)})."
    return [Finding("containers", "error", text, "Set database.pdb.name, or connect to a database without containers.")]


def _privileges(root: Connection) -> list[Finding]:
    missing = [real for view, real in _VIEWS.items() if not _readable(root, view)]
    if not missing:
        return [Finding("privileges", "ok", "the views of the log can be read")]
    grants = " ".join(f"GRANT SELECT ON {name} TO <account> CONTAINER=ALL;" for name in missing)
    return [Finding("privileges", "error", f"The account may not read {', '.join(missing)}.", grants)]


def _readable(root: Connection, view: str) -> bool:
    try:
        run(root, f"SELECT COUNT(*) FROM {view}", f"reading {view}")
    except FloodmarkError:
        return False
    return True


def _logminer(root: Connection, options: OracleOptions) -> list[Finding]:
    mining_rights(root, archive_destinations(root, options.destinations))
    return [Finding("LogMiner", "ok", "may be used")]


def _replicator(options: OracleOptions, offset: Mapping[str, Json] | None) -> list[Finding]:
    """Ask the server for its source, and whether it has what follows the checkpoint."""
    name = "OpenLogReplicator"
    try:
        found = asked(options)
    except NotReadyError as exc:
        fix = f"{exc.cure} If it serves this query, stop that before the check."
        return [Finding(name, "warning", exc.what, fix)]
    if offset is not None:
        prove_replicated(found, str(offset["log"]), _known(offset))
    if found.code == ResponseCode.READY:
        text = f"{options.replicator_host}:{options.replicator_port} is ready to be started"
    else:
        text = f"{options.replicator_host}:{options.replicator_port} sends what was committed behind {found.scn}"
    return [Finding(name, "ok", text), *_without_effect(name, options)]


def _without_effect(name: str, options: OracleOptions) -> list[Finding]:
    return [
        Finding(name, "warning", f"With the adapter {options.adapter}, {one} has no effect.", "Leave the option out.")
        for one in options.without_effect
    ]


def _outbound(root: Connection, options: OracleOptions, offset: Mapping[str, Json] | None) -> list[Finding]:
    """Look for the outbound server, whether it has what follows the checkpoint, and whether Oracle's jars connect."""
    name = "XStream"
    status = require_outbound(root, options)
    if offset is not None:
        prove_outbound(root, options, str(offset["log"]), _known(offset))
    server = OutboundServer(options)
    server.connect()
    server.detach()
    text = f"outbound server {options.outbound_server}: {status}"
    unproven = Finding(
        name,
        "warning",
        "The adapter xstream has never been run against Oracle's interface: it was tested against classes of our own.",
        "Try it on a copy first, and compare tables with `floodmark verify`.",
    )
    return [Finding(name, "ok", text), unproven, *_without_effect(name, options)]


def _known(offset: Mapping[str, Json]) -> ResumePoint | None:
    stored = offset.get("bookmark")
    return ResumePoint.from_json(stored) if stored else None


def _open_transactions(root: Connection, conn: Connection, options: OracleOptions, is_new: bool) -> list[Finding]:
    if options.boundary_mode == "skip":
        text = "Changes that open transactions have made before a new query begins are lost."
        return [
            Finding("open transactions", "warning", text, "Leave log.mining.transaction.snapshot.boundary.mode out.")
        ]
    found = undecided(conn) if is_new else []
    if found:
        return found
    oldest = oldest_open_transaction(root)
    text = "none" if oldest is None else f"the oldest began at {oldest}, {current_scn(root) - oldest} changes ago"
    return [Finding("open transactions", "ok", text)]


def _logs(root: Connection, options: OracleOptions) -> list[Finding]:
    names = archive_destinations(root, options.destinations)
    now = current_scn(root)
    logs = available_logs(root, 0, options.archive_hours, options.archived_only, names)
    lack = find_lack(logs, read_threads(root), min((log.first for log in logs), default=now), options.archived_only)
    if lack is not None:
        text = f"Of the redo thread {lack.thread}, {lack.what}."
        return [Finding("logs", "warning", text, "A query that is behind the gap isn't concerned; restore the logs.")]
    first = min((log.first for log in logs), default=now)
    return [Finding("logs", "ok", f"{len(logs)} from {first} on, archived in {', '.join(names)}")]


def _checkpoint(
    mined: Connection, root: Connection, options: OracleOptions, offset: Mapping[str, Json] | None
) -> list[Finding]:
    if offset is None:
        return []
    known = _known(offset)
    position = str(offset["log"])
    prove(root, position, known)
    if known is not None and options.mines:
        prove_kept(mined, known.begin, options.archive_hours, archive_destinations(mined, options.destinations))
    return [Finding("checkpoint", "ok", f"the log has what follows {position}")]


def _tables(conn: Connection, options: OracleOptions) -> list[Finding]:
    captured = read_tables(conn, options.database, options.captures)
    if not captured:
        fix = "Correct table.include.list or table.exclude.list (schema.table), and check the account's rights."
        return [Finding("tables", "warning", "The filters match no table.", fix)]
    findings = [Finding("tables", "ok", f"{len(captured)} captured")]
    bare = [one.full_name for one in captured if not one.table.key]
    if bare:
        text = f"Without a primary key: {name_list(bare)}; their events have no key."
        findings.append(Finding("tables", "warning", text, "Set message.key.columns."))
    names = _names(captured) if options.mines else []
    return [*findings, *unlogged_columns(conn, captured), *names, *_types(captured, options)]


def _names(captured: list[StoredTable]) -> list[Finding]:
    long = [
        one.full_name
        for one in captured
        if any(len(name) > _LONGEST_NAME for name in (one.table.name, *(column.name for column in one.table.columns)))
    ]
    if not long:
        return []
    text = (
        f"LogMiner shows no changes of tables whose name or a column's has more than 30 characters: {name_list(long)}."
    )
    return [Finding("tables", "error", text, "Leave them out, or give them shorter names.")]


def _types(captured: list[StoredTable], options: OracleOptions) -> list[Finding]:
    unknown = []
    for one in captured:
        structure = TableStructure(one.table, options.settings)
        for place, column in enumerate(one.table.columns):
            try:
                structure.codec(place, options)
            except FloodmarkError:
                if options.has_column(f"{one.full_name}.{column.name}"):
                    unknown.append(f"{one.full_name}.{column.name} ({column.type})")
    if not unknown:
        return []
    text = f"The log doesn't show values of these types: {name_list(unknown)}."
    return [Finding("columns", "error", text, "Leave the columns out with column.exclude.list.")]


def _signals(conn: Connection, options: OracleOptions) -> list[Finding]:
    if not options.signal_tables:
        return []
    found = read_tables(conn, options.database, options.takes_signals)
    columns = {one.full_name: [column.name for column in one.table.columns] for one in found}
    findings = [signal_table_finding(name, columns.get(name, [])) for name in options.signal_tables]
    if options.incremental_snapshot_read_points == "exact" or any(item.status == "error" for item in findings):
        return findings
    mode = read_database(conn).open_mode
    if mode != "READ WRITE":
        text = f"Watermarks can't be written: the database is {mode}."
        return [*findings, Finding(CHECK, "error", text, "Set incremental.snapshot.read.points=exact.")]
    return [*findings, Finding(CHECK, "ok", f"watermarks go to {options.signal_tables[0]}")]
