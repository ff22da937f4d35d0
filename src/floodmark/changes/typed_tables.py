"""Typed rows of several tables in one stream: ``format=tables``.

Each table has a column of its own. It is a list, which holds the row in rows of its table and is null in rows of other
tables. So a row costs only four bytes for each other table, not the width of that table's columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.changes.schema_changes import differences, heed, leave_out
from floodmark.changes.structure import Structure
from floodmark.changes.table_version import TableVersion
from floodmark.changes.typed_rows import FIXED, NAMES, TABLE, RowVersion, rows_schema
from floodmark.config.common import CommonOptions
from floodmark.events.columns import EventGroup, assemble

PLACE = [("database", pa.string()), ("schema", pa.string()), ("table", pa.string())]
_NEW = ("it is none of the tables that the query was made with",)


def typed_schema(options: CommonOptions, rows: Mapping[str, pa.StructType]) -> pa.Schema:
    """Return the schema of ``format=rows`` or ``format=tables``.

    Args:
        options: the source's options.
        rows: the types of the tables' rows, by ``schema.table``; only one for ``format=rows``.
    """
    if options.format == "rows":
        ((table, row),) = rows.items()
        return rows_schema(table, row)
    return pa.schema([*FIXED[:2], *PLACE, *FIXED[2:], *((table, _column(row)) for table, row in rows.items())])


def row_types(options: CommonOptions, schema: pa.Schema) -> dict[str, pa.StructType]:
    """Return the types of the tables' rows by ``schema.table``, which ``format=rows`` has only in its metadata.

    Args:
        options: the source's options.
        schema: what ``typed_schema`` returned, or what Spark made of it.
    """
    if options.format == "rows":
        return {(schema.metadata or {}).get(TABLE, b"").decode(): schema.field("after").type}
    return {field.name: _row(field) for field in list(schema)[len(FIXED) + len(PLACE) :]}


def without_unknown(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a batch that belong to the query's tables."""
    key = batch.column("key")
    return batch.filter(pc.is_valid(key)) if key.null_count else batch


def _row(column: pa.Field) -> pa.StructType:
    return column.type.value_type.field("after").type


def _column(row: pa.StructType) -> pa.ListType:
    return pa.list_(pa.field("element", pa.struct([("before", row), ("after", row)])))


class TableRowVersion(RowVersion):
    """A table version whose rows go into the table's column."""

    def _sides(self, before: pa.StructArray, after: pa.StructArray) -> dict[str, pa.Array]:
        kind = _column(self._type)
        each = pa.StructArray.from_arrays([before, after], fields=list(kind.value_type))
        offsets = pa.array(np.arange(len(each) + 1, dtype=np.int32))
        return {f"{self.structure.schema}.{self.structure.table}": pa.ListArray.from_arrays(offsets, each, type=kind)}


class UnknownTableVersion(RowVersion):
    """A version of a table that the query has no column for: its rows have no key, and ``without_unknown`` drops them.

    Args:
        structure: the table.
        options: the source's options.
        settled: the log up to this position was written before the query was made.
    """

    def __init__(self, structure: Structure, options: CommonOptions, settled: str) -> None:
        super().__init__(structure, options, pa.struct([]), settled)
        self._differences = _NEW
        self._key_names = pa.scalar(None, NAMES)

    def admit(self, place: str | None) -> None:
        """Leave out rows from before the query was made, and refuse others.

        Raises:
            SchemaChangeError: a row is newer than the query, and ``schema.changes`` is ``fail``.
        """
        if place is not None and place <= self._settled:
            leave_out(f"{self.structure.schema}.{self.structure.table}")
        super().admit(place)

    def _sides(self, before: pa.StructArray, after: pa.StructArray) -> dict[str, pa.Array]:
        del before, after
        return {}


@dataclass(frozen=True)
class RowVersions:
    """Makes the table versions of typed rows.

    Args:
        options: the source's options.
        schema: the query's columns.
        settled: up to this position in the log tables may differ from the schema.
    """

    options: CommonOptions
    schema: pa.Schema
    settled: str = ""

    def __call__(self, structure: Structure) -> TableVersion:
        """Return the version for a structure."""
        if self.options.format == "rows":
            return RowVersion(structure, self.options, self.schema.field("after").type, self.settled)
        index = self.schema.get_field_index(f"{structure.schema}.{structure.table}")
        if index < 0:
            return UnknownTableVersion(structure, self.options, self.settled)
        return TableRowVersion(structure, self.options, _row(self.schema.field(index)), self.settled)

    def assemble(self, groups: list[EventGroup]) -> pa.RecordBatch | None:
        """Return the rows of groups in their order."""
        return assemble(groups, self.schema)


def prove_same(options: CommonOptions, made: pa.Schema, now: pa.Schema) -> None:
    """Raise or warn, as ``schema.changes`` requires, if tables have changed since a query was made.

    Args:
        options: the source's options.
        made: the query's columns.
        now: what they would be now.

    Raises:
        SchemaChangeError: tables have changed, and the option is ``fail``.
    """
    known = row_types(options, made)
    for table, row in row_types(options, now).items():
        # Spark drops the metadata, which holds the only table's name.
        before = next(iter(known.values())) if options.format == "rows" else known.get(table)
        found = _NEW if before is None else differences({field.name: field.type for field in row}, before)
        if found:
            heed(options, table, found, "since the DataFrame was loaded")
