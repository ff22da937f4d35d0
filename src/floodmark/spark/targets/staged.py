"""Files from which Spark reads what it writes to a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from floodmark.json_data import Json
from floodmark.sinks.delta.compaction import rewritten
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.vectors import Rows
from floodmark.sinks.delta.parts import Part, by_file, fitting
from floodmark.sinks.delta.planning.complete_parts import completed
from floodmark.sinks.delta.planning.merged_parts import MergedParts
from floodmark.spark.targets.held import HeldBySpark
from floodmark.spark.targets.merged import MergedTable

Add = Mapping[str, Json]


class Staged:
    """What a micro-batch makes of a table. No commit names its files.

    Args:
        files: writes them, such as beside those of the table.

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

    def discard(self, keep: Sequence[Part] = ()) -> None:
        """Remove the files.

        Args:
            keep: parts whose own files stay, since they are needed if it is tried again.
        """
        kept = {add["path"] for part in keep for add in part.adds}
        self._files.discard(add for add in self._adds if add["path"] not in kept)


def stage(
    files: DataFiles,
    table: MergedTable,
    session: SparkSession,
    parts: Sequence[Part],
    key: Sequence[str],
    columns: pa.Schema,
    soft: bool,
) -> tuple[Staged, str]:
    """Write files with what a table gets and loses; return them, and the position of a truncate, empty without one.

    Args:
        files: where they are written.
        table: the table, in which values are looked up that changes lack.
        session: the one that reads it.
        parts: of the table; at least one.
        key: the columns of the key.
        columns: those of the parts with the types that they have in the table.
        soft: whether deleted rows are only marked.
    """
    staged = Staged(files)
    staged.own(parts)
    parts = [fitting(files, part, columns) for part in parts]
    staged.own(parts)
    if not key:
        staged.rows += [str(add["path"]) for part in parts for add in part.adds]
        return staged, ""
    held = HeldBySpark(table, session, pa.schema([columns.field(name) for name in key]), staged.file)
    parts, truncated = completed(files, parts, key, columns, held, soft)
    staged.own(parts)
    merged = MergedParts.of(parts, truncated)
    for number, part in enumerate(parts):
        for add, count, lost in by_file(part.adds, merged.lost_rows(number, part.rows)):
            staged.add_rows(add, lost, count, key)
    deleted = merged.deleted([part.rows for part in parts])
    if deleted.num_rows:
        staged.deletes.append(staged.file(deleted, key))
    return staged, truncated
