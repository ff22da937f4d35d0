"""Load a large table into Delta by a mirror's initial snapshot, beside ``COPY``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import engine, reference
from benchmarks.common import Connection, Result, Scale, database
from benchmarks.equality import expect_equal
from benchmarks.workload import create_tables, fill


def run(scale: Scale, postgres: int) -> Result:
    """Read the table with COPY, and with Floodmark into ``noop`` and into a mirror."""
    result = Result("mirror_first_load", scale.name, f"PostgreSQL {postgres}")
    rows = scale.large_rows
    with database(postgres) as (server, connection):
        create_tables(connection, ["t"])
        fill(connection, "t", 1, rows)
        connection.execute("VACUUM ANALYZE t")
        size = _size(connection)
        result.notes.append(f"{rows:,} rows; MB/s of the table's {size / 1e6:,.0f} MB on the server's disk")
        for binary in (False, True):
            result.legs.append(reference.copy(server, "t", rows, binary))
        for sink in ("noop", "mirror"):
            with tempfile.TemporaryDirectory() as scratch:
                result.legs.append(engine.snapshot(server, connection, "t", rows, Path(scratch), sink))
                if sink == "mirror":
                    expect_equal(server, "t", Path(scratch, "output", "public.t"))
    for leg in result.legs:
        leg.figures["MB/s"] = size / 1e6 / float(leg.figures["seconds"] or 0)
    for name, base in (("x COPY", "COPY, text"), ("x noop", "Floodmark, noop")):
        result.add_ratio("rows/s", name, base)
    return result


def _size(connection: Connection) -> int:
    row = connection.execute("SELECT pg_relation_size('t')").fetchone()
    assert row is not None
    return int(row[0])
