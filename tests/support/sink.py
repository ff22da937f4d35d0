"""Reading what Spark's file sink wrote, with the micro-batch of each row."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq

from tests.support.applying import Event, event

COLUMNS = ["key", "value", "position", "op", "database", "schema", "table"]


def read_sink(path: Path) -> list[Event]:
    """Return the events in a directory that a streaming query wrote as Parquet.

    Only files that the sink's log names count: what a killed batch left is not part of the output.
    """
    batch_of: dict[str, int] = {}
    log = path / "_spark_metadata"
    entries = [p for p in log.iterdir() if not p.name.startswith(".")] if log.exists() else []
    for entry in sorted(entries, key=lambda p: int(p.name.split(".")[0])):
        for line in entry.read_text().splitlines()[1:]:
            name = unquote(urlparse(json.loads(line)["path"]).path)
            batch_of.setdefault(name, int(entry.name.split(".")[0]))
    events = []
    for name, batch in batch_of.items():
        events += [event(batch, row) for row in pq.read_table(name, columns=COLUMNS).to_pylist()]
    return events
