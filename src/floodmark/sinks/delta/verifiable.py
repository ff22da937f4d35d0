"""Delta tables as targets that can be compared with the source."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import Schema

from floodmark.errors import TargetChangedError, TargetError
from floodmark.json_data import Json, JsonObject
from floodmark.sinks.delta.format.data_files import POSITION, DataFiles
from floodmark.sinks.delta.format.log import DataFile, DeltaLog, State, commit_info, now_ms
from floodmark.sinks.delta.format.log_files import Action
from floodmark.sinks.delta.format.statistics import may_hold
from floodmark.sinks.delta.format.vectors import damaged
from floodmark.sinks.delta.parts import OPERATION
from floodmark.sinks.delta.planning.row_deletions import RowDeletions
from floodmark.sinks.delta.planning.target_rows import KeptRows, Numbers, TargetRows
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
from floodmark.sinks.history import CURRENT, VALIDITY
from floodmark.sinks.keys import KeyIndex
from floodmark.sinks.options import Mode
from floodmark.sinks.soft_deletes import DELETED
from floodmark.sinks.verifiable import as_they_are

_OWN: Mapping[Mode, Sequence[str]] = {
    "hard": (POSITION, OPERATION),
    "soft": (POSITION, DELETED),
    "history": (POSITION, *VALIDITY.names),
}
"""Columns that a target has for itself."""
_MARKS: Mapping[Mode, str] = {"soft": DELETED, "history": CURRENT}
"""The column that says whether the source has a row."""
_PART_BYTES = 64 << 20
"""Small files are read by a task together, up to so many bytes."""
_ATTEMPTS = 20
_THREADS = 4
_POSITIONS = pa.schema([(POSITION, pa.string())])


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
        self._files = DataFiles(self._store, table)
        self._rows = TargetRows(self._files, table, kept)
        self._properties = properties_in(state)

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
        counts = (file.statistics.get("numRecords") for file in self._state.files.values())
        return sum(count for count in counts if isinstance(count, int))

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
        together: list[list[DataFile]] = []
        room = 0
        for file in self._state.files.values():
            size = file.add.get("size")
            size = size if isinstance(size, int) else _PART_BYTES
            if not together or size > room:
                together.append([])
                room = _PART_BYTES
            together[-1].append(file)
            room -= size
        return [DeltaPart(self._location, self._table, tuple(files), self.mode) for files in together]

    def with_keys(self, keys: pa.Table, columns: pa.Schema) -> pa.Table:
        """Return the rows that have one of some keys, and their positions."""
        wanted = pa.schema([*columns, *_POSITIONS])
        index, kinds = KeyIndex(keys), keys.schema
        files = [file for file in self._state.files.values() if may_hold(file, index)]

        def found(file: DataFile) -> list[pa.Table]:
            rows, _ = self._rows.find(file, kinds, index)
            return list(_counted(self._files, file, wanted, self.mode, rows)) if len(rows) else []

        with ThreadPoolExecutor(_THREADS) as pool:
            tables = [table for tables in pool.map(found, files) for table in tables]
        return pa.concat_tables([wanted.empty_table(), *tables])

    def deleted(self, rows: pa.Table) -> tuple[int, bool]:
        """Delete rows that are as they were found, or mark them if the target keeps deleted rows.

        Args:
            rows: the columns of the key, and positions.

        Returns:
            How many those are, and whether no other writer was faster.
        """
        vectors = self._properties.get(VECTORS_PROPERTY) == "true"
        prove_writable(self._state, self._table, vectors)
        at, log = now_ms(), DeltaLog(self._store)
        deletions = RowDeletions(self._files, self._rows, vectors, self.key, at)
        # The position belongs to the key here, so that rows that were written meanwhile aren't found.
        index = KeyIndex(rows)
        actions: list[Action] = []
        kept: list[pa.Table] = []
        count = 0
        for file in self._state.files.values():
            if not may_hold(file, index):
                continue
            found, _ = self._rows.find(file, rows.schema, index)
            if len(found):
                whole = self._rows.keys(file, rows.schema).columns.num_rows
                actions += deletions.of(file, whole, found.astype(np.uint64))
                count += len(found)
                if self.mode == "soft":
                    kept.append(self._files.read(file, self._schema()).take(pa.array(found)))
        if not actions:
            return 0, True
        actions += [{"add": add} for add in self._marked(kept)]
        deletions.finish()
        return count, log.commit(self._state.version + 1, [commit_info("DELETE", at), *actions])

    def _marked(self, rows: Sequence[pa.Table]) -> Sequence[Mapping[str, Json]]:
        """Write rows again with the mark of those that are deleted, and return what adds the files."""
        if not rows:
            return []
        metadata = JsonObject(self._state.metadata, f"The metadata of '{self._table}'", damaged)
        files = DataFiles(self._store, self._table, metadata.texts("partitionColumns"))
        table = pa.concat_tables(rows, promote_options="permissive")
        at, marks = table.column_names.index(DELETED), pa.repeat(True, table.num_rows)
        table = table.set_column(at, DELETED, marks)
        return files.write(files.in_order(table, self.key), self.key)

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
            yield from _counted(files, file, columns, self.mode)


def _counted(
    files: DataFiles, file: DataFile, columns: pa.Schema, mode: Mode, chosen: Numbers | None = None
) -> Iterator[pa.Table]:
    """Yield rows of a file that are not deleted, nor marked, nor past.

    Args:
        files: the table's.
        columns: names and types of the wanted columns.
        mode: what becomes of rows that are changed or deleted.
        chosen: numbers of the rows, ascending; None: all.
    """
    mark = _MARKS.get(mode)
    wanted = columns if mark is None else columns.append(pa.field(mark, pa.bool_()))
    gone = TargetRows(files, files.table, KeptRows()).deleted(file).astype(np.int64)
    for first, rows in files.groups(file, wanted, chosen):
        count = rows.num_rows
        if chosen is None:
            alive = np.ones(count, np.bool_)
        else:
            alive = np.zeros(count, np.bool_)
            begin, end = np.searchsorted(chosen, [first, first + count])
            alive[chosen[begin:end] - first] = True
        begin, end = np.searchsorted(gone, [first, first + count])
        alive[gone[begin:end] - first] = False
        if mark is not None:
            marked = np.asarray(pc.fill_null(rows[mark], False).to_numpy())
            alive &= ~marked if mark == DELETED else marked
        if alive.any():
            yield (rows if alive.all() else rows.filter(pa.array(alive))).select(columns.names)
