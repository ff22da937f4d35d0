"""Keep Delta tables that equal PostgreSQL's, beside the same work into ``noop``: a first load, and many changes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import engine
from benchmarks.common import Leg, Result, Scale, database
from benchmarks.equality import expect_equal
from benchmarks.workload import create_backlog, create_tables, fill

SINKS = ("noop", "mirror")


def run(scale: Scale, postgres: int) -> Result:
    """Measure a first load and a backlog of changes, each into ``noop`` and into a mirror."""
    result = Result("mirror", scale.name, f"PostgreSQL {postgres}")
    rows = scale.snapshot_rows
    with database(postgres) as (server, connection):
        create_tables(connection, ["t"])
        fill(connection, "t", 1, rows)
        connection.execute("VACUUM ANALYZE t")
        result.notes.append(f"first load of {rows:,} rows")
        for sink in SINKS:
            with tempfile.TemporaryDirectory() as scratch:
                leg = engine.snapshot(server, connection, "t", rows, Path(scratch), sink)
                if sink == "mirror":
                    expect_equal(server, "t", Path(scratch, "output", "public.t"))
                result.legs.append(_named(leg, "first load"))
    with database(postgres) as (server, connection):
        backlog = create_backlog(connection, scale.drain_transactions)
        result.notes.append(f"backlog of {backlog.changes:,} row changes")
        for sink in SINKS:
            with tempfile.TemporaryDirectory() as scratch:
                leg = engine.drain(server, connection, backlog, Path(scratch), sink)
                if sink == "mirror":
                    expect_equal(server, "t", Path(scratch, "output", "public.t"))
                result.legs.append(_named(leg, "changes"))
    for figure, what in (("rows/s", "first load"), ("changes/s", "changes")):
        result.add_ratio(figure, "x noop", f"Floodmark, noop, {what}")
    return result


def _named(leg: Leg, what: str) -> Leg:
    return Leg(f"{leg.name}, {what}", leg.figures, leg.processes, leg.batches)
