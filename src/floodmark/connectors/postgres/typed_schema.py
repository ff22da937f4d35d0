"""Determines the columns of typed rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pyarrow as pa
from psycopg.rows import TupleRow

from floodmark.changes.column_plan import shown_codec
from floodmark.changes.typed_rows import prove_shown
from floodmark.changes.typed_tables import typed_schema
from floodmark.connectors.postgres.decode.relation import Column, Relation
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import Table, stored_tables, structures
from floodmark.connectors.postgres.server.connection import connection
from floodmark.connectors.postgres.server.structure import CatalogStructure
from floodmark.connectors.postgres.snapshot import chunks


def row_schema(options: PostgresOptions) -> pa.Schema:
    """Return the columns of ``format=rows`` or ``tables``, from the captured tables as they are now.

    Raises:
        ConfigError: the filters match no table, or more than one where one is wanted.
    """
    with connection(options) as conn:
        tables = list(dict.fromkeys(published for _, published in stored_tables(conn, options)))
        prove_shown(options, [table.full_name for table in tables])
        relations = keyless_relations(conn, tables, options)
    rows = {
        table.full_name: pa.struct(row_fields(relation, options))
        for table, relation in zip(tables, relations, strict=True)
    }
    return typed_schema(options, rows)


def keyless_relations(
    conn: psycopg.Connection[TupleRow], tables: Sequence[Table], options: PostgresOptions
) -> list[Relation]:
    """Return the captured columns of tables as they are now, without key and identity: rows have neither."""
    listed = chunks.describe_tables(conn, [table.oid for table in tables], options.publication_name)
    known = structures(conn, {oid: {int(column[1]) for column in columns} for oid, columns in listed.items()})
    return [_relation(table, listed[table.oid], known[table.oid], options) for table in tables]


def _relation(
    table: Table, listed: Sequence[tuple[Any, ...]], known: CatalogStructure, options: PostgresOptions
) -> Relation:
    columns = tuple(
        Column(name, kind, modifier, False, not required)
        for name, kind, modifier, required in listed
        if options.has_column(f"{table.full_name}.{name}")
    )
    return Relation(table.oid, table.schema, table.name, table.replica_identity, columns, (), known.types)


def row_fields(relation: Relation, options: PostgresOptions) -> list[tuple[str, pa.DataType]]:
    """Return the names and types that a table's columns have in rows."""
    return [
        (column.name, shown_codec(relation, index, options).arrow_type) for index, column in enumerate(relation.columns)
    ]
