"""The columns of typed rows."""

from __future__ import annotations

import pyarrow as pa

from floodmark.changes.column_plan import shown_codec
from floodmark.changes.typed_rows import prove_shown
from floodmark.changes.typed_tables import typed_schema
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.catalog import read_tables
from floodmark.connectors.oracle.server.connection import connection


def row_schema(options: OracleOptions) -> pa.Schema:
    """Return the columns of ``format=rows`` or ``tables``, from the captured tables as they are now.

    Raises:
        ConfigError: the filters match no table, or more than one where one is wanted.
    """
    with connection(options) as conn:
        found = read_tables(conn, options.database, options.captures)
    structures = {one.full_name: TableStructure(one.table, options.settings) for one in found}
    prove_shown(options, list(structures))
    return typed_schema(options, {name: _row(name, structure, options) for name, structure in structures.items()})


def _row(name: str, structure: TableStructure, options: OracleOptions) -> pa.StructType:
    return pa.struct(
        [
            (column.name, shown_codec(structure, index, options).arrow_type)
            for index, column in enumerate(structure.columns)
            if options.has_column(f"{name}.{column.name}")
        ]
    )
