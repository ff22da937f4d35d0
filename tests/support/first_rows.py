"""The rows that a snapshot of a table ``t`` has delivered, and waiting for the first of them."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.support.inprocess import InProcess
from tests.support.patience import within


def keys(rows: list[dict[str, Any]], op: str = "r") -> list[int]:
    """Return the keys of the table's rows that have an operation."""
    return sorted({json.loads(row["key"])["id"] for row in rows if row["table"] == "t" and row["op"] == op})


def first_rows(query: InProcess) -> list[dict[str, Any]]:
    """Run micro-batches until one has rows of the table, of which others are left; return all rows."""
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + within(90)
    while not keys(rows):
        assert time.monotonic() < deadline
        rows += query.step()
    return rows
