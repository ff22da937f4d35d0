"""Finds changes that a server's settings leave out of its binlog, or of what it receives from another server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from floodmark.connectors.contract.findings import Finding, name_list
from floodmark.connectors.mysql.ddl.schema import TableId
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.server.binlogs import log_end
from floodmark.connectors.mysql.server.connection import Connection, run
from floodmark.connectors.mysql.structures.session import Server

REPLICA_VERSION = 80022
"""From this version on MySQL calls it SHOW REPLICA STATUS."""

_FILTERS = (
    "replicate_do_db",
    "replicate_ignore_db",
    "replicate_do_table",
    "replicate_ignore_table",
    "replicate_wild_do_table",
    "replicate_wild_ignore_table",
)
_FIRST_FILTER = 12
"""The column of SHOW REPLICA STATUS at which the filters begin, in this order."""
_CHECK = "binlog filters"


def variables(conn: Connection, *names: str) -> dict[str, str]:
    """Return global variables of the server; those that it doesn't have are left out."""
    listed = ", ".join(f"'{name}'" for name in names)
    found = run(conn, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({listed})", "the server's settings")
    return {str(name).lower(): str(value) for name, value in found}


def filtered(conn: Connection, server: Server, options: BinlogOptions) -> list[Finding]:
    """Return findings on captured tables whose changes the server doesn't log, or doesn't receive as a replica."""
    end = log_end(conn, server.flavor, server.version)
    logging = {"binlog_do_db": end.do, "binlog_ignore_db": end.ignore}
    receiving = _replication_filters(conn, server)
    if not any(logging.values()) and not any(receiving.values()):
        return []
    query = "SELECT table_schema, table_name FROM information_schema.tables"
    tables = [(database, name) for database, name in run(conn, query, "tables") if options.captures(database, name)]
    findings = []
    for settings, what in ((logging, "doesn't log changes of"), (receiving, "doesn't take from its source changes of")):
        hidden = sorted({f"{database}.{name}" for database, name in tables if _leaves_out(settings, (database, name))})
        if hidden:
            said = ", ".join(f"{name}={value}" for name, value in settings.items() if value)
            text = f"The server {what} {name_list(hidden)} ({said})."
            findings.append(Finding(_CHECK, "error", text, "Take these settings back; then read the tables again."))
    return findings


def _replication_filters(conn: Connection, server: Server) -> dict[str, str]:
    if server.mariadb:
        return variables(conn, *_FILTERS)
    word = "REPLICA" if server.version >= REPLICA_VERSION else "SLAVE"
    rows = run(conn, f"SHOW {word} STATUS", "what the server leaves out as a replica")
    joined = (",".join(str(row[_FIRST_FILTER + place]) for row in rows) for place in range(len(_FILTERS)))
    return {name: values.strip(",") for name, values in zip(_FILTERS, joined, strict=True)}


def _leaves_out(settings: Mapping[str, str], table: TableId) -> bool:
    """Return whether filters leave a table out: it matches an ignoring filter, or none of the selecting ones."""
    full = f"{table[0]}.{table[1]}"

    def matches(kind: str, test: Callable[[str], bool]) -> bool | None:
        texts = [text for name, text in settings.items() if name.partition("_")[2] == kind]
        values = [value.strip() for text in texts for value in text.split(",") if value.strip()]
        return any(map(test, values)) if values else None

    chosen = [
        {matches("do_db", table[0].__eq__)},
        {matches("do_table", full.__eq__), matches("wild_do_table", lambda value: _like(value, full))},
    ]
    ignored = (
        matches("ignore_db", table[0].__eq__),
        matches("ignore_table", full.__eq__),
        matches("wild_ignore_table", lambda value: _like(value, full)),
    )
    return any(ignored) or any(False in found and True not in found for found in chosen)


def _like(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern of LIKE."""
    parts = re.findall(r"\\.|[%_]|[^%_\\]+", pattern)
    made = (".*" if part == "%" else "." if part == "_" else re.escape(part.removeprefix("\\")) for part in parts)
    return re.fullmatch("".join(made), text, re.DOTALL) is not None
