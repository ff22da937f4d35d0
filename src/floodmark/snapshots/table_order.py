"""Selects the captured tables that a snapshot reads, and sorts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from floodmark.config.common import CommonOptions

T = TypeVar("T")


def in_order(
    options: CommonOptions, tables: Sequence[T], name_of: Callable[[T], str], rows_of: Callable[[T], int]
) -> list[T]:
    """Return the tables that ``snapshot.include.collection.list`` lets through, in the order that the options request.

    Signal tables are left out, since past signals have no meaning.

    Args:
        options: the source's options.
        tables: the captured tables.
        name_of: returns a table's name, as patterns match it.
        rows_of: returns the estimated number of its rows.
    """
    patterns = options.snapshot_include_collection_list
    chosen = others = [table for table in tables if name_of(table) not in options.signal_tables]
    if patterns:
        chosen = [
            table
            for index in range(len(patterns))
            for table in others
            if options.names_for_snapshot(name_of(table), patterns[index : index + 1])
            and not options.names_for_snapshot(name_of(table), patterns[:index])
        ]
    order = options.snapshot_tables_order_by_row_count
    if order != "disabled":
        chosen.sort(key=rows_of, reverse=order == "descending")
    return chosen
