"""What the schema change topic tells when a snapshot begins."""

from __future__ import annotations

import time
from typing import Any

from floodmark.config.mysql import BinlogOptions
from floodmark.connectors.mysql.rows.source_block import read_statement_block
from floodmark.connectors.mysql.rows.structure import flavor_of
from floodmark.connectors.mysql.schema.ddl_types import Charset
from floodmark.connectors.mysql.schema.schema import Schema
from floodmark.connectors.mysql.schema.schema_events import (
    key_schema,
    key_text,
    snapshot_changes,
    value_schema,
    value_text,
)
from floodmark.connectors.mysql.server.connection import Connection, run
from floodmark.connectors.mysql.snapshot.key_ranges import table_name
from floodmark.events.connect_schema import carrying_schema


def announcements(
    conn: Connection, options: BinlogOptions, schema: Schema, position: str, token: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the events that a snapshot begins with, as rows of the output.

    Args:
        conn: an ordinary connection.
        options: the source's options.
        schema: the structures at the read point.
        position: of the read point.
        token: the read point's.
    """
    if not options.include_schema_changes:
        return []
    flavor = flavor_of(options)
    tables = sorted(
        table
        for table, known in schema.tables.items()
        if options.tells_of_database(table[0])
        and not known.sequence
        and (not options.history_only_captured_tables or options.captures(*table))
    )
    statements = {}
    for table in tables:
        doing = f"reading the definition of {table_name(schema.tables[table])}"
        statements[table] = str(run(conn, f"SHOW CREATE TABLE {table_name(schema.tables[table])}", doing)[0][1])
    ((charset, collation),) = run(conn, "SELECT @@character_set_server, @@collation_server", "the server's charset")
    rows = []
    for change in snapshot_changes(schema, statements, Charset(charset, collation), tables):
        block = read_statement_block(
            flavor,
            options.topic_prefix,
            change.database,
            change.tables,
            token["micros"],
            token["file"],
            token["offset"],
        )
        value = value_text(change, block, time.time_ns() // 1_000_000, options.tells_comments)
        rows.append(
            {
                "topic": options.topic_prefix,
                "key": carrying_schema(key_text(change), key_schema(flavor), options.schemas_enable),
                "value": carrying_schema(value, value_schema(flavor), options.schemas_enable),
                "database": change.database,
                "position": f"{position}-00",
            }
        )
    return rows
