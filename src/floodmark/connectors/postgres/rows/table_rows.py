"""Typed rows instead of events: ``format=rows``."""

from __future__ import annotations

import psycopg
import pyarrow as pa
from psycopg.rows import TupleRow

from floodmark.config.postgres import PostgresOptions
from floodmark.connectors.postgres.rows.relation import Column, Relation
from floodmark.connectors.postgres.server.catalog import Table, stored_tables, structures
from floodmark.connectors.postgres.server.connection import connection
from floodmark.connectors.postgres.snapshot import chunks
from floodmark.connectors.postgres.types.type_info import type_from_list
from floodmark.errors import ConfigError
from floodmark.rows.column_plan import shown_codec
from floodmark.rows.typed_rows import rows_schema


def row_schema(options: PostgresOptions) -> pa.Schema:
    """Return the columns of ``format=rows``, from the captured table as it is now.

    Raises:
        ConfigError: the filters match no table, or more than one.
    """
    with connection(options) as conn:
        tables = list(dict.fromkeys(published for _, published in stored_tables(conn, options)))
        if len(tables) != 1:
            found = ", ".join(table.full_name for table in tables[:5]) or "none"
            raise ConfigError(
                f"Option 'format' is 'rows', which needs exactly one captured table; the filters match {len(tables)} "
                f"({found}).",
                "Set table.include.list to one table, or format to events.",
            )
        row = pa.struct(row_fields(keyless_relation(conn, tables[0], options), options))
    return rows_schema(tables[0].full_name, row)


def keyless_relation(conn: psycopg.Connection[TupleRow], table: Table, options: PostgresOptions) -> Relation:
    """Return a table's captured columns as they are now, without key and identity: rows have neither."""
    listed = chunks.describe_tables(conn, [table.oid], options.publication_name)[table.oid]
    known = structures(conn, {table.oid: {int(column[1]) for column in listed}})[table.oid]
    types = {int(number): type_from_list(info) for number, info in known["types"].items()}
    columns = tuple(
        Column(name, kind, modifier, False, not required)
        for name, kind, modifier, required in listed
        if options.has_column(f"{table.full_name}.{name}")
    )
    return Relation(table.oid, table.schema, table.name, table.replica_identity, columns, (), types)


def row_fields(relation: Relation, options: PostgresOptions) -> list[tuple[str, pa.DataType]]:
    """Return the names and types that a table's columns have in rows."""
    return [
        (column.name, shown_codec(relation, index, options).arrow_type) for index, column in enumerate(relation.columns)
    ]
