"""Reduces parts together where some of them need what only the target has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from obstore.store import ObjectStore

from floodmark.sinks.delta.held_values import SomeRows, filled
from floodmark.sinks.delta.parts import Part, events_of, written
from floodmark.sinks.last_changes import LastChanges, last_changes
from floodmark.sinks.soft_deletes import without_truncates


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
    store: ObjectStore, parts: Sequence[Part], key: Sequence[str], columns: pa.Schema, target: HeldRows, soft: bool
) -> tuple[Sequence[Part], str]:
    """Return parts of which none is open, and the position of the last truncate that they leave to be applied.

    Args:
        store: the table's folder.
        parts: of a table with a key; at least one.
        key: the columns of the key.
        columns: the source's columns with the types that they have in the table.
        soft: whether deleted rows are only marked.
    """
    truncated = max(part.truncated for part in parts)
    if all(part.open is None for part in parts):
        return parts, truncated
    events = pa.concat_tables([events_of(store, part) for part in parts], promote_options="permissive")
    if truncated and soft:
        events, truncated = without_truncates(events, target.keys(), truncated), ""
    changes = last_changes(events, key)
    lacking = pa.schema([changes.rows.schema.field(name) for name in changes.unavailable])
    rows = target.with_keys(_held(changes, key[0]), lacking) if changes.unavailable else ()
    return [written(store, filled(changes, rows), key, columns, truncated)], truncated


def _held(changes: LastChanges, first: str) -> pa.Table:
    """Return the keys under which the target has values that changes lack.

    Args:
        first: the first column of the key.
    """
    return changes.held.filter(pc.is_valid(changes.held[first]))
