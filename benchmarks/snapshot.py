"""Take the initial snapshot of one table."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import engine, reference
from benchmarks.common import Result, Scale, database
from benchmarks.workload import create_tables, fill


def run(scale: Scale, postgres: int) -> Result:
    """Read the table with COPY, with Debezium and with Floodmark."""
    result = Result("snapshot", scale.name, f"PostgreSQL {postgres}")
    rows = scale.snapshot_rows
    with database(postgres) as (server, connection):
        create_tables(connection, ["t"])
        fill(connection, "t", 1, rows)
        connection.execute("VACUUM ANALYZE t")
        result.notes.append(f"{rows:,} rows")
        result.legs.append(reference.copy(server, "t", rows))
        result.legs.append(reference.copy(server, "t", rows, binary=True))
        if scale.debezium:
            result.legs.append(reference.debezium_snapshot(server, connection, "t", rows))
        with tempfile.TemporaryDirectory() as scratch:
            result.legs.append(engine.snapshot(server, connection, "t", rows, Path(scratch)))
    for name, base in (("x COPY", "COPY, text"), ("x Debezium", reference.DEBEZIUM)):
        result.add_ratio("rows/s", name, base)
    return result
