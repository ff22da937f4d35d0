"""Values of partition columns, which the log has as texts, and which are no columns of the data files.

Format: the Delta protocol, section "Partition Value Serialization"; folders are named as Hive names them, since some
readers take the values from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.errors import TargetError, TargetUnfitError
from floodmark.sinks.keys import row_codes

Values = Mapping[str, str | None]
"""The values of partition columns, by their names."""

_MOST = 2_000
"""How many partitions a task may write rows of; each is a file."""
_LONGEST = 200
"""How many characters a folder's name may have for a value; file systems have names of up to 255 bytes."""
_NULL = "__HIVE_DEFAULT_PARTITION__"
"""Stands for null in the names of folders."""
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""Days from year 1 to year 9999, since the epoch."""


def is_partitionable(kind: pa.DataType) -> bool:
    """Return whether a table can be partitioned by a column of a type."""
    tests = (pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def partitions_of(rows: pa.Table, columns: Sequence[str], table: str) -> list[tuple[int, int, Values]]:
    """Return where rows of each partition begin and end, and the partition's values.

    Args:
        rows: sorted by these columns.
        columns: the partition columns; one that the rows lack is null.
        table: the table's name, for errors.

    Raises:
        TargetUnfitError: there is no such partition, or no folder for it.
        TargetError: there are too many partitions.
    """
    present = [name for name in columns if name in rows.column_names]
    if not present:
        return [(0, rows.num_rows, dict.fromkeys(columns))]
    starts = np.flatnonzero(np.r_[True, np.diff(row_codes(rows.select(present))) != 0][: rows.num_rows])
    if len(starts) > _MOST:
        raise TargetError(
            f"Rows of the table '{table}' that are written at once belong to {len(starts)} partitions by "
            f"{', '.join(columns)}; a mirror writes up to {_MOST}.",
            "Remove the target table, and partition it with partition.by by columns with fewer values, or let "
            "cluster.by arrange its rows.",
        )
    firsts = rows.select(present).take(pa.array(starts))
    texts = {name: _texts(firsts[name], name, table) for name in present}
    ends = [*starts[1:].tolist(), rows.num_rows]
    return [
        (begin, end, {name: texts[name][at] if name in texts else None for name in columns})
        for at, (begin, end) in enumerate(zip(starts.tolist(), ends, strict=True))
    ]


def folder_of(values: Values) -> str:
    """Return the folder of a partition's files, with a slash behind it; empty without partition columns."""
    names = (f"{_escaped(name)}={_NULL if text is None else _escaped(text)}/" for name, text in values.items())
    return "".join(names)


def constant(text: str | None, kind: pa.DataType, rows: int) -> pa.Array:
    """Return a partition column's value for rows of a file."""
    if text is None or text == "":
        return pa.nulls(rows, kind)
    return pa.repeat(pa.scalar(text).cast(kind), rows)


def in_kinds(values: Values, kinds: Mapping[str, pa.DataType]) -> Values:
    """Return a partition's values as texts of other types.

    Args:
        kinds: the types by the columns' names; the others keep theirs.
    """
    return {
        name: constant(text, kinds[name], 1).cast(pa.string())[0].as_py() if name in kinds else text
        for name, text in values.items()
    }


def _texts(column: pa.ChunkedArray, name: str, table: str) -> list[str | None]:
    """Return values as the log has them.

    Raises:
        TargetUnfitError: it can't have one of them.
    """
    kind = column.type
    if not (is_partitionable(kind) or pa.types.is_decimal(kind)):
        raise TargetError(
            f"The mirror's option partition.by names the column '{name}' of the table '{table}', by which no table can "
            "be partitioned.",
            "Name columns of whole numbers, texts, dates or booleans.",
        )
    if pa.types.is_date(kind):
        days = column.cast(pa.date32()).cast(pa.int32())
        if pc.any(pc.or_(pc.less(days, _FIRST_DAY), pc.greater(days, _LAST_DAY))).as_py():
            raise _no_partition(table, name, "a date before year 1 or after year 9999")
    texts: list[str | None] = column.cast(pa.string()).to_pylist()
    if pa.types.is_string(kind):
        if "" in texts:
            raise _no_partition(table, name, "an empty text, which Delta can't tell from null there")
        if _NULL in texts:
            raise _no_partition(table, name, f"the text {_NULL}, which stands for null")
        if any(text is not None and len(_escaped(text)) > _LONGEST for text in texts):
            raise _no_partition(table, name, "a text that is too long for the name of a folder")
    return texts


def _no_partition(table: str, column: str, what: str) -> TargetUnfitError:
    return TargetUnfitError(
        f"The table '{table}' is partitioned by '{column}', and a row has {what}.",
        "Remove the target table, and start the query without partition.by for it, and with missing.tables=read.",
    )


def _escaped(text: str) -> str:
    return quote(text, safe="")
