"""The order in which a snapshot reads tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from floodmark.config.model import matches
from floodmark.config.snapshot import SnapshotOptions

T = TypeVar("T")


def in_order(
    options: SnapshotOptions, tables: Sequence[T], name_of: Callable[[T], str], rows_of: Callable[[T], int]
) -> list[T]:
    """Return the tables that ``snapshot.include.collection.list`` lets through, in the order that the options say.

    Args:
        options: the source's options.
        tables: those that are captured.
        name_of: returns a table's name, as patterns match it.
        rows_of: returns how many rows it has, roughly.
    """
    patterns = options.snapshot_include_collection_list
    chosen = list(tables)
    if patterns:
        chosen = [
            table
            for index, pattern in enumerate(patterns)
            for table in tables
            if pattern.fullmatch(name_of(table)) and not matches(patterns[:index], name_of(table))
        ]
    order = options.snapshot_tables_order_by_row_count
    if order != "disabled":
        chosen.sort(key=rows_of, reverse=order == "descending")
    return chosen
