"""What all Iceberg tables that can be compared with the source have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pyarrow as pa

from floodmark.errors import TargetChangedError, TargetError
from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.delta.parts import OPERATION
from floodmark.sinks.delta.stores import FolderMarks
from floodmark.sinks.delta.tables import query_of
from floodmark.sinks.iceberg.columns import RENAMED, fitted
from floodmark.sinks.iceberg.layout import stored
from floodmark.sinks.iceberg.protocols import CatalogTable
from floodmark.sinks.iceberg.state import DELETES, KEY, OWNER, Snapshot, TableState
from floodmark.sinks.options import Mode
from floodmark.sinks.soft_deletes import DELETED
from floodmark.sinks.verifiable import as_they_are

_ATTEMPTS = 20


class MetadataView:
    """What a ``TargetView`` of an Iceberg table tells from the table's metadata.

    Args:
        name: the source's name of the table.
        state: the table's.
        snapshot: the id of the snapshot.
    """

    def __init__(self, name: str, state: TableState, snapshot: int) -> None:
        self._name = name
        self._state = state
        self._snapshot = snapshot

    @property
    def version(self) -> str:
        """The snapshot's id."""
        return str(self._snapshot)

    @property
    def key(self) -> Sequence[str]:
        """The columns of the key; empty if it has none."""
        found = self._state.properties.get(KEY)
        return found.split(",") if found else []

    @property
    def mode(self) -> Mode:
        """What becomes of rows that are changed or deleted."""
        return cast(Mode, self._state.properties.get(DELETES, "hard"))

    @property
    def query(self) -> str | None:
        """The id of the query that writes it; None if that isn't known."""
        return query_of(self._state.properties.get(OWNER))

    @property
    def shape(self) -> Callable[[pa.Table], pa.Table]:
        """Nothing is changed: the target has types for all values of typed rows."""
        return as_they_are

    def names(self) -> Sequence[str]:
        """Return the names of its columns, besides those that a target has for itself."""
        own = (POSITION, OPERATION, DELETED, RENAMED[DELETED])
        return [name for name in self._state.columns.names if name not in own]

    def fitted(self, source: pa.Schema) -> pa.Schema:
        """Return the columns that both have, with a type that holds the values of both."""
        columns, wider = fitted(self._state.columns, source, self._name)
        held = set(self._state.columns.names)
        return pa.schema([(one.name, stored(wider.get(one.name, one.type))) for one in columns if one.name in held])


def until_deleted(name: str, attempt: Callable[[], int | None]) -> int:
    """Delete rows of the newest snapshot, and return how many those were.

    Args:
        name: the source's name of the table.
        attempt: deletes them; None: others were faster.

    Raises:
        TargetChangedError: others were faster each time.
    """
    for _ in range(_ATTEMPTS):
        count = attempt()
        if count is not None:
            return count
    raise TargetChangedError(
        f"Other writers changed the Iceberg table '{name}' each of the {_ATTEMPTS} times that rows were to be deleted.",
        "Verify again.",
    )


def prove_written(name: str, marks: FolderMarks) -> None:
    """Check that a table gets rows.

    Args:
        name: the source's name of the table.
        marks: those of tables that are set aside.

    Raises:
        TargetError: it is set aside.
    """
    if marks.get(name) is not None:
        raise TargetError(
            f"The target '{name}' is set aside: it gets no rows.",
            "Mend the cause, which floodmark status shows, and drop it.",
        )


def verified_state(table: CatalogTable, name: str, marks: FolderMarks) -> tuple[TableState, Snapshot]:
    """Return the newest state of a table that can be compared, and its snapshot; the table is opened.

    Args:
        table: the table.
        name: the source's name of it.
        marks: those of tables that are set aside.

    Raises:
        TargetError: there is no table, or it is set aside, or can't be read.
    """
    prove_written(name, marks)
    try:
        state = table.state("")
    except table.failures as error:
        raise table.failure(error) from error
    if state is None or state.head is None:
        raise TargetError(
            f"There is no Iceberg table for '{name}'.",
            "A mirror makes it with the first micro-batch that has rows of the table.",
        )
    return state, state.head
