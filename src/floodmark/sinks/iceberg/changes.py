"""What a commit does to the files of an Iceberg table, and which files the table has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from floodmark.errors import TargetUnfitError
from floodmark.json_data import Json, JsonObject
from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.delta.format.log import DataFile, as_text
from floodmark.sinks.delta.format.log_files import Action
from floodmark.sinks.delta.format.vectors import ANYWHERE, FRAME_BYTES, Descriptor, damaged
from floodmark.sinks.iceberg.data_files import IcebergFiles
from floodmark.sinks.iceberg.layout import Layout, number_of

Files = Mapping[str, DataFile]
"""Data files by their paths."""
FILES = (
    "content",
    "file_path",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "lower_bounds",
    "upper_bounds",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)
"""Columns of a table's metadata table ``files`` that are read."""
_DATA, _POSITIONS = 0, 1
"""Kinds of content."""


@dataclass(frozen=True)
class Changes:
    """What a commit does.

    Attributes:
        added: data files that the table gets; one may have a deletion vector.
        removed: those that it loses, with the deletion vectors that they had.
        before: those of which other rows are deleted than before, as they were.
        after: the same ones, in that order, as they become.
    """

    added: Sequence[DataFile]
    removed: Sequence[DataFile]
    before: Sequence[DataFile] = ()
    after: Sequence[DataFile] = ()

    @classmethod
    def of(cls, actions: Iterable[Action], known: Files) -> Changes:
        """Create them from the actions that would make the same changes in a Delta table.

        Args:
            known: the files of the table.
        """
        adds, removes = {}, []
        for action in actions:
            for kind, content in action.items():
                file = DataFile.from_json(content)
                if kind == "add":
                    adds[file.path] = file
                else:
                    removes.append(file.path)
        changed = [path for path in removes if path in adds]
        return cls(
            [file for path, file in adds.items() if path not in known],
            [known[path] for path in removes if path not in adds],
            [known[path] for path in changed],
            [adds[path] for path in changed],
        )

    def applied(self, known: Files) -> dict[str, DataFile]:
        """Return the files that the table has after the commit, from those before it."""
        gone = {file.path for file in self.removed}
        kept = {path: file for path, file in known.items() if path not in gone}
        return kept | {file.path: file for file in (*self.after, *self.added)}

    @property
    def is_empty(self) -> bool:
        """Whether the commit changes no files."""
        return not (self.added or self.removed or self.after)


def files_of(rows: Iterable[Mapping[str, Any]], files: IcebergFiles, layout: Layout) -> dict[str, DataFile]:
    """Return the data files that a table has.

    Args:
        rows: those of the metadata table ``files``, with the columns ``FILES``.
        files: reads them.
        layout: the table's columns.

    Raises:
        TargetUnfitError: some are of a kind that isn't read here.
        TargetDamagedError: they aren't what Iceberg's specification says.
    """
    data, vectors = {}, {}
    kinds = {int(number): one for one in layout.columns if (number := number_of(one)) is not None}
    for row in rows:
        format_ = str(row["file_format"]).upper()
        if row["content"] == _DATA and format_ == "PARQUET":
            data[row["file_path"]] = row
        elif row["content"] == _POSITIONS and format_ == "PUFFIN":
            vectors[row["referenced_data_file"]] = _vector(row)
        else:
            what = (
                f"data files in {format_}" if row["content"] == _DATA else "delete files that aren't deletion vectors"
            )
            raise TargetUnfitError(
                f"The Iceberg table '{files.table}' has {what}, which Floodmark's own engine doesn't read.",
                "Let Spark write them again, with rewrite_data_files and then rewrite_position_delete_files, each with "
                "options => map('rewrite-all','true'), or set the mirror's option engine=spark.",
            )
    found = {}
    for location, row in data.items():
        path = quote(files.path(location), safe="/=:")
        add: dict[str, Json] = {
            "path": path,
            "size": row["file_size_in_bytes"],
            "partitionValues": {},
            "stats": as_text(_statistics(row, kinds)),
        }
        found[path] = DataFile(path, add, vectors.get(location))
    return found


def rows_in(file: DataFile) -> int:
    """Return how many rows a data file has, deleted ones included."""
    return JsonObject(file.statistics, "The statistics of a data file", damaged).integer("numRecords")


def _vector(row: Mapping[str, int | str]) -> Descriptor:
    offset, length, rows = (int(row[name]) for name in ("content_offset", "content_size_in_bytes", "record_count"))
    return Descriptor(ANYWHERE, str(row["file_path"]), offset, length - FRAME_BYTES, rows)


def _statistics(row: Mapping[str, object], kinds: Mapping[int, pa.Field]) -> dict[str, Json]:
    """Return the statistics by which files are skipped: those of whole numbers and positions."""
    sides = {}
    for side, name in (("minValues", "lower_bounds"), ("maxValues", "upper_bounds")):
        bounds = row[name]
        sides[side] = {
            kinds[number].name: _value(kinds[number].type, value)
            for number, value in (bounds if isinstance(bounds, list) else ())
            if number in kinds and (pa.types.is_integer(kinds[number].type) or kinds[number].name == POSITION)
        }
    count = row["record_count"]
    assert isinstance(count, int)
    return {"numRecords": count, **sides}


def _value(kind: pa.DataType, bound: bytes) -> Json:
    """Return a bound ("Appendix D: Single-value serialization")."""
    if pa.types.is_integer(kind):
        # It may be from before the column was widened.
        return int.from_bytes(bound, "little", signed=True)
    return bound.decode(errors="replace")
