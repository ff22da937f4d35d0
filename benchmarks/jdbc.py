"""Write changes of random rows into a large table of PostgreSQL, beside a COPY of the same rows."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
from tests.support.jdbc import PostgresTarget, Query

from benchmarks.common import Connection, Leg, Result, Scale, database
from benchmarks.mirror_writer import BATCHES, CHANGES, LOAD, ROW, TASKS, Workload
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.sinks.relational.parts import make_parts
from floodmark.sinks.relational.postgres.copy_text import copy_blocks
from floodmark.sinks.relational.staging import stage_part

_COLUMNS = "id bigint PRIMARY KEY, name text, balance numeric(12,2), updated_at timestamptz, note text"


def run(scale: Scale, postgres: int) -> Result:
    """Measure all."""
    rows = scale.target_rows
    result = Result("jdbc", scale.name, f"PostgreSQL {postgres}")
    result.notes.append(f"{BATCHES} micro-batches of {CHANGES:,} changes of random rows of {rows:,}")
    result.notes.append("COPY inserts as many rows, with new keys, into the same table")
    workload = Workload(rows)
    loads = [workload.load(first, min(LOAD, rows - first)) for first in range(0, rows, LOAD)]
    batches = [workload.changes() for _ in range(BATCHES)]
    plain = [_inserted(workload, CHANGES) for _ in range(BATCHES)]
    with database(postgres) as (server, connection), tempfile.TemporaryDirectory() as scratch:
        sink = _Sink(server, Path(scratch))
        result.legs.append(_measured("jdbc, first load", rows, partial(sink.write, 0, loads)))
        connection.execute("ANALYZE public_t")
        result.legs.append(_measured("jdbc, changes", BATCHES * CHANGES, partial(sink.change, batches)))
        connection.execute(f"CREATE TABLE copied ({_COLUMNS})")
        base = [_rows(load) for load in loads]
        result.legs.append(_measured("COPY, first load", rows, partial(_copy, connection, "copied", base)))
        result.legs.append(_measured("COPY, new rows", BATCHES * CHANGES, partial(_copy, connection, "copied", plain)))
    result.add_ratio("rows/s", "rows/s, x COPY", "COPY, new rows")
    return result


class _Sink:
    """Tables that follow, without Spark."""

    def __init__(self, server: EmbeddedPostgres, state: Path) -> None:
        self._query = Query(PostgresTarget(server, "postgres"), state)

    def write(self, batch: int, blocks: Sequence[pa.Table]) -> None:
        """Write a micro-batch, of which each task has a block."""
        with ThreadPoolExecutor(TASKS) as tasks:
            messages = [one for some in tasks.map(partial(self._task, batch), blocks) for one in some]
        self._query.targets.write(batch, {"public.t": messages})

    def change(self, batches: Sequence[pa.Table]) -> None:
        """Write micro-batches of changes."""
        for number, batch in enumerate(batches):
            half = batch.num_rows // TASKS
            self.write(number + 1, [batch.slice(first * half, half) for first in range(TASKS)])

    def _task(self, batch: int, rows: pa.Table) -> list[dict[str, object]]:
        query = self._query
        session = query.dialect.connect()
        try:
            parts = [stage_part(query.dialect, session, one, query.query, batch) for one in make_parts("t", [rows])]
        finally:
            session.close()
        return [part.to_message("public.t") for part in parts]


def _inserted(workload: Workload, count: int) -> pa.Table:
    """Return rows with new keys."""
    rows = _rows(workload.changes())
    first = workload.next_key(count)
    return rows.set_column(0, "id", pa.array(range(first, first + count)))


def _rows(events: pa.Table) -> pa.Table:
    return pa.table(events["before"].combine_chunks().flatten(), names=ROW.names)


def _copy(connection: Connection, table: str, tables: Sequence[pa.Table]) -> None:
    for rows in tables:
        with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
            for block in copy_blocks(rows, set()):
                copy.write(block)


def _measured(name: str, rows: int, work: Callable[[], None]) -> Leg:
    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    return Leg(name, {"rows/s": rows / seconds, "seconds": seconds})
