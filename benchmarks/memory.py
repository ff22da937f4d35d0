"""Take one large transaction through, and state what memory each process needs."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import engine, reference
from benchmarks.common import Result, Scale, database
from benchmarks.workload import create_large_transaction


def run(scale: Scale, postgres: int) -> Result:
    """Drain one transaction with the reference clients and Floodmark."""
    result = Result("memory", scale.name, f"PostgreSQL {postgres}")
    with database(postgres) as (server, connection):
        backlog = create_large_transaction(connection, scale.transaction_rows)
        result.notes.append(f"one transaction of {backlog.changes:,} inserts")
        result.legs.append(reference.pg_recvlogical(server, connection, backlog))
        if scale.debezium:
            result.legs.append(reference.debezium_drain(server, connection, backlog))
        with tempfile.TemporaryDirectory() as scratch:
            result.legs.append(engine.drain(server, connection, backlog, Path(scratch)))
    return result
