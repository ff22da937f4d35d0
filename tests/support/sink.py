"""Reading what Spark's file sink wrote, with the micro-batch of each row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq

from tests.support.applying import Event, event

COLUMNS = ["key", "value", "position", "op", "database", "schema", "table"]


def read_sink(path: Path) -> list[Event]:
    """Return the events in a directory that a streaming query wrote as Parquet."""
    return [event(batch, row) for batch, rows in read_batches(path, COLUMNS) for row in rows]


def read_batches(path: Path, columns: Sequence[str] | None = None) -> list[tuple[int, list[dict[str, Any]]]]:
    """Return the rows in a directory that a streaming query wrote as Parquet, with the numbers of their micro-batches.

    Only files that the sink's log names count: what a killed batch left is not part of the output. A micro-batch may
    come in several parts.

    Args:
        columns: those that are wanted; None: all.
    """
    batch_of: dict[str, int] = {}
    log = path / "_spark_metadata"
    entries = [p for p in log.iterdir() if not p.name.startswith(".")] if log.exists() else []
    for entry in sorted(entries, key=lambda p: int(p.name.split(".")[0])):
        for line in entry.read_text().splitlines()[1:]:
            name = unquote(urlparse(json.loads(line)["path"]).path)
            batch_of.setdefault(name, int(entry.name.split(".")[0]))
    names = None if columns is None else list(columns)
    return [(batch, pq.read_table(name, columns=names).to_pylist()) for name, batch in batch_of.items()]
