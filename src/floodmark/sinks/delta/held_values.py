"""Gives changes the values that the log lacks of them, from the rows that the target has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.sinks.keys import KeyIndex, row_codes
from floodmark.sinks.last_changes import LastChanges

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class SomeRows(Protocol):
    """Some rows of a target, in an order of their own."""

    def find(self, index: KeyIndex) -> tuple[Numbers, Numbers]:
        """Return which of them have a key of an index, ascending, and which key each of these has."""

    def column(self, field: pa.Field) -> pa.ChunkedArray:
        """Return a column of all of them.

        Args:
            field: its name and type.
        """


def filled(changes: LastChanges, target: Iterable[SomeRows]) -> LastChanges:
    """Return changes with the values that only the target has; null where it has no such row.

    Args:
        target: those of its rows that changes may need a value of.
    """
    rows = changes.rows
    for name, (numbers, values) in _values(changes, list(target)).items():
        source = np.full(rows.num_rows, -1)
        source[numbers] = np.arange(len(numbers))
        taken = values.take(pa.array(source, mask=source < 0))
        place = rows.column_names.index(name)
        rows = rows.set_column(place, rows.schema.field(name), _either(source >= 0, taken, rows[name]))
    return LastChanges(changes.truncated, rows, changes.positions, changes.deleted, {}, changes.held)


def _values(changes: LastChanges, target: Iterable[SomeRows]) -> Mapping[str, tuple[Numbers, pa.Array]]:
    """Return the values that the target has: for each column with some, for which changes, and the values."""
    found: dict[str, tuple[Numbers, pa.Array]] = {}
    for name, mask in changes.unavailable.items():
        chosen = np.flatnonzero(mask)
        held = changes.held.take(pa.array(chosen))
        # A row that is only marked as deleted, and the one that its key was changed to, have the same values.
        _, first, number = np.unique(row_codes(held), return_index=True, return_inverse=True)
        index = KeyIndex(held.take(pa.array(first)))
        parts = []
        for some in target:
            rows, matched = some.find(index)
            if len(rows):
                at = np.full(len(first), -1)
                at[matched] = rows
                at = at[number]
                column = some.column(changes.rows.schema.field(name))
                parts.append((chosen[at >= 0], column.take(pa.array(at[at >= 0])).combine_chunks()))
        if parts:
            found[name] = np.concatenate([one for one, _ in parts]), pa.concat_arrays([one for _, one in parts])
    return found


def _either(chosen: Mask, one: pa.Array, other: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([pc.if_else(pa.array(chosen), one, other.combine_chunks())])
