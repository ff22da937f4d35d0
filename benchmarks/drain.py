"""Drain a backlog of inserts, updates and deletes that waits in a slot."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import engine, reference
from benchmarks.common import Result, Scale, database
from benchmarks.workload import create_backlog


def run(scale: Scale, postgres: int) -> Result:
    """Drain copies of one slot with the reference clients and with Floodmark, into two sinks."""
    result = Result("drain", scale.name, f"PostgreSQL {postgres}")
    with database(postgres) as (server, connection):
        backlog = create_backlog(connection, scale.drain_transactions)
        result.notes.append(f"{backlog.changes:,} row changes, {backlog.events:,} events with tombstones")
        result.legs.append(reference.server_decoding(connection, backlog))
        result.legs.append(reference.pg_recvlogical(server, connection, backlog))
        if scale.debezium:
            result.legs.append(reference.debezium_drain(server, connection, backlog))
        with tempfile.TemporaryDirectory() as scratch:
            result.legs += engine.halves(server, connection, backlog, Path(scratch))
        for sink in ("noop", "parquet"):
            with tempfile.TemporaryDirectory() as scratch:
                result.legs.append(engine.drain(server, connection, backlog, Path(scratch), sink))
    result.add_ratio("changes/s", "x pg_recvlogical", reference.RECVLOGICAL)
    return result
