"""See that a micro-batch of a mirror costs the tables that changed, not all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import tables
from benchmarks.common import Result, Scale

COUNTS = (tables.BUSY_TABLES, 200)


def run(scale: Scale, postgres: int) -> Result:
    """Mirror few tables that are all busy, and many of which as many are."""
    result = Result("mirror_tables", scale.name, f"PostgreSQL {postgres}")
    result.notes.append(f"{tables.BUSY_TABLES} tables change; each table has {tables.ROWS} rows")
    for count in COUNTS:
        with tables.postgres_tables(count, postgres) as (options, execute), tempfile.TemporaryDirectory() as scratch:
            given = {**options, "publication.name": "mirrors"}
            leg = tables.measure(f"Floodmark, mirror, {count} tables", given, execute, Path(scratch), "mirror")
            result.legs.append(leg)
    result.add_ratio("s a batch", "of the first", result.legs[0].name)
    return result
