"""Finds changes that the binlog lacks, or has only in part, by design of the server.

Source: MySQL's manual, "FOREIGN KEY Constraints", "innodb_native_foreign_keys" and "binlog_row_value_options";
MariaDB's, "Foreign Keys" and "binlog_row_image".
"""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.connectors.contract.findings import Finding, name_list
from floodmark.connectors.mysql.checks.filters import variables
from floodmark.connectors.mysql.ddl.tokens import SIGN, WORD, scan
from floodmark.connectors.mysql.server.connection import Connection, run
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.connectors.mysql.structures.table import Table, table_name

LOGGED_CASCADES_VERSION = 90600
"""From this version on the server, not InnoDB, executes MySQL's foreign key actions, so the binlog has their rows."""


def losses(conn: Connection, server: Server, tables: Sequence[Table]) -> list[Finding]:
    """Return findings on changes of captured tables that the binlog lacks.

    Args:
        tables: the captured tables.
    """
    return _cascades(conn, server, tables) + _images(conn, server, tables)


def _cascades(conn: Connection, server: Server, tables: Sequence[Table]) -> list[Finding]:
    if not server.mariadb and server.version >= LOGGED_CASCADES_VERSION:
        native = variables(conn, "innodb_native_foreign_keys").get("innodb_native_foreign_keys", "OFF")
        if native.upper() not in ("ON", "1"):
            return []
    found = [_name(table) for table in tables if _cascades_to(conn, server, table)]
    if not found:
        return []
    text = (
        f"Foreign keys of {name_list(found)} delete or change rows by themselves (ON DELETE or ON UPDATE CASCADE, SET "
        "NULL): InnoDB does it, and the binlog doesn't have these rows."
    )
    fix = "Delete and update such rows by statements of their own, or by triggers, and let the foreign keys restrict."
    return [Finding("foreign keys", "warning", text, fix)]


def _cascades_to(conn: Connection, server: Server, table: Table) -> bool:
    """Return whether a foreign key changes rows of a table.

    SHOW CREATE TABLE is the only source of that for accounts that may only SELECT.
    """
    ((_, definition),) = run(conn, f"SHOW CREATE TABLE {table_name(table)}", f"the foreign keys of {_name(table)}")
    words = [token.value for token in scan(definition, Session(), server) if token.kind in (WORD, SIGN)]
    actions = zip(words, words[1:], words[2:], strict=False)
    return any(on == "ON" and kind in ("DELETE", "UPDATE") and does in ("CASCADE", "SET") for on, kind, does in actions)


def _images(conn: Connection, server: Server, tables: Sequence[Table]) -> list[Finding]:
    found = variables(conn, "binlog_row_image", "binlog_row_value_options")
    if found.get("binlog_row_image", "FULL").upper() == "FULL":
        return []
    findings = []
    documents = [_name(table) for table in tables if any(column.type == "json" for column in table.columns)]
    if documents and "PARTIAL_JSON" in found.get("binlog_row_value_options", "").upper():
        text = (
            f"binlog_row_value_options is PARTIAL_JSON and binlog_row_image isn't FULL: of a changed JSON value of "
            f"{name_list(documents)} the log may have the difference without the old value. Its event has the "
            "placeholder then (unavailable.value.placeholder), though the value has changed."
        )
        findings.append(Finding("JSON", "warning", text, "SET GLOBAL binlog_row_value_options = ''."))
    virtual = [_name(table) for table in tables if any(column.generated == "virtual" for column in table.columns)]
    if virtual and server.mariadb:
        text = f"binlog_row_image isn't FULL: events of {name_list(virtual)} lack changes of virtual generated columns."
        findings.append(Finding("generated columns", "warning", text, "SET GLOBAL binlog_row_image = 'FULL'."))
    return findings


def _name(table: Table) -> str:
    return f"{table.database}.{table.name}"
