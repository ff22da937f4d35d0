"""Reads what the files of a Delta table hold of changed rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import obstore
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.sinks.delta.format.data_files import POSITION, DataFiles, living
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.vectors import NO_VECTOR, Rows, Vector, read_vector
from floodmark.sinks.delta.kept import Kept
from floodmark.sinks.keys import FileKeys, KeyIndex, row_codes
from floodmark.sinks.last_changes import LastChanges

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_KEPT_BYTES = 1 << 28
"""How much memory the keys of files may take; about 32 million whole numbers."""
_POSITIONS = pa.schema([(POSITION, pa.string())])


class KeptRows:
    """What all tables of a mirror keep in memory together. A file is never written again, so it stays the same."""

    def __init__(self) -> None:
        self.keys: Kept[FileKeys] = Kept(_KEPT_BYTES)
        self.vectors: Kept[Vector] = Kept(_KEPT_BYTES // 4)


class TargetRows:
    """The rows of a table's files.

    Args:
        files: the table's.
        name: the table's.
        kept: where keys and deletion vectors are kept.
    """

    def __init__(self, files: DataFiles, name: str, kept: KeptRows) -> None:
        self._files = files
        self._name = name
        self._kept = kept

    def keys(self, file: DataFile, columns: pa.Schema) -> FileKeys:
        """Return the keys of all rows, deleted ones included.

        Args:
            columns: their names and types.
        """
        named = (self._name, file.path, *columns.names, *map(str, columns.types))
        return self._kept.keys.get(named, lambda: FileKeys(self.read(file, columns)))

    def deleted(self, file: DataFile) -> Rows:
        """Return the rows that are deleted."""
        return self.vector(file).rows

    def vector(self, file: DataFile) -> Vector:
        """Return the deletion vector of a file."""
        vector = file.vector
        if vector is None:
            return NO_VECTOR
        return self._kept.vectors.get((self._name, *file.identity), lambda: read_vector(vector, self._bytes))

    def positions(self, file: DataFile, rows: Numbers | None = None) -> pa.ChunkedArray:
        """Return the positions of rows' last changes; None: of all rows."""
        found = self.read(file, _POSITIONS)[POSITION]
        return found if rows is None else found.take(pa.array(rows))

    def living_keys(self, file: DataFile, columns: pa.Schema) -> pa.Table:
        """Return the keys of the rows that are not deleted.

        Args:
            columns: names and types of the key's columns.
        """
        return living(self.keys(file, columns).columns, self.deleted(file))

    def find(self, file: DataFile, columns: pa.Schema, index: KeyIndex) -> tuple[Numbers, Numbers]:
        """Return which rows have a key of an index, ascending, and which key each of them has.

        Args:
            columns: names and types of the key's columns.
        """
        rows, matched = index.find(self.keys(file, columns))
        deleted = self.deleted(file)
        if not len(deleted):
            return rows, matched
        alive = ~np.isin(rows, deleted.astype(np.int64), assume_unique=True)
        return rows[alive], matched[alive]

    def values(
        self, files: Sequence[DataFile], columns: pa.Schema, changes: LastChanges
    ) -> Mapping[str, tuple[Numbers, pa.Array]]:
        """Return the values that changes need of files: for each column with some, for which changes, and the values.

        Args:
            columns: names and types of the key's columns.
        """
        found: dict[str, tuple[Numbers, pa.Array]] = {}
        for name, mask in changes.unavailable.items():
            chosen = np.flatnonzero(mask)
            held = changes.held.take(pa.array(chosen))
            # A row that is only marked as deleted, and the one that its key was changed to, have the same values.
            _, first, number = np.unique(row_codes(held), return_index=True, return_inverse=True)
            index = KeyIndex(held.take(pa.array(first)))
            parts = []
            for file in files:
                rows, matched = self.find(file, columns, index)
                if len(rows):
                    at = np.full(len(first), -1)
                    at[matched] = rows
                    at = at[number]
                    column = self.read(file, pa.schema([changes.rows.schema.field(name)]))[name]
                    parts.append((chosen[at >= 0], column.take(pa.array(at[at >= 0])).combine_chunks()))
            if parts:
                found[name] = np.concatenate([one for one, _ in parts]), pa.concat_arrays([one for _, one in parts])
        return found

    def read(self, file: DataFile, columns: pa.Schema) -> pa.Table:
        """Return columns of all rows, deleted ones included.

        Args:
            columns: their names and types.
        """
        return self._files.read_columns(file, columns)

    def _bytes(self, path: str, offset: int, size: int) -> bytes:
        return bytes(obstore.get_range(self._files.store, path, start=offset, length=size))


def filled(changes: LastChanges, found: Mapping[str, tuple[Numbers, pa.Array]]) -> LastChanges:
    """Return changes with the values that the target has."""
    rows = changes.rows
    for name, (numbers, values) in found.items():
        source = np.full(rows.num_rows, -1)
        source[numbers] = np.arange(len(numbers))
        taken = values.take(pa.array(source, mask=source < 0))
        place = rows.column_names.index(name)
        rows = rows.set_column(place, rows.schema.field(name), _either(source >= 0, taken, rows[name]))
    return LastChanges(changes.truncated, rows, changes.positions, changes.deleted, {}, changes.held)


def _either(chosen: Mask, one: pa.Array, other: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([pc.if_else(pa.array(chosen), one, other.combine_chunks())])
