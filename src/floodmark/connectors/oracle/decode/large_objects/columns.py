"""The columns of changes that were put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.raw_column import RawColumn, take_columns
from floodmark.connectors.oracle.decode.large_objects.content import UNKNOWN
from floodmark.connectors.oracle.decode.large_objects.pending import Merged
from floodmark.connectors.oracle.decode.large_objects.statements import TableRows
from floodmark.connectors.oracle.structures.table import Column

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class TableColumns:
    """A table's rows before and after its changes, by column, in the changes' order."""

    old: Sequence[RawColumn]
    new: Sequence[RawColumn]

    def select(self, index: Numbers) -> TableColumns:
        """Return those of some of the changes."""
        return TableColumns(take_columns(self.old, index), take_columns(self.new, index))


def columns_of(changes: Sequence[Merged], rows: TableRows, columns: Sequence[Column]) -> TableColumns:
    """Return the columns of changes.

    Args:
        changes: at least one.
        rows: what they are made of.
        columns: the table's.
    """
    first = np.array([one.first for one in changes])
    new = [_new_column(changes, rows.new[number], number, column) for number, column in enumerate(columns)]
    return TableColumns(take_columns(rows.old, first), new)


def _new_column(changes: Sequence[Merged], statements: RawColumn, number: int, column: Column) -> RawColumn:
    sources = np.array([one.sources[number] for one in changes])
    taken = statements.take(sources)
    made = {place: one.values[number] for place, one in enumerate(changes) if number in one.values}
    if not made:
        return taken
    # An empty value is NULL where the column may be, as in Debezium.
    values = [
        None if one is UNKNOWN or (one in ("", b"") and _is_nullable_object(column)) else one for one in made.values()
    ]
    places, count = np.array(list(made)), len(changes)
    index = np.arange(count)
    index[places] = count + np.arange(len(made))
    joined = pa.concat_arrays([taken.values, pa.array(values, taken.values.type)]).take(pa.array(index))
    unknown = np.zeros(count, np.bool_) if taken.unchanged is None else taken.unchanged.copy()
    unknown[places] = [one is UNKNOWN for one in made.values()]
    return RawColumn(joined, unknown if unknown.any() else None)


def _is_nullable_object(column: Column) -> bool:
    return column.optional and column.type in ("CLOB", "NCLOB", "BLOB")
