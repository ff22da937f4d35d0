"""Finds what would make capturing a MySQL or MariaDB server fail. Everything here only reads."""

from __future__ import annotations

import re
from collections.abc import Mapping

from floodmark.codecs.conversions import load_converters
from floodmark.config.model import nearest
from floodmark.connectors.contract.findings import Check, Finding, name_list, results
from floodmark.connectors.guardrail import guarded
from floodmark.connectors.mysql.binlog.xa import branch_name
from floodmark.connectors.mysql.checks.filters import REPLICA_VERSION, filtered, variables
from floodmark.connectors.mysql.checks.losses import losses
from floodmark.connectors.mysql.continuity.check import Accepted, ResumePoint, probe
from floodmark.connectors.mysql.options import SYSTEM_DATABASES, BinlogOptions
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.prepared.search import SEE_THEM, UNSEEN, listed_branches
from floodmark.connectors.mysql.schema.catalog import read_schema, read_server
from floodmark.connectors.mysql.server.binlogs import CLIENT_PRIVILEGE, NO_BINLOG, binlogs, log_end
from floodmark.connectors.mysql.server.connection import Connection, connect, connection, run
from floodmark.connectors.mysql.snapshot.watermarks import MysqlWatermarks
from floodmark.connectors.mysql.structures.session import Server
from floodmark.connectors.mysql.structures.table import Table
from floodmark.errors import FloodmarkError
from floodmark.json_data import Json, stored_object
from floodmark.signals.table import CHECK, signal_table_finding
from floodmark.snapshots.modes import make_snapshotter

OLDEST = {"mysql": 80000, "mariadb": 101100}
SHORT_RETENTION_S = 86_400
_ALL = "ALL PRIVILEGES"
_GRANT = re.compile(r"GRANT (.+?) ON (\S+) TO ", re.IGNORECASE)
_SPANS = {
    "mysql": ("REPLICATION SLAVE", ("REPLICATION CLIENT",)),
    "mariadb": ("REPLICATION SLAVE", ("REPLICATION CLIENT", "BINLOG MONITOR", "SUPER")),
}


def check_source(options: BinlogOptions, offset: Mapping[str, Json] | None = None) -> list[Finding]:
    """Check the server, the account, its binlog and the tables.

    Args:
        options: the source's options.
        offset: the source's last offset in the query's checkpoint; None for a new query.
    """
    try:
        with connection(options) as conn:
            return _check_server(conn, options, offset)
    except FloodmarkError as exc:
        return [Finding("connection", "error", exc.what, exc.cure)]


def obstacles(conn: Connection, server: Server, options: BinlogOptions) -> list[Finding]:
    """Return the findings that keep a query from starting at all."""
    findings = [
        _version(server, options),
        *_binlog(conn, server),
        *_privileges(conn, server),
        *_server_id(conn, options),
    ]
    found = [finding for finding in findings if finding.status == "error"]
    return found or [finding for finding in filtered(conn, server, options) if finding.status == "error"]


def _check_server(conn: Connection, options: BinlogOptions, offset: Mapping[str, Json] | None) -> list[Finding]:
    server = read_server(conn)
    findings = [Finding("connection", "ok", f"{options.hostname}:{options.port}, account {options.user}")]
    findings.append(_version(server, options))
    if findings[-1].status == "error":
        return findings
    snapshotter = make_snapshotter(options)
    again = snapshotter.should_snapshot_on_data_error()
    checks: list[Check] = [
        ("binlog", lambda: _binlog(conn, server)),
        ("binlog filters", lambda: filtered(conn, server, options)),
        ("privileges", lambda: _privileges(conn, server)),
        ("server id", lambda: _server_id(conn, options)),
        ("GTIDs", lambda: _gtids(conn, server)),
        ("XA transactions", lambda: _prepared(conn, server)),
        ("log retention", lambda: _retention(conn)),
        ("checkpoint", lambda: _checkpoint(options, offset)),
        ("tables", lambda: _tables(conn, server, options)),
        ("converters", lambda: _converters(options)),
        (CHECK, lambda: _signals(conn, options)),
    ]
    return [*findings, *results(checks, again)]


def _version(server: Server, options: BinlogOptions) -> Finding:
    name = "MariaDB" if server.mariadb else "MySQL"
    shown = f"{name} {server.version // 10000}.{server.version // 100 % 100}.{server.version % 100}"
    if server.flavor != options.connector:
        return Finding(
            "server version", "error", f"{shown}, but connector is {options.connector}.", f"Set it to {server.flavor}."
        )
    if server.version < OLDEST[server.flavor]:
        least = "10.11" if server.mariadb else "8.0"
        return Finding("server version", "error", shown, f"Use {name} {least} or later.")
    return Finding("server version", "ok", shown)


