"""Makes the schema change events that a snapshot begins with."""

from __future__ import annotations

import time
from collections.abc import Mapping

from floodmark.connectors.oracle import source_block
from floodmark.connectors.oracle.ddl.changes import Kind, TableChange
from floodmark.connectors.oracle.decode.logged_statement import LoggedStatement, schema_change, schema_changes
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.catalog import StoredTable
from floodmark.connectors.oracle.server.connection import Connection, run, value
from floodmark.connectors.oracle.snapshot.token import ReadPointToken
from floodmark.connectors.oracle.source.session import OracleSession
from floodmark.connectors.oracle.source.tables import OracleTables
from floodmark.events.columns import EventRow
from floodmark.json_data import Json
from floodmark.transforms.other_records import transformed_rows

_SETTINGS = (("STORAGE", "false"), ("SEGMENT_ATTRIBUTES", "false"), ("SQLTERMINATOR", "true"))
"""What Debezium lets ``DBMS_METADATA`` leave out of statements, and end them with."""
_GRANT = "GRANT SELECT_CATALOG_ROLE TO the account, or set include.schema.changes=false."


class OracleAnnouncements:
    """A ``SchemaAnnouncements``.

    Args:
        options: the source's options.
        session: the connections.
        tables: the captured tables.
    """

    def __init__(self, options: OracleOptions, session: OracleSession, tables: OracleTables) -> None:
        self._options = options
        self._session = session
        self._tables = tables

    def schema_events(self, position: str, token: Mapping[str, Json]) -> list[EventRow]:
        """Return an event for each captured table, as it is now."""
        options = self._options
        if not options.include_schema_changes:
            return []
        conn = self._session.ordinary()
        for name, setting in _SETTINGS:
            _set(conn, name, setting)
        try:
            point = ReadPointToken.from_json(token)
            tables = sorted(self._tables.snapshot.now().values(), key=lambda one: one.name)
            rows = [self._event(conn, one, position, point) for one in tables]
            return transformed_rows(rows, schema_changes(), options)
        finally:
            _set(conn, "DEFAULT", "true")

    def _event(self, conn: Connection, found: StoredTable, position: str, point: ReadPointToken) -> dict[str, str]:
        options, table = self._options, found.table
        query = "SELECT DBMS_METADATA.GET_DDL('TABLE', :1, :2) FROM DUAL"
        text = value(conn, query, f"reading the definition of {found.full_name}", _GRANT, [table.name, table.owner])
        changes = TableChange(Kind.CREATE, found.name, table).described(comments=options.include_schema_comments)
        statement = LoggedStatement(
            point.scn,
            0,
            "",
            point.micros // 1_000_000,
            options.database,
            table.owner,
            table.name,
            str(text or "").strip(),
            changes,
        )
        millis = time.time_ns() // 1_000_000
        block = source_block.snapshot_block(
            options.topic_prefix, options.database, table.owner, table.name, point.scn, millis * 1000, "true"
        )
        return {
            "topic": options.topic_prefix,
            **schema_change(block, statement, millis, options.schemas_enable),
            "database": options.database,
            "position": f"{position}-00",
        }


def _set(conn: Connection, name: str, setting: str) -> None:
    call = f"DBMS_METADATA.SET_TRANSFORM_PARAM(DBMS_METADATA.SESSION_TRANSFORM, '{name}', {setting})"
    run(conn, f"BEGIN {call}; END;", "settings of DBMS_METADATA", _GRANT)
