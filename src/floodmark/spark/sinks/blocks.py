"""What comes to the sinks of typed rows: blocks of a table's rows, and what tasks make of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import pyarrow as pa

from floodmark.changes.arrow_tables import unpacked
from floodmark.logger import get_logger

log = get_logger(__name__)


def rows_by_table(batches: Iterable[pa.RecordBatch], aside: Set[str]) -> dict[str | None, list[pa.Table]]:
    """Return the blocks of rows that a task has of each table; those of None are gaps.

    Args:
        batches: rows of a stream with ``format=arrow``.
        aside: tables whose rows are left out.
    """
    tables: dict[str | None, list[pa.Table]] = {}
    for batch in batches:
        for table, rows in zip(batch["table"].to_pylist(), batch["rows"], strict=True):
            if table not in aside:
                tables.setdefault(table, []).append(unpacked(rows.as_buffer()))
    return tables


def messages_by_table(batch: int, sent: pa.Table) -> dict[str, list[Mapping[str, Any]]]:
    """Return what tasks have sent of each table, and warn of gaps.

    Args:
        batch: the number of the micro-batch.
        sent: with the column ``table``, which is null for a gap.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in sent.to_pylist():
        if row["table"] is None:
            log.warning("mirror_has_a_gap", batch=batch, effect="rows that were deleted meanwhile stay in the target")
        else:
            found.setdefault(row["table"], []).append(row)
    return found