def _binlog(conn: Connection, server: Server) -> list[Finding]:
    found = variables(conn, "log_bin", "binlog_format", "binlog_row_image", "binlog_row_metadata", "server_id")
    if found.get("log_bin", "OFF").upper() not in ("ON", "1"):
        return [Finding("binlog", "error", "The server writes no binlog (log_bin is OFF).", NO_BINLOG)]
    findings = []
    form = found.get("binlog_format", "ROW").upper()
    if form != "ROW":
        text = f"binlog_format is {form}: changes are in the log as statements."
        findings.append(Finding("binlog", "error", text, "SET GLOBAL binlog_format = 'ROW', and in the server's file."))
    image = found.get("binlog_row_image", "FULL").upper()
    if image != "FULL":
        text = f"binlog_row_image is {image}: events lack the values that did not change."
        findings.append(Finding("binlog", "warning", text, "SET GLOBAL binlog_row_image = 'FULL'."))
    findings += _replicated(conn, server)
    if found.get("server_id") == "0":
        findings.append(Finding("binlog", "error", "server_id is 0.", "Set a server_id on the server and restart it."))
    return findings or [Finding("binlog", "ok", f"{form}, row image {image}")]


def _replicated(conn: Connection, server: Server) -> list[Finding]:
    found = variables(conn, "log_slave_updates", "log_replica_updates", "gtid_slave_pos")
    logs = found.get("log_replica_updates") or found.get("log_slave_updates", "ON")
    if logs.upper() != "OFF":
        return []
    text = "What this server replicates from another one is not in its binlog: log_replica_updates is OFF."
    fix = "Set log_replica_updates = ON (MariaDB: log_slave_updates) in the server's file and restart it."
    if _replicates(conn, server):
        return [Finding("binlog", "error", text, fix)]
    # Without GTIDs of its own source, a MariaDB server has replicated nothing.
    return [Finding("binlog", "warning", text, fix)] if found.get("gtid_slave_pos") else []


def _replicates(conn: Connection, server: Server) -> bool:
    """Return whether a server receives the changes of another one now; MariaDB's status needs no privilege."""
    found = run(conn, "SHOW GLOBAL STATUS LIKE 'Slaves_running'", "whether the server is a replica")
    if found:
        return int(found[0][1]) > 0
    word = "REPLICA" if server.version >= REPLICA_VERSION else "SLAVE"
    return bool(run(conn, f"SHOW {word} STATUS", "whether the server is a replica"))


def _privileges(conn: Connection, server: Server) -> list[Finding]:
    """Check the privileges of the account; SHOW GRANTS also lists those that it has by roles."""
    granted: set[str] = set()
    for (grant,) in run(conn, "SHOW GRANTS", "the account's privileges"):
        said = _GRANT.match(str(grant))
        if said is not None and said[2].strip("`'\"") == "*.*":
            granted |= {word.strip().upper() for word in said[1].split(",")}
    if _ALL in granted:
        return [Finding("privileges", "ok", "all")]
    needed, either = _SPANS[server.flavor]
    findings = []
    if needed not in granted:
        fix = "GRANT REPLICATION SLAVE ON *.* to the account."
        findings.append(Finding("privileges", "error", "The account may not read the binlog.", fix))
    if not granted & set(either):
        text = "The account may not see where the binlog ends."
        findings.append(Finding("privileges", "error", text, CLIENT_PRIVILEGE))
    if "RELOAD" not in granted and "FLUSH_TABLES" not in granted:
        text = "The account may not lock tables for a moment, which a snapshot of a very busy server needs."
        findings.append(Finding("privileges", "warning", text, "GRANT RELOAD ON *.* to the account."))
    return findings or [Finding("privileges", "ok", "may read the binlog")]


def _server_id(conn: Connection, options: BinlogOptions) -> list[Finding]:
    own = variables(conn, "server_id").get("server_id")
    if own == str(options.replica_id):
        text = f"database.server.id is {own}, which is the server's own."
        return [Finding("server id", "error", text, "Set database.server.id to a number that no server has.")]
    return [Finding("server id", "ok", str(options.replica_id))]


def _gtids(conn: Connection, server: Server) -> list[Finding]:
    if server.mariadb:
        return [Finding("GTIDs", "ok", "MariaDB always has them")]
    mode = variables(conn, "gtid_mode").get("gtid_mode", "OFF")
    if mode.upper() == "ON":
        return [Finding("GTIDs", "ok", "on")]
    text = f"gtid_mode is {mode}: the query cannot go on at another server."
    return [Finding("GTIDs", "warning", text, "Turn gtid_mode and enforce_gtid_consistency on.")]


def _prepared(conn: Connection, server: Server) -> list[Finding]:
    listed = listed_branches(conn, server.flavor)
    if listed is None:
        return [Finding("XA transactions", "warning", UNSEEN, SEE_THEM)]
    found = f"{len(listed)} prepared: {name_list(sorted(map(branch_name, listed)))}" if listed else "none prepared"
    return [Finding("XA transactions", "ok", found)]


