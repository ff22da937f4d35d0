"""Typed rows instead of events: ``format=rows``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg.rows import TupleRow

from floodmark.config.postgres import PostgresOptions
from floodmark.connectors.postgres.log.tuples import TextColumn
from floodmark.connectors.postgres.rows.column_plan import shown_codec
from floodmark.connectors.postgres.rows.relation import Column, Relation, type_from_list
from floodmark.connectors.postgres.rows.table_version import TableVersion
from floodmark.connectors.postgres.server.catalog import Table, stored_tables, structures
from floodmark.connectors.postgres.server.connection import connection
from floodmark.connectors.postgres.snapshot import chunks
from floodmark.errors import ConfigError

FIXED = [
    ("op", pa.string()),
    ("position", pa.string()),
    ("source_ts", pa.timestamp("us", tz="UTC")),
]


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
    return pa.schema([*FIXED, ("before", row), ("after", row)])


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
    return [(column.name, shown_codec(relation, column, options).arrow_type) for column in relation.columns]


class RowVersion(TableVersion):
    """A table version whose rows become typed structures of the query's schema.

    Columns that the schema lacks are left out; columns that the table lacks are null.
    """

    holds_unknown = True

    def __init__(self, relation: Relation, options: PostgresOptions, row: pa.StructType) -> None:
        super().__init__(relation, options)
        self._type = row
        self._shown = {
            self.names[field.column]: (field.column, codec) for field, codec in zip(self._row, self.codecs, strict=True)
        }

    @property
    def tombstones(self) -> bool:
        """Typed rows have no tombstones."""
        return False

    def encode(self, columns: Sequence[TextColumn]) -> list[Any]:
        """Return the rows' values in the schema's types; what the log lacks is null."""
        rows = len(columns[0].text) if columns else 0
        return [self._values(columns, field, rows) for field in self._type]

    def encode_old(self, columns: Sequence[TextColumn], complete: bool) -> list[Any]:
        """Return the old rows' values; what the log lacks is null."""
        del complete
        return self.encode(columns)

    def keys(self, row: Sequence[Any], rows: int, bare: bool = False) -> pa.StringArray:
        """Return no keys."""
        del row, bare
        return pa.nulls(rows, pa.string())

    def columns(
        self,
        operation: str,
        rows: int,
        before: Sequence[Any] | None,
        after: Sequence[Any] | None,
        source: Sequence[str | pa.StringArray],
        transaction: Sequence[str | pa.StringArray] | None = None,
    ) -> dict[str, pa.Array]:
        """Return the columns ``before`` and ``after``."""
        del operation, source, transaction
        return {
            "before": self._structure(before, rows),
            "after": self._structure(after, rows),
            "key": self.keys([], rows),
        }

    def _structure(self, values: Sequence[Any] | None, rows: int) -> pa.Array:
        if values is None:
            return pa.nulls(rows, self._type)
        return pa.StructArray.from_arrays(list(values), fields=list(self._type))

    def _values(self, columns: Sequence[TextColumn], field: pa.Field, rows: int) -> pa.Array:
        if field.name not in self._shown:
            return pa.nulls(rows, field.type)
        index, codec = self._shown[field.name]
        column = columns[index]
        values = codec.to_arrow(column.text)
        if column.unchanged is not None:
            values = pc.if_else(pa.array(np.asarray(column.unchanged)), pa.scalar(None, values.type), values)
        if values.type != field.type:
            values = pc.cast(values, field.type, safe=False)
        return values


@dataclass(frozen=True)
class RowVersions:
    """Makes the table versions of ``format=rows``."""

    options: PostgresOptions
    schema: pa.Schema

    def __call__(self, relation: Relation) -> TableVersion:
        """Return the version for a relation."""
        return RowVersion(relation, self.options, self.schema.field("after").type)
