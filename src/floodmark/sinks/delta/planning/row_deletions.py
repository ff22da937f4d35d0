"""Deletes rows of a Delta table's files, in deletion vectors or by writing the files again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import obstore

from floodmark.json_data import Json
from floodmark.sinks.delta.compaction import rewritten
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.log_files import Action
from floodmark.sinks.delta.format.vectors import Rows
from floodmark.sinks.delta.parts import by_file
from floodmark.sinks.delta.planning.target_rows import TargetRows

_THREADS = 4
T = TypeVar("T")


class RowDeletions:
    """What a commit deletes.

    Args:
        files: the table's.
        rows: their rows.
        vectors: whether rows are marked in deletion vectors; otherwise their files are written again.
        order: the columns by which files are sorted.
        at_ms: the time, in milliseconds since the epoch.
    """

    def __init__(self, files: DataFiles, rows: TargetRows, vectors: bool, order: Sequence[str], at_ms: int) -> None:
        self._files = files
        self._rows = rows
        self._vectors = files.vector_file() if vectors else None
        self._order = order
        self._at_ms = at_ms

    def of_files(self, work: Iterable[T], actions: Callable[[T], list[Action]]) -> list[Action]:
        """Return the actions for several files, which are written at the same time where they are written again."""
        with ThreadPoolExecutor(_THREADS if self._vectors is None else 1) as pool:
            return [action for found in pool.map(actions, work) for action in found]

    def of(self, file: DataFile, count: int, deleted: Rows) -> list[Action]:
        """Return the actions that delete rows of a file.

        Args:
            count: how many rows it has, deleted ones included.
            deleted: rows that are not deleted yet, each once.
        """
        if not len(deleted):
            return []
        vector = self._rows.vector(file)
        if len(vector.rows) + len(deleted) == count:
            return [file.removed(self._at_ms)]
        if self._vectors is None:
            return [file.removed(self._at_ms), *self._rewritten(file, np.concatenate([vector.rows, deleted]))]
        return file.added(self._vectors.add(deleted, vector.content, file.path), self._at_ms, count)

    def added(self, adds: Sequence[Mapping[str, Json]], lost: Rows) -> list[Action]:
        """Return the actions that add new data files without rows that are lost, if any are left.

        Args:
            adds: the contents of the actions that would add all rows.
            lost: numbers of rows, counted through all files, ascending.
        """
        return [action for add, count, rows in by_file(adds, lost) for action in self._added(add, count, rows)]

    def finish(self) -> None:
        """Write the deletion vectors, if there are any."""
        if self._vectors is not None and self._vectors.content:
            obstore.put(self._files.store, self._vectors.path, self._vectors.content)

    def _added(self, add: Mapping[str, Json], count: int, lost: Rows) -> list[Action]:
        if len(lost) == count:
            return []
        if not len(lost):
            return [{"add": add}]
        file = DataFile.from_json(dict(add))
        if self._vectors is None:
            return self._rewritten(file, lost)
        return [file.without(self._vectors.add(lost, file=file.path))]

    def _rewritten(self, file: DataFile, rows: Rows) -> list[Action]:
        """Write a file again without some of its rows, and return the action that adds it."""
        add = rewritten(self._files, [(file, rows)], self._order).add
        return [] if add is None else [{"add": {**add, "dataChange": True}}]
