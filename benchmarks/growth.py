"""See whether the drain rate depends on the number of tables or the size of the backlog.

Spark's session is warm: a backlog of a second would otherwise show how long Java and Python take to warm up.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import engine, reference
from benchmarks.common import Leg, Result, Scale, database
from benchmarks.workload import create_backlog


def run(scale: Scale, postgres: int) -> Result:
    """Drain backlogs over several numbers of tables, and of several sizes."""
    result = Result("growth", scale.name, f"PostgreSQL {postgres}")
    base = scale.growth_transactions
    middle = base * max(size for size in scale.growth_backlogs if size <= 10)
    for tables in scale.growth_tables:
        result.legs += _drain(f"{tables} tables", postgres, middle, tables)
    for size in scale.growth_backlogs:
        result.legs += _drain(f"{size}x backlog", postgres, base * size, 1)
    return result


def _drain(name: str, postgres: int, transactions: int, tables: int) -> list[Leg]:
    with database(postgres) as (server, connection), tempfile.TemporaryDirectory() as scratch:
        backlog = create_backlog(connection, transactions, tables)
        legs = [
            reference.pg_recvlogical(server, connection, backlog),
            engine.drain(server, connection, backlog, Path(scratch), warm_up=True),
        ]
    for leg in legs:
        leg.name = f"{name}, {leg.name}"
        leg.figures = {"changes": backlog.changes, **leg.figures}
        leg.processes = {}
    return legs
