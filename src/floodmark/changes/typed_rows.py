"""Encodes typed rows instead of events, for ``format=rows``; :mod:`.typed_tables` does for ``format=tables``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.changes.schema_changes import differences, heed, holds
from floodmark.changes.structure import Structure
from floodmark.changes.table_version import KeyHeader, TableVersion
from floodmark.codecs.arrays import Mask, repeated, valid
from floodmark.codecs.raw_column import RawColumn
from floodmark.config.common import CommonOptions
from floodmark.errors import ConfigError, DecodeError

NAMES = pa.list_(pa.field("element", pa.string()))

TABLE = b"table"
"""The key of the table's name in a schema's metadata."""

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


def prove_shown(options: CommonOptions, tables: Sequence[str]) -> None:
    """Refuse filters that match no table, or tables that the format can't show.

    Args:
        options: the source's options.
        tables: the names of the captured tables, possibly with duplicates.

    Raises:
        ConfigError: no table matches, or several for ``format=rows``, or names that Spark can't distinguish.
    """
    counts = Counter(name.casefold() for name in tables)
    same = [name for name in tables if counts[name.casefold()] > 1]
    if options.format == "tables" and same:
        raise ConfigError(
            f"Option 'format' is 'tables', and Spark takes the names of these tables for one: {', '.join(same[:5])}.",
            "Capture one of them by table.include.list, and the others in queries of their own.",
        )
    if not tables or (len(tables) > 1 and options.format == "rows"):
        wanted = "exactly one captured table" if options.format == "rows" else "captured tables"
        found = ", ".join(tables[:5]) or "none"
        raise ConfigError(
            f"Option 'format' is '{options.format}', which needs {wanted}; the filters match {len(tables)} ({found}).",
            "Set table.include.list to one table, or format to tables (a column for each table) or events."
            if tables
            else "Correct table.include.list, or create the table before.",
        )


def rows_schema(table: str, row: pa.StructType) -> pa.Schema:
    """Return the schema of ``format=rows`` for a table."""
    return pa.schema([*FIXED, ("before", row), ("after", row)], metadata={TABLE: table})


class RowVersion(TableVersion):
    """A table version whose rows become typed structures of the query's schema.

    Columns that the schema lacks are left out. Columns that the table lacks, or has with a type whose values the
    schema's type doesn't hold, are null and unavailable.

    Args:
        structure: the table.
        options: the source's options.
        row: the schema's type of rows; None: the table's own columns.
        settled: up to this position in the log the table may differ from the schema.
    """

    holds_unknown = True

    def __init__(
        self, structure: Structure, options: CommonOptions, row: pa.StructType | None, settled: str = ""
    ) -> None:
        super().__init__(structure, options)
        self._options = options
        self._settled = settled
        self._shown = {
            self.names[field.column]: (field.column, codec) for field, codec in zip(self._row, self.codecs, strict=True)
        }
        kinds = {name: codec.arrow_type for name, (_, codec) in self._shown.items()}
        self._type = pa.struct(list(kinds.items())) if row is None else row
        self._differences = differences(kinds, self._type)
        self._absent = {f.name for f in self._type if f.name not in kinds or not holds(f.type, kinds[f.name])}
        self._key_names = pa.scalar([self.names[index] for index in self._key_columns], NAMES)

    @property
    def tombstones(self) -> bool:
        """Typed rows have no tombstones."""
        return False

    def values(self, columns: Sequence[RawColumn]) -> list[pa.Array]:
        """Return a batch read's rows in the schema's types; values that a type doesn't hold, except arrays, are null.

        Raises:
            DecodeError: an array doesn't fit its list type.
        """
        converted = self._converted(columns)
        for field, (_, lost) in zip(self._type, converted, strict=True):
            if lost is not None and pa.types.is_list(field.type):
                raise DecodeError(
                    f"The column '{field.name}' of {self.structure.schema}.{self.structure.table} has an array of more "
                    "than one dimension, or with an element that its type doesn't hold.",
                    "Leave the column out (column.exclude.list, or the columns given by .schema(…)), or such rows "
                    "(batch.where).",
                )
        return [values for values, _ in converted]

    def encode(self, columns: Sequence[RawColumn]) -> list[pa.Array]:
        """Return the rows' values in the schema's types, followed by two lists of names of columns for each row.

        They name the columns that are null without being NULL: first those whose value the log lacks, then those whose
        value the type doesn't hold.
        """
        return self._encoded_rows(columns, [column.unchanged for column in columns])

    def encode_old(self, columns: Sequence[RawColumn], complete: bool) -> list[pa.Array]:
        """Return the same for old rows.

        Args:
            columns: as the log holds them.
            complete: whether all columns are in the log; otherwise null means that the value is missing.
        """
        if complete:
            return self.encode(columns)
        # Of such a row the log holds only the replica identity, which has no nulls.
        lacking = [~valid(column.values) if column.values.null_count else None for column in columns]
        return self._encoded_rows(columns, lacking)

    def key_changed(self, old: Sequence[RawColumn], new: Sequence[RawColumn], complete: bool = False) -> Mask:
        """Return for each row whether both keys are known and differ, shape (rows,).

        An old key of which the log lacks a column counts as equal, as a delete with such a key would match no row.
        """
        changed = super().key_changed(old, new, complete)
        for index in self._key_columns:
            lacking = old[index].unchanged
            if lacking is not None:
                changed = changed & ~lacking
        return changed

    def admit(self, place: str | None) -> None:
        """Accept rows at a position in the log, or, for None, from the table, unless the table was altered.

        Raises:
            SchemaChangeError: the table was altered, and ``schema.changes`` is ``fail``.
        """
        if self._differences and (place is None or place > self._settled):
            when = "when it was read" if place is None else f"at {place} in the log"
            heed(self._options, f"{self.structure.schema}.{self.structure.table}", self._differences, when)

    def left_by_create(self, before: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """Return the old row: its key identifies the target's row that has the values that the log lacks."""
        return before

    def keys(self, row: Sequence[pa.Array], rows: int, bare: bool = False) -> pa.StringArray:
        """Return nulls: rows hold the key's columns themselves."""
        del row, bare
        return pa.nulls(rows, pa.string())

    def columns(
        self,
        operation: str,
        rows: int,
        before: Sequence[pa.Array] | None,
        after: Sequence[pa.Array] | None,
        source: Sequence[str | pa.StringArray],
        transaction: Sequence[str | pa.StringArray] | None = None,
        *,
        topic: str | pa.StringArray = "",
        header: KeyHeader | None = None,
    ) -> dict[str, pa.Array]:
        """Return the columns of the rows, the names that ``encode`` listed, and the key.

        The names are those of the new row, or of the old row of a delete.
        """
        del operation, source, transaction, topic, header
        row = before if after is None else after
        return {
            **self._sides(self._structure(before, rows), self._structure(after, rows)),
            "unavailable": repeated(NOTHING, rows) if row is None else row[-2],
            "unrepresentable": repeated(NOTHING, rows) if row is None else row[-1],
            "key": repeated(self._key_names, rows),
        }

    def _sides(self, before: pa.StructArray, after: pa.StructArray) -> dict[str, pa.Array]:
        """Return the columns that hold old and new rows."""
        return {"before": before, "after": after}

    def _structure(self, values: Sequence[pa.Array] | None, rows: int) -> pa.Array:
        if values is None:
            return pa.nulls(rows, self._type)
        return pa.StructArray.from_arrays(list(values[:-2]), fields=list(self._type))

    def _encoded_rows(self, columns: Sequence[RawColumn], lacking: Sequence[Mask | None]) -> list[pa.Array]:
        rows = len(columns[0].values) if columns else 0
        converted = self._converted(columns)
        unavailable = [
            np.ones(rows, np.bool_) if field.name in self._absent else lacking[self._shown[field.name][0]]
            for field in self._type
        ]
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
            return repeated(NOTHING, rows)
        # Row by row, ``nonzero`` yields the column numbers in the order that the offsets divide them.
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
        if field.name in self._absent:
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
            values = pc.cast(values, field.type)
        return values, lost
