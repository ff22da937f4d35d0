"""Statistics of data files in the log, by which readers skip files, and so do later micro-batches.

Format: the Delta protocol, section "Per-file Statistics".
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.json_data import Json
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.keys import KeyIndex

_MOST_COLUMNS = 32
"""How many columns are described, besides those that must be; Delta's own default."""
_MOST_CHARACTERS = 32
"""How much of a text is kept."""
_HIGHEST = "\U0010ffff"
"""Sorts behind any other character."""


def statistics(rows: pa.Table, names: Sequence[str], whole: str) -> dict[str, Json]:
    """Return the statistics of a file.

    Args:
        names: columns that must be described; the first ones of the table are, too.
        whole: the column whose texts are not cut off.
    """
    low: dict[str, Json] = {}
    high: dict[str, Json] = {}
    nulls: dict[str, Json] = {}
    for name in dict.fromkeys([*names, whole, *rows.column_names[:_MOST_COLUMNS]]):
        column = rows[name]
        if pa.types.is_nested(column.type):
            continue
        nulls[name] = column.null_count
        if _has_order(column.type) and column.null_count < len(column):
            # A day before year 1 or after year 9999 has no bound, which readers take for any.
            with contextlib.suppress(OverflowError, ValueError):
                found = pc.min_max(column).as_py()
                least, greatest = _at_most(found["min"], name == whole), _at_least(found["max"], name == whole)
                if greatest is not None:
                    low[name], high[name] = least, greatest
    return {"numRecords": rows.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}


def is_described(columns: pa.Schema, name: str) -> bool:
    """Return whether the statistics of a table's files have bounds of a column, whatever its key is."""
    return columns.get_field_index(name) < _MOST_COLUMNS and _has_order(columns.field(name).type)


def bounds(file: DataFile, name: str) -> tuple[Any, Any] | None:
    """Return the least and the greatest value of a column as JSON has them; None if they aren't known."""
    low, high = (file.statistics.get(side) for side in ("minValues", "maxValues"))
    if not isinstance(low, dict) or not isinstance(high, dict) or low.get(name) is None or high.get(name) is None:
        return None
    return low[name], high[name]


def null_share(file: DataFile, name: str) -> float | None:
    """Return which share of a column's values is null, as the log has it; None if it isn't known.

    Rows that are deleted count, too.
    """
    nulls, rows = file.statistics.get("nullCount"), file.statistics.get("numRecords")
    count = nulls.get(name) if isinstance(nulls, dict) else None
    return count / rows if isinstance(count, int) and isinstance(rows, int) and rows else None


def may_hold(file: DataFile, keys: KeyIndex) -> bool:
    """Return whether a file may have rows with any of the keys."""
    partition = file.partition
    for name in keys.names:
        text = partition.get(name)
        if text is not None and not keys.has_text(name, text):
            return False
    known = bounds(file, keys.names[0])
    return known is None or keys.may_be_between(*known)


def _has_order(kind: pa.DataType) -> bool:
    """Return whether JSON holds bounds of a type such that no file is skipped that has a value."""
    tests = (pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_timestamp)
    return any(test(kind) for test in tests)


def _at_most(value: Any, whole: bool) -> Json:
    """Return what JSON has for a value, or for one that is less."""
    if isinstance(value, str):
        return value if whole else value[:_MOST_CHARACTERS]
    return _moment(value) if isinstance(value, dt.datetime) else _plain(value)


def _at_least(value: Any, whole: bool) -> Json:
    """Return what JSON has for a value, or for one that is greater; None: there is no such.

    Raises:
        OverflowError: it would be after year 9999.
    """
    if isinstance(value, str):
        return value if whole or len(value) <= _MOST_CHARACTERS else _behind(value)
    if not isinstance(value, dt.datetime):
        return _plain(value)
    # The protocol lets writers cut off microseconds here, too, but not all readers reckon with it.
    return _moment(value + dt.timedelta(microseconds=-value.microsecond % 1000))


def _behind(text: str) -> str | None:
    """Return a short text that sorts behind a long one; None: there is none."""
    end = _MOST_CHARACTERS
    while end < len(text) and text[end] == _HIGHEST:
        end += 1
    return text[:end] + _HIGHEST if end < 2 * _MOST_CHARACTERS else None


def _moment(value: dt.datetime) -> str:
    utc = value if value.tzinfo is None else value.astimezone(dt.UTC)
    return utc.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("" if value.tzinfo is None else "Z")


def _plain(value: Any) -> Json:
    return value.isoformat() if isinstance(value, dt.date) else int(value)
