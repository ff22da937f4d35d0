"""Rewrites small data files of a Delta table as larger ones, so that readers have few files to open."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.json_data import Json
from floodmark.sinks.delta.format.data_files import DataFiles, alive
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.partitions import in_kinds
from floodmark.sinks.delta.format.vectors import Rows

Numbers = npt.NDArray[np.int64]

_SMALLEST_BYTES = 1 << 16
"""Files up to this size are of the lowest tier."""
_LARGE_BYTES = 1 << 27
"""Files of this size are left alone, and files are not rewritten together beyond twice of it."""
_SPARSE = 0.5
"""A file of which more is deleted is rewritten alone."""


def due(files: Iterable[DataFile], together: int, kind: Callable[[DataFile], bool]) -> list[list[DataFile]]:
    """Return the files to be rewritten, in groups that become one file each.

    Files of about the same size in a partition belong to a tier, each of which is so many times as large as the one
    below. A tier that is full is rewritten, so a row is rewritten once a tier, as in a log-structured merge tree.

    Args:
        files: those of the table.
        together: how many files fill a tier; at least 2.
        kind: tells files apart that don't become one.
    """
    tiers: dict[tuple[int, bool, frozenset[tuple[str, str | None]]], list[DataFile]] = defaultdict(list)
    groups = []
    for file in files:
        size = _number(file.add.get("size"))
        rows = _number(file.statistics.get("numRecords"))
        if file.vector is not None and rows and file.vector.rows > rows * _SPARSE and size > _SMALLEST_BYTES:
            groups.append([file])
        elif size < _LARGE_BYTES:
            level = max(0, math.floor(math.log(max(size, 1) / _SMALLEST_BYTES, together)) + 1)
            tiers[level, kind(file), frozenset(file.partition.items())].append(file)
    for _, tier in sorted(tiers.items(), key=lambda one: one[0][0]):
        if len(tier) >= together:
            groups.append(_up_to(tier, 2 * _LARGE_BYTES))
    return groups


@dataclass(frozen=True)
class Rewritten:
    """Rows of files that were written as one file.

    Attributes:
        add: the content of the action that adds the file; None: no rows are left.
        rows: how many rows it has.
        places: for each of the earlier files, the number that each of its rows has in the new one; -1: none, since it
            was deleted.
    """

    add: dict[str, Json] | None
    rows: int
    places: Sequence[Numbers]


def rewritten(
    files: DataFiles,
    group: Sequence[tuple[DataFile, Rows]],
    key: Sequence[str],
    kinds: Mapping[str, pa.DataType] | None = None,
) -> Rewritten:
    """Write the living rows of files as one file.

    Args:
        files: the table's.
        group: some of one partition, with the rows of each that are deleted.
        key: the columns by which the file is sorted, and whose statistics the log gets.
        kinds: types that columns get, by their names.

    Raises:
        ArrowException: the files have columns that no type holds together.
    """
    parts, places, count = [], [], 0
    for file, deleted in group:
        every = files.read(file)
        kept = alive(every.num_rows, deleted)
        place = np.full(every.num_rows, -1)
        parts.append(every.filter(pa.array(kept)))
        place[kept] = np.arange(count, count + parts[-1].num_rows)
        count += parts[-1].num_rows
        places.append(place)
    rows = pa.concat_tables(parts, promote_options="permissive").combine_chunks()
    if not rows.num_rows:
        return Rewritten(None, 0, places)
    rows = rows.cast(pa.schema([one.with_type((kinds or {}).get(one.name, one.type)) for one in rows.schema]))
    order = pc.sort_indices(rows, sort_keys=files.sorting(key, rows.column_names)) if key else None
    if order is not None:
        rows = rows.take(order)
        number = np.empty(count + 1, np.int64)
        number[order.to_numpy()], number[-1] = np.arange(count), -1
        places = [number[place] for place in places]
    add = files.write_one(rows, key, in_kinds(group[0][0].partition, kinds or {}))
    return Rewritten({**add, "dataChange": False}, count, places)


def _up_to(files: Sequence[DataFile], limit: int) -> list[DataFile]:
    """Return the first files that are not larger together; at least two."""
    chosen: list[DataFile] = []
    total = 0
    for file in files:
        total += _number(file.add.get("size"))
        if len(chosen) >= 2 and total > limit:
            break
        chosen.append(file)
    return chosen


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0
