"""Typed rows instead of events: ``format=rows``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.config.common import CommonOptions
from floodmark.rows.raw_column import RawColumn
from floodmark.rows.structure import Structure
from floodmark.rows.table_version import TableVersion

FIXED = [
    ("op", pa.string()),
    ("position", pa.string()),
    ("source_ts", pa.timestamp("us", tz="UTC")),
]


def rows_schema(row: pa.StructType) -> pa.Schema:
    """Return the columns of ``format=rows``."""
    return pa.schema([*FIXED, ("before", row), ("after", row)])


class RowVersion(TableVersion):
    """A table version whose rows become typed structures of the query's schema.

    Columns that the schema lacks are left out; columns that the table lacks are null.
    """

    holds_unknown = True

    def __init__(self, structure: Structure, options: CommonOptions, row: pa.StructType) -> None:
        super().__init__(structure, options)
        self._type = row
        self._shown = {
            self.names[field.column]: (field.column, codec) for field, codec in zip(self._row, self.codecs, strict=True)
        }

    @property
    def tombstones(self) -> bool:
        """Typed rows have no tombstones."""
        return False

    def encode(self, columns: Sequence[RawColumn]) -> list[Any]:
        """Return the rows' values in the schema's types; what the log lacks is null."""
        rows = len(columns[0].values) if columns else 0
        return [self._values(columns, field, rows) for field in self._type]

    def encode_old(self, columns: Sequence[RawColumn], complete: bool) -> list[Any]:
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

    def _values(self, columns: Sequence[RawColumn], field: pa.Field, rows: int) -> pa.Array:
        if field.name not in self._shown:
            return pa.nulls(rows, field.type)
        index, codec = self._shown[field.name]
        column = columns[index]
        values = codec.to_arrow(column.values)
        if column.unchanged is not None:
            values = pc.if_else(pa.array(np.asarray(column.unchanged)), pa.scalar(None, values.type), values)
        if values.type != field.type:
            values = pc.cast(values, field.type, safe=False)
        return values


@dataclass(frozen=True)
class RowVersions:
    """Makes the table versions of ``format=rows``."""

    options: CommonOptions
    schema: pa.Schema

    def __call__(self, structure: Structure) -> TableVersion:
        """Return the version for a structure."""
        return RowVersion(structure, self.options, self.schema.field("after").type)
