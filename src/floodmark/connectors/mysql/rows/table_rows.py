"""The columns of ``format=rows``."""

from __future__ import annotations

import pyarrow as pa

from floodmark.config.mysql import BinlogOptions
from floodmark.connectors.mysql.rows.structure import TableStructure, flavor_of
from floodmark.connectors.mysql.schema.catalog import read_schema, read_server
from floodmark.connectors.mysql.server.connection import connection
from floodmark.errors import ConfigError
from floodmark.rows.column_plan import shown_codec
from floodmark.rows.typed_rows import rows_schema


def row_schema(options: BinlogOptions) -> pa.Schema:
    """Return the columns of ``format=rows``, from the captured table as it is now.

    Raises:
        ConfigError: the filters match no table, or more than one.
    """
    with connection(options) as conn:
        schema = read_schema(conn, read_server(conn))
    tables = [table for table in schema.tables.values() if options.captures(table.database, table.name)]
    if len(tables) != 1:
        found = ", ".join(f"{table.database}.{table.name}" for table in tables[:5]) or "none"
        raise ConfigError(
            f"Option 'format' is 'rows', which needs exactly one captured table; the filters match {len(tables)} "
            f"({found}).",
            "Set table.include.list to one table, or format to events.",
        )
    structure = TableStructure(tables[0], flavor_of(options))
    name = f"{structure.schema}.{structure.table}"
    fields = [
        (column.name, shown_codec(structure, index, options).arrow_type)
        for index, column in enumerate(structure.columns)
        if options.has_column(f"{name}.{column.name}")
    ]
    return rows_schema(name, pa.struct(fields))
