"""The columns of typed rows."""

from __future__ import annotations

import pyarrow as pa

from floodmark.changes.column_plan import shown_codec
from floodmark.changes.typed_rows import prove_shown
from floodmark.changes.typed_tables import typed_schema
from floodmark.connectors.mysql.decode.structure import TableStructure, flavor_of
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.schema.catalog import read_schema, read_server
from floodmark.connectors.mysql.server.connection import connection


def row_schema(options: BinlogOptions) -> pa.Schema:
    """Return the columns of ``format=rows`` or ``tables``, from the captured tables as they are now.

    Raises:
        ConfigError: the filters match no table, or more than one where one is wanted.
    """
    with connection(options) as conn:
        schema = read_schema(conn, read_server(conn))
    tables = [table for table in schema.tables.values() if options.captures(table.database, table.name)]
    names = [f"{table.database}.{table.name}" for table in tables]
    prove_shown(options, names)
    structures = [TableStructure(table, flavor_of(options)) for table in tables]
    rows = [_row(name, structure, options) for name, structure in zip(names, structures, strict=True)]
    return typed_schema(options, dict(zip(names, rows, strict=True)))


def _row(name: str, structure: TableStructure, options: BinlogOptions) -> pa.StructType:
    return pa.struct(
        [
            (column.name, shown_codec(structure, index, options).arrow_type)
            for index, column in enumerate(structure.columns)
            if options.has_column(f"{name}.{column.name}")
        ]
    )
