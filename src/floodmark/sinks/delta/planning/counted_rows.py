"""The rows of a target's files that equal the source's, as far as the target is right."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.json_data import Json
from floodmark.sinks.delta.format.data_files import POSITION, DataFiles
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.log_files import Action
from floodmark.sinks.delta.format.statistics import may_hold
from floodmark.sinks.delta.planning.row_deletions import RowDeletions
from floodmark.sinks.delta.planning.target_rows import KeptRows, Numbers, TargetRows
from floodmark.sinks.history import CURRENT
from floodmark.sinks.keys import KeyIndex
from floodmark.sinks.options import Mode
from floodmark.sinks.soft_deletes import DELETED

_MARKS: Mapping[Mode, str] = {"soft": DELETED, "history": CURRENT}
"""The column that says whether the source has a row."""
_PART_BYTES = 64 << 20
"""Small files are read by a task together, up to so many bytes."""
_THREADS = 4
_POSITIONS = pa.schema([(POSITION, pa.string())])


class CountedRows:
    """The rows of a table at one version.

    Args:
        files: the table's.
        rows: their rows.
        every: all files of the version.
        mode: what becomes of rows that are changed or deleted.
    """

    def __init__(self, files: DataFiles, rows: TargetRows, every: Collection[DataFile], mode: Mode) -> None:
        self._files = files
        self._rows = rows
        self._every = every
        self._mode = mode

    @property
    def estimate(self) -> int:
        """How many rows there are, if all files tell."""
        counts = (file.statistics.get("numRecords") for file in self._every)
        return sum(count for count in counts if isinstance(count, int))

    def parts(self) -> list[tuple[DataFile, ...]]:
        """Return the files, small ones together."""
        together: list[list[DataFile]] = []
        room = 0
        for file in self._every:
            size = file.add.get("size")
            size = size if isinstance(size, int) else _PART_BYTES
            if not together or size > room:
                together.append([])
                room = _PART_BYTES
            together[-1].append(file)
            room -= size
        return [tuple(files) for files in together]

    def with_keys(self, keys: pa.Table, columns: pa.Schema) -> pa.Table:
        """Return the rows that have one of some keys, and their positions (``TargetView``)."""
        wanted = pa.schema([*columns, *_POSITIONS])
        index, kinds = KeyIndex(keys), keys.schema
        files = [file for file in self._every if may_hold(file, index)]

        def found(file: DataFile) -> list[pa.Table]:
            rows, _ = self._rows.find(file, kinds, index)
            return list(counted(self._files, file, wanted, self._mode, rows)) if len(rows) else []

        with ThreadPoolExecutor(_THREADS) as pool:
            tables = [table for tables in pool.map(found, files) for table in tables]
        return pa.concat_tables([wanted.empty_table(), *tables])

    def deleted(
        self, rows: pa.Table, key: Sequence[str], vectors: bool, kinds: pa.Schema, at_ms: int
    ) -> tuple[list[Action], list[pa.Table], int]:
        """Return what deletes rows that are as they were found.

        Args:
            rows: the columns of the key, and positions.
            key: the columns by which files are sorted.
            vectors: whether rows are marked in deletion vectors; otherwise their files are written again.
            kinds: the table's columns.
            at_ms: the time, in milliseconds since the epoch.

        Returns:
            The actions, the rows themselves if deleted rows are to be marked, and how many they are.
        """
        deletions = RowDeletions(self._files, self._rows, vectors, key, at_ms)
        # The position belongs to the key here, so that rows that were written meanwhile aren't found.
        index = KeyIndex(rows)
        actions: list[Action] = []
        kept: list[pa.Table] = []
        count = 0
        for file in self._every:
            if not may_hold(file, index):
                continue
            found, _ = self._rows.find(file, rows.schema, index)
            if len(found):
                whole = self._rows.keys(file, rows.schema).columns.num_rows
                actions += deletions.of(file, whole, found.astype(np.uint64))
                count += len(found)
                if self._mode == "soft":
                    kept.append(self._files.read(file, kinds).take(pa.array(found)))
        if actions:
            deletions.finish()
        return actions, kept, count


def marked(files: DataFiles, rows: Sequence[pa.Table], key: Sequence[str]) -> Sequence[Mapping[str, Json]]:
    """Write rows again with the mark of those that are deleted, and return what adds the files.

    Args:
        files: the table's.
        rows: if there are none, nothing is written.
        key: the columns by which files are sorted.
    """
    if not rows:
        return []
    table = pa.concat_tables(rows, promote_options="permissive")
    at, marks = table.column_names.index(DELETED), pa.repeat(True, table.num_rows)
    table = table.set_column(at, DELETED, marks)
    return files.write(files.in_order(table, key), key)


def counted(
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