def _retention(conn: Connection) -> list[Finding]:
    found = variables(conn, "binlog_expire_logs_seconds", "expire_logs_days")
    seconds = int(found.get("binlog_expire_logs_seconds", "0")) or int(
        float(found.get("expire_logs_days", "0")) * SHORT_RETENTION_S
    )
    files = binlogs(conn)
    size = f"{len(files)} files, {sum(file.size for file in files.values()) >> 20:,} MiB"
    if not seconds:
        return [Finding("log retention", "ok", f"binlog files are kept until they are purged; {size}")]
    text = f"binlog files are kept for {seconds / 3600:g} hours; {size}"
    if seconds < SHORT_RETENTION_S:
        fix = "Raise binlog_expire_logs_seconds above the longest pause that you want to survive."
        return [Finding("log retention", "warning", text, fix)]
    return [Finding("log retention", "ok", text)]


def _checkpoint(options: BinlogOptions, offset: Mapping[str, Json] | None) -> list[Finding]:
    if offset is None:
        return []
    log, bookmark = stored_object(offset, "the offset").text("log"), offset.get("bookmark")
    known = ResumePoint.from_json(bookmark) if bookmark else None
    accepted = Accepted.from_options(options)
    probe(lambda: connect(options), options.connector, Position.parse(log), known, accepted)
    return [Finding("checkpoint", "ok", f"goes on at {log}")]


def _tables(conn: Connection, server: Server, options: BinlogOptions) -> list[Finding]:
    log_end(conn, server.flavor, server.version)
    tables = [table for table in read_schema(conn, server).tables.values() if _captured(table, options)]
    if not tables:
        return [_no_tables(conn, options)]
    keyless = [f"{table.database}.{table.name}" for table in tables if not table.key]
    findings = [Finding("tables", "ok", f"{len(tables)} captured"), *guarded(len(tables), options)]
    if keyless:
        text = f"Without a key: {name_list(keyless)}. Their events have no key, and incremental snapshots refuse them."
        findings.append(Finding("keys", "warning", text, "Add a primary key, or set message.key.columns."))
    return findings + _versioned(conn, options) + losses(conn, server, tables)


def _no_tables(conn: Connection, options: BinlogOptions) -> Finding:
    rest = "unless what they are to match is yet to be created"
    visible = [str(name) for (name,) in run(conn, "SHOW DATABASES", "the databases")]
    databases = [name for name in visible if name not in SYSTEM_DATABASES]
    if any(options.captures_database(name) for name in databases):
        close = _nearest_table(conn, options) if options.table_include_list else ""
        fix = f"Correct table.include.list and table.exclude.list, {rest}. {close}".rstrip()
        return Finding("tables", "warning", "The filters match no table that the account can see.", fix)
    seen = f"It sees {name_list(databases)}." if databases else "It sees none: GRANT SELECT on them to the account."
    wanted = [pattern.pattern.replace("\\", "") for pattern in options.schema_include_list]
    close = " ".join(filter(None, (nearest(word, databases) for word in wanted[:1])))
    fix = f"Correct database.include.list and database.exclude.list, {rest}. {close or seen}"
    return Finding("tables", "warning", "The filters match no database that the account can see.", fix)


def _nearest_table(conn: Connection, options: BinlogOptions) -> str:
    """Return a hint with the table whose name is nearest to what the first filter wants; empty if none is near."""
    query = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type LIKE 'BASE TABLE'"
    names = [f"{database}.{name}" for database, name in run(conn, query, "tables") if database not in SYSTEM_DATABASES]
    return nearest(options.table_include_list[0].pattern.replace("\\", ""), names)


def _versioned(conn: Connection, options: BinlogOptions) -> list[Finding]:
    query = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'SYSTEM VERSIONED'"
    found = [f"{database}.{name}" for database, name in run(conn, query, "tables") if options.captures(database, name)]
    if not found:
        return []
    text = f"System-versioned: {name_list(found)}. The binlog has their history rows too: deletes come as updates."
    return [Finding("history", "warning", text, "Leave them out by table.exclude.list, or drop their versioning.")]


def _signals(conn: Connection, options: BinlogOptions) -> list[Finding]:
    """Check the signal tables: whether signals can come by them, and watermarks can be written, if they are used."""
    names = options.signal_data_collection if "source" in options.signal_enabled_channels else ()
    findings = [signal_table_finding(name, _columns(conn, name)) for name in names]
    if options.incremental_snapshot_read_points == "exact" or any(item.status == "error" for item in findings):
        return findings
    MysqlWatermarks(options).check(conn)
    return [*findings, Finding(CHECK, "ok", f"marks go to {options.signal_data_collection[0]}")]


def _columns(conn: Connection, table: str) -> list[str]:
    database, _, name = table.partition(".")
    query = (
        "SELECT COLUMN_NAME FROM information_schema.COLUMNS "
        f"WHERE TABLE_SCHEMA = {conn.escape(database)} AND TABLE_NAME = {conn.escape(name)} ORDER BY ORDINAL_POSITION"
    )
    return [str(column) for (column,) in run(conn, query, "the columns of the signal table")]


def _captured(table: Table, options: BinlogOptions) -> bool:
    return not table.sequence and options.captures(table.database, table.name)


def _converters(options: BinlogOptions) -> list[Finding]:
    if not options.converters:
        return []
    load_converters(options)
    return [Finding("converters", "ok", f"{name_list(options.converters)} can be loaded")]
