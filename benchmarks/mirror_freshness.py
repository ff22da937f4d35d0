"""Measure the time from a transaction's commit until a mirror's Delta table has it, at a steady rate."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from benchmarks.common import Leg, Result, Scale, database, wait_until
from benchmarks.engine import SINKS, START_TIMEOUT_S, QueryProcess, process_peaks, source_options
from benchmarks.latency import RATE, TABLE, Writer, new_slot, postgres_session, quantiles
from benchmarks.query import Spec
from benchmarks.workload import PUBLICATION

ROWS = 1_000_000
FILL = "INSERT INTO t SELECT g, repeat('x', 60), now() FROM generate_series(1, %s) g"
UPDATE = "UPDATE t SET written_at = clock_timestamp() WHERE id = %s * 7919 %% 1000000 + 1"
TRIGGERS = ("", "5 seconds")


def run(scale: Scale, postgres: int) -> Result:
    """Measure with the default trigger, and with the interval that keeps versions few."""
    result = Result("mirror_freshness", scale.name, f"PostgreSQL {postgres}")
    result.notes.append(f"{RATE} updates/s of random rows of {ROWS:,} for {scale.latency_s} s, each a transaction")
    for trigger in TRIGGERS:
        result.legs.append(_measured(scale, postgres, trigger))
    return result


def _measured(scale: Scale, postgres: int, trigger: str) -> Leg:
    with database(postgres, synchronous_commit="on") as (server, connection):
        connection.execute(TABLE)
        connection.execute(FILL, [ROWS])
        connection.execute(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE t")
        with tempfile.TemporaryDirectory() as directory, new_slot(connection, "floodmark_freshness") as slot:
            scratch = Path(directory)
            table = scratch / "lake" / "public.t"
            options = source_options(server, "public.t", slot, scratch / "state", "initial") | SINKS["mirror"]
            lake, checkpoint = str(scratch / "lake"), str(scratch / "checkpoint")
            spec = Spec(options, checkpoint, "mirror", lake, available_now=False, trigger=trigger)
            with (
                QueryProcess([spec], scratch / "query.log") as query,
                Writer(postgres_session(server, UPDATE)) as writer,
            ):
                query.start_next()

                def follows() -> bool:
                    query.check()
                    # The first versions make the table and load it.
                    return DeltaTable.is_deltatable(str(table)) and DeltaTable(str(table)).version() > 2

                wait_until(follows, START_TIMEOUT_S, "the table follows", 0.2)
                begin = time.time() + scale.latency_warm_up_s
                end = begin + scale.latency_s
                writer.run_until(begin)
                mark = query.sampler.now()
                writer.run_until(end)
                usage = query.sampler.usage(since=mark)
                wait_until(lambda: _newest(table) > end, 120, "the table has all of it", 0.5)
                query.end_input()
                query.wait("finished", 60)
            delays = [delay for written, delay in _delays(table) if begin <= written <= end]
            versions = DeltaTable(str(table)).version()
    figures = quantiles(delays) | {
        "versions": versions,
        "CPU share": usage.cpu_s / usage.wall_s,
        "peak MB": usage.peak_memory >> 20,
        "writer's largest lag ms": writer.late_s * 1000,
    }
    name = f"mirror, every {trigger}" if trigger else "mirror, one micro-batch after the other"
    return Leg(name, figures, process_peaks(usage))


def _delays(table: Path) -> Iterator[tuple[float, float]]:
    """Yield when each row was written, in seconds since the epoch, and after how many milliseconds a version had it."""
    for commit in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        if not any(action.get("commitInfo", {}).get("operation") == "MERGE" for action in actions):
            continue
        readable = commit.stat().st_mtime
        for action in actions:
            # Files that were there before, and get a new deletion vector, have one already.
            if "add" in action and "deletionVector" not in action["add"]:
                times = pq.read_table(table / action["add"]["path"], columns=["written_at"])["written_at"]
                for written in pc.divide(times.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), 1e6).to_pylist():
                    yield written, (readable - written) * 1000


def _newest(table: Path) -> float:
    return max(written for written, _ in _delays(table))
