"""Files beside those of a table, from which Spark reads what it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from floodmark.json_data import Json
from floodmark.sinks.delta.compaction import rewritten
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.vectors import Rows
from floodmark.sinks.delta.parts import Part

Add = Mapping[str, Json]


class Staged:
    """What a micro-batch makes of a table. No commit names its files, so ``VACUUM`` removes those that are left.

    Args:
        files: those of the table.

    Attributes:
        rows: the names of files with rows that the table gets.
        deletes: the names of files with the keys and positions of rows that it loses.
    """

    def __init__(self, files: DataFiles) -> None:
        self._files = files
        self._adds: list[Add] = []
        self.rows: list[str] = []
        self.deletes: list[str] = []

    def own(self, parts: Sequence[Part]) -> None:
        """Remove the files of parts, too, when all are removed."""
        self._adds += [add for part in parts for add in part.adds]

    def file(self, rows: pa.Table, key: Sequence[str]) -> str:
        """Write rows and return the file's name."""
        (add,) = self._files.write(rows, key)
        self._adds.append(add)
        return str(add["path"])

    def add_rows(self, add: Add, lost: Rows, count: int, key: Sequence[str]) -> None:
        """Let the table get the rows of a file, without those that are lost.

        Args:
            add: the content of the action that would add it.
            lost: numbers of rows.
            count: how many rows it has.
            key: the columns of the key.
        """
        if len(lost) == count:
            return
        if len(lost):
            kept = rewritten(self._files, [(DataFile.from_json(dict(add)), lost)], key).add
            assert kept is not None
            self._adds.append(kept)
            add = kept
        self.rows.append(str(add["path"]))

    def discard(self) -> None:
        """Remove the files."""
        self._files.discard(self._adds)
