"""Gives changes the values that the log lacks of them, from the rows that the target has.

The parts of which some need that are reduced together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.parts import Part, events_of, written
from floodmark.sinks.keys import KeyIndex, row_codes
from floodmark.sinks.last_changes import LastChanges, last_changes
from floodmark.sinks.soft_deletes import without_truncates

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


class HeldRows(Protocol):
    """The rows that a target has."""

    def keys(self) -> pa.Table:
        """Return the keys of all rows."""

    def with_keys(self, keys: pa.Table, columns: pa.Schema) -> Iterable[SomeRows]:
        """Return rows among which are all that have one of some keys.

        Args:
            keys: their columns.
            columns: the columns that are read of them.
        """


def completed(
    files: DataFiles, parts: Sequence[Part], key: Sequence[str], columns: pa.Schema, target: HeldRows, soft: bool
) -> tuple[Sequence[Part], str]:
    """Return parts of which none is open, and the position of the last truncate that they leave to be applied.

    Args:
        files: those of the table.
        parts: of a table with a key; at least one.
        key: the columns of the key.
        columns: the source's columns with the types that they have in the table.
        soft: whether deleted rows are only marked.
    """
    truncated = max(part.truncated for part in parts)
    if all(part.open is None for part in parts):
        return parts, truncated
    events = pa.concat_tables([events_of(files, part) for part in parts], promote_options="permissive")
    if truncated and soft:
        events, truncated = without_truncates(events, target.keys(), truncated), ""
    changes = last_changes(events, key)
    lacking = pa.schema([changes.rows.schema.field(name) for name in changes.unavailable])
    rows = target.with_keys(_held(changes, key[0]), lacking) if changes.unavailable else ()
    return [written(files, _filled(changes, rows), key, columns, truncated)], truncated


def _held(changes: LastChanges, first: str) -> pa.Table:
    """Return the keys under which the target has values that changes lack.

    Args:
        first: the first column of the key.
    """
    return changes.held.filter(pc.is_valid(changes.held[first]))


def _filled(changes: LastChanges, target: Iterable[SomeRows]) -> LastChanges:
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
