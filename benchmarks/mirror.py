"""Keep Delta tables that equal PostgreSQL's: a first load, and a backlog of changes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from benchmarks import engine
from benchmarks.common import Connection, Leg, Result, Scale, database
from benchmarks.workload import create_backlog, create_tables, fill


def run(scale: Scale, postgres: int) -> Result:
    """Measure a first load and a backlog of changes, each into ``noop`` and into a mirror."""
    result = Result("mirror", scale.name, f"PostgreSQL {postgres}")
    rows = scale.snapshot_rows
    with database(postgres) as (server, connection):
        create_tables(connection, ["t"])
        fill(connection, "t", 1, rows)
        connection.execute("VACUUM ANALYZE t")
        result.notes.append(f"first load of {rows:,} rows")
        for sink in ("noop", "mirror"):
            with tempfile.TemporaryDirectory() as scratch:
                leg = engine.snapshot(server, connection, "t", rows, Path(scratch), sink)
                result.legs.append(_named(leg, "first load"))
                if sink == "mirror":
                    _expect_equal(connection, Path(scratch) / "output")
    with database(postgres) as (server, connection):
        backlog = create_backlog(connection, scale.drain_transactions)
        result.notes.append(f"backlog of {backlog.changes:,} row changes")
        for sink in ("noop", "mirror"):
            with tempfile.TemporaryDirectory() as scratch:
                leg = engine.drain(server, connection, backlog, Path(scratch), sink)
                result.legs.append(_named(leg, "changes"))
    return result


def _named(leg: Leg, what: str) -> Leg:
    return Leg(f"{leg.name}, {what}", leg.figures, leg.processes, leg.batches)


def _expect_equal(connection: Connection, lake: Path) -> None:
    """Raise an error unless the mirror has as many rows as the table, with the same sum."""
    query = QueryBuilder().register("t", DeltaTable(str(lake / "public.t")))
    found = pa.table(query.execute("SELECT count(*) AS c, sum(id) AS s FROM t").read_all())
    wanted = connection.execute("SELECT count(*), sum(id) FROM t").fetchone()
    if wanted is None or [int(one) for one in wanted] != [int(found[name][0].as_py()) for name in ("c", "s")]:
        raise RuntimeError(f"the mirror has {found.to_pylist()}, the table {wanted}")
