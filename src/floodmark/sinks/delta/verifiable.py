"""Delta tables as targets that can be compared with the source."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from deltalake import Schema

from floodmark.errors import TargetChangedError, TargetError
from floodmark.json_data import JsonObject
from floodmark.sinks.delta.format.data_files import POSITION, DataFiles
from floodmark.sinks.delta.format.log import DataFile, DeltaLog, State, commit_info, now_ms
from floodmark.sinks.delta.format.vectors import damaged
from floodmark.sinks.delta.parts import OPERATION
from floodmark.sinks.delta.planning.counted_rows import CountedRows, counted, marked
from floodmark.sinks.delta.planning.target_rows import KeptRows, TargetRows
from floodmark.sinks.delta.stores import FolderMarks, table_folder
from floodmark.sinks.delta.tables import (
    DELETES_PROPERTY,
    KEY_PROPERTY,
    VECTORS_PROPERTY,
    fitted,
    owner,
    properties_in,
    prove_writable,
    query_of,
)
from floodmark.sinks.history import VALIDITY
from floodmark.sinks.options import Mode
from floodmark.sinks.soft_deletes import DELETED
from floodmark.sinks.verifiable import as_they_are

_OWN: Mapping[Mode, Sequence[str]] = {
    "hard": (POSITION, OPERATION),
    "soft": (POSITION, DELETED),
    "history": (POSITION, *VALIDITY.names),
}
"""Columns that a target has for itself."""
_ATTEMPTS = 20


class DeltaTarget:
    """A ``VerifiableTarget``.

    Args:
        location: a path, or a URI such as ``s3://bucket/tables``, below which the tables are.
        table: the source's name of the table.
    """

    replaces_doubled = True

    def __init__(self, location: str, table: str) -> None:
        self._location = location
        self._table = table
        self._marks = FolderMarks(location)
        self._state: State | None = None
        self._kept = KeptRows()

    def exists(self) -> bool:
        """Return whether there is a table, or a mark of one that is set aside."""
        return not self._marks.is_removed(self._table)

    def prove_written(self) -> None:
        """Check that the table gets rows.

        Raises:
            TargetError: it is set aside.
        """
        if self._marks.get(self._table) is not None:
            raise TargetError(
                f"The target '{self._table}' is set aside: it gets no rows.",
                "Mend the cause, which floodmark status shows, and remove its folder.",
            )

    def view(self) -> DeltaView:
        """Return the newest version.

        Raises:
            TargetError: there is no table, or it is set aside.
        """
        self.prove_written()
        if not self.exists():
            raise TargetError(
                f"There is no Delta table for '{self._table}'.",
                "A mirror makes it with the first micro-batch that has rows of the table.",
            )
        log = DeltaLog(table_folder(self._location, self._table).store)
        try:
            self._state = log.state() if self._state is None else log.state(self._state)
        except TargetChangedError:
            self._state = log.state()
        return DeltaView(self._location, self._table, self._state, self._kept)

    def delete(self, rows: pa.Table, for_good: bool = False) -> int:  # noqa: ARG002
        """Delete rows that are as they were found (``VerifiableTarget.delete``)."""
        for _ in range(_ATTEMPTS):
            view = self.view()
            if view.mode == "history":
                raise TargetError(
                    f"The target '{self._table}' is a history, which can't tell when rows were deleted that the "
                    "source hasn't.",
                    "Remove the target, and start the query with missing.tables=read.",
                )
            count, done = view.deleted(rows)
            if done:
                return count
        raise TargetChangedError(
            f"Other writers changed the Delta table '{self._table}' each of the {_ATTEMPTS} times that rows were to be "
            "deleted.",
            "Verify again.",
        )


class DeltaView:
    """A ``TargetView``: a table at a version.

    Args:
        location: a path or a URI, below which the tables are.
        table: the source's name of the table.
        state: the table's.
        kept: what its views keep in memory.
    """

    def __init__(self, location: str, table: str, state: State, kept: KeptRows) -> None:
        self._location = location
        self._table = table
        self._state = state
        self._store = table_folder(location, table).store
        self._properties = properties_in(state)
        files = DataFiles(self._store, table)
        self._counted = CountedRows(files, TargetRows(files, table, kept), state.files.values(), self.mode)

    @property
    def version(self) -> str:
        """The number of its last commit."""
        return str(self._state.version)

    @property
    def key(self) -> Sequence[str]:
        """The columns of the key; empty if it has none."""
        found = self._properties.get(KEY_PROPERTY)
        return found.split(",") if found else []

    @property
    def mode(self) -> Mode:
        """What becomes of rows that are changed or deleted."""
        return cast(Mode, self._properties.get(DELETES_PROPERTY, "hard"))

    @property
    def query(self) -> str | None:
        """The id of the query that writes it; None if that isn't known."""
        return query_of(owner(self._state))

    @property
    def row_estimate(self) -> int:
        """How many rows it has, if all files tell."""
        return self._counted.estimate

    @property
    def shape(self) -> Callable[[pa.Table], pa.Table]:
        """Nothing is changed: the target has the types of typed rows."""
        return as_they_are

    def names(self) -> Sequence[str]:
        """Return the names of its columns, besides those that a target has for itself."""
        return [name for name in self._schema().names if name not in _OWN[self.mode]]

    def fitted(self, source: pa.Schema) -> pa.Schema:
        """Return the columns that both have, with a type that holds the values of both."""
        columns, _ = fitted(self._state, source, self._table)
        held = set(self._schema().names)
        return pa.schema([field for field in columns if field.name in held])

    def parts(self) -> Sequence[DeltaPart]:
        """Return its files, small ones together."""
        return [DeltaPart(self._location, self._table, files, self.mode) for files in self._counted.parts()]

    def with_keys(self, keys: pa.Table, columns: pa.Schema) -> pa.Table:
        """Return the rows that have one of some keys, and their positions."""
        return self._counted.with_keys(keys, columns)

    def deleted(self, rows: pa.Table) -> tuple[int, bool]:
        """Delete rows that are as they were found, or mark them if the target keeps deleted rows.

        Args:
            rows: the columns of the key, and positions.

        Returns:
            How many those are, and whether no other writer was faster.
        """
        vectors = self._properties.get(VECTORS_PROPERTY) == "true"
        prove_writable(self._state, self._table, vectors)
        at = now_ms()
        actions, kept, count = self._counted.deleted(rows, self.key, vectors, self._schema(), at)
        if not actions:
            return 0, True
        metadata = JsonObject(self._state.metadata, f"The metadata of '{self._table}'", damaged)
        files = DataFiles(self._store, self._table, metadata.texts("partitionColumns"))
        actions += [{"add": add} for add in marked(files, kept, self.key)]
        log = DeltaLog(self._store)
        return count, log.commit(self._state.version + 1, [commit_info("DELETE", at), *actions])

    def _schema(self) -> pa.Schema:
        text = JsonObject(self._state.metadata, f"The metadata of '{self._table}'", damaged).text("schemaString")
        return pa.schema(Schema.from_json(json.dumps(json.loads(text))).to_arrow())


@dataclass(frozen=True)
class DeltaPart:
    """A ``TargetPart``: some of a table's files.

    Attributes:
        location: a path or a URI, below which the tables are.
        table: the source's name of the table.
        mode: what becomes of rows that are changed or deleted.
    """

    location: str
    table: str
    files: tuple[DataFile, ...]
    mode: Mode

    def rows(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows that equal the source's."""
        files = DataFiles(table_folder(self.location, self.table).store, self.table)
        for file in self.files:
            yield from counted(files, file, columns, self.mode)
