"""Reads what the files of a Delta table hold of changed rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from floodmark.sinks.delta.format.data_files import POSITION, DataFiles, living
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.statistics import may_hold
from floodmark.sinks.delta.format.vectors import NO_VECTOR, Rows, Vector, read_vector
from floodmark.sinks.delta.planning.kept import Kept
from floodmark.sinks.keys import FileKeys, KeyIndex

Numbers = npt.NDArray[np.int64]

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
        return self._kept.vectors.get((self._name, *file.identity), lambda: read_vector(vector, self._files.bytes_of))

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

    def read(self, file: DataFile, columns: pa.Schema) -> pa.Table:
        """Return columns of all rows, deleted ones included.

        Args:
            columns: their names and types.
        """
        return self._files.read_columns(file, columns)


class FileRows:
    """The rows of one file.

    Args:
        rows: those of the table.
        file: which of its files.
        key: names and types of the key's columns.
    """

    def __init__(self, rows: TargetRows, file: DataFile, key: pa.Schema) -> None:
        self._rows = rows
        self._file = file
        self._key = key

    def find(self, index: KeyIndex) -> tuple[Numbers, Numbers]:
        """Return which of them have a key of an index, ascending, and which key each of these has."""
        return self._rows.find(self._file, self._key, index)

    def column(self, field: pa.Field) -> pa.ChunkedArray:
        """Return a column of all of them.

        Args:
            field: its name and type.
        """
        return self._rows.read(self._file, pa.schema([field]))[field.name]


class HeldFiles:
    """The rows of several files.

    Args:
        rows: those of the table.
        files: which of its files.
        key: names and types of the key's columns.
    """

    def __init__(self, rows: TargetRows, files: Sequence[DataFile], key: pa.Schema) -> None:
        self._rows = rows
        self._files = files
        self._key = key

    def keys(self) -> pa.Table:
        """Return the keys of all rows that are not deleted."""
        found = (self._rows.living_keys(file, self._key) for file in self._files)
        return pa.concat_tables([self._key.empty_table(), *found])

    def with_keys(self, keys: pa.Table, columns: pa.Schema) -> list[FileRows]:  # noqa: ARG002
        """Return the rows of those files that may have one of some keys; a file's columns are read when asked for."""
        index = KeyIndex(keys)
        return [FileRows(self._rows, file, self._key) for file in self._files if may_hold(file, index)]
