"""Typed rows instead of events: ``format=rows``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.config.common import CommonOptions
from floodmark.rows.arrays import Mask, valid
from floodmark.rows.raw_column import RawColumn
from floodmark.rows.structure import Structure
from floodmark.rows.table_version import TableVersion

NAMES = pa.list_(pa.field("element", pa.string()))

NOTHING = pa.scalar([], NAMES)

FIXED = [
    ("op", pa.string()),
    ("position", pa.string()),
    ("source_ts", pa.timestamp("us", tz="UTC")),
    ("txid", pa.string()),
    ("key", NAMES),
    ("unavailable", NAMES),
    ("unrepresentable", NAMES),
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
        self._key_names = pa.scalar([self.names[index] for index in self._key_columns], NAMES)

    @property
    def tombstones(self) -> bool:
        """Typed rows have no tombstones."""
        return False

    def values(self, columns: Sequence[RawColumn]) -> list[pa.Array]:
        """Return the rows' values in the schema's types; what the log lacks or the type doesn't hold is null."""
        return [values for values, _ in self._converted(columns)]

    def encode(self, columns: Sequence[RawColumn]) -> list[Any]:
        """Return the rows' values in the schema's types, then the names of those that are null without being NULL.

        First of those that the log lacks, then of those that the type doesn't hold.
        """
        return self._encoded_rows(columns, [column.unchanged for column in columns])

    def encode_old(self, columns: Sequence[RawColumn], complete: bool) -> list[Any]:
        """Return the same of old rows.

        Args:
            columns: as the log holds them.
            complete: whether all columns are in the log; otherwise null stands for what is missing.
        """
        if complete:
            return self.encode(columns)
        # What the log holds of such a row is its replica identity, which has no nulls.
        lacking = [~valid(column.values) if column.values.null_count else None for column in columns]
        return self._encoded_rows(columns, lacking)

    def left_by_create(self, before: Sequence[Any]) -> Sequence[Any]:
        """Return the old row: its key tells which row of the target has the values that the log lacks."""
        return before

    def keys(self, row: Sequence[Any], rows: int, bare: bool = False) -> pa.StringArray:
        """Return no keys: rows hold the columns themselves."""
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
        """Return the columns ``before`` and ``after``, what the latter lacks (of a delete the former), and the key."""
        del operation, source, transaction
        row = before if after is None else after
        return {
            "before": self._structure(before, rows),
            "after": self._structure(after, rows),
            "unavailable": pa.repeat(NOTHING, rows) if row is None else row[-2],
            "unrepresentable": pa.repeat(NOTHING, rows) if row is None else row[-1],
            "key": pa.repeat(self._key_names, rows),
        }

    def _structure(self, values: Sequence[Any] | None, rows: int) -> pa.Array:
        if values is None:
            return pa.nulls(rows, self._type)
        return pa.StructArray.from_arrays(list(values[:-2]), fields=list(self._type))

    def _encoded_rows(self, columns: Sequence[RawColumn], lacking: Sequence[Mask | None]) -> list[Any]:
        rows = len(columns[0].values) if columns else 0
        converted = self._converted(columns)
        places = [self._shown.get(field.name) for field in self._type]
        unavailable = [None if place is None else lacking[place[0]] for place in places]
        return [
            *(values for values, _ in converted),
            self._named(unavailable, rows),
            self._named([lost for _, lost in converted], rows),
        ]

    def _named(self, masks: Sequence[Mask | None], rows: int) -> pa.ListArray:
        """Return the names of each row's columns that are masked, shape (rows,).

        Args:
            masks: one for each of the schema's columns, shape (rows,); None: none of its rows.
            rows: how many.
        """
        found = [(field.name, mask) for field, mask in zip(self._type, masks, strict=True) if mask is not None]
        if not found:
            return pa.repeat(NOTHING, rows)
        each = np.stack([mask for _, mask in found], axis=1)
        offsets = np.zeros(rows + 1, np.int32)
        np.cumsum(each.sum(axis=1), out=offsets[1:])
        names = pa.array([name for name, _ in found], pa.string()).take(pa.array(np.nonzero(each)[1]))
        return pa.ListArray.from_arrays(pa.array(offsets), names, type=NAMES)

    def _converted(self, columns: Sequence[RawColumn]) -> list[tuple[pa.Array, Mask | None]]:
        """Return for each of the schema's columns its values, and which of them its type doesn't hold."""
        rows = len(columns[0].values) if columns else 0
        return [self._values(columns, field, rows) for field in self._type]

    def _values(self, columns: Sequence[RawColumn], field: pa.Field, rows: int) -> tuple[pa.Array, Mask | None]:
        if field.name not in self._shown:
            return pa.nulls(rows, field.type), None
        index, codec = self._shown[field.name]
        column = columns[index]
        values = codec.to_arrow(column.values)
        lost = None
        if values.null_count > column.values.null_count:
            lost = valid(column.values) & ~valid(values)
        if column.unchanged is not None:
            values = pc.if_else(pa.array(np.asarray(column.unchanged)), pa.scalar(None, values.type), values)
        if values.type != field.type:
            values = pc.cast(values, field.type, safe=False)
        return values, lost


@dataclass(frozen=True)
class RowVersions:
    """Makes the table versions of ``format=rows``."""

    options: CommonOptions
    schema: pa.Schema

    def __call__(self, structure: Structure) -> TableVersion:
        """Return the version for a structure."""
        return RowVersion(structure, self.options, self.schema.field("after").type)
