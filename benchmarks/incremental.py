"""Read a table incrementally while its rows change at a steady rate."""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.conformance.debezium.debezium import Debezium, Record

from benchmarks import reference
from benchmarks.common import LEG_TIMEOUT_S, Connection, Leg, Result, Scale, database, wait_until
from benchmarks.engine import START_TIMEOUT_S, QueryProcess, durations, process_peaks, source_options
from benchmarks.latency import RATE, Writer, new_slot, postgres_session, quantiles, read_lines
from benchmarks.query import Spec
from benchmarks.workload import create_tables, fill, slot_active
from floodmark.demo.embedded import EmbeddedPostgres

SIGNALS = "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"
INCLUDE = "public.t,public.signals"
NOTIFICATIONS = "notifications"
COMPLETED = '"type":"COMPLETED","aggregate_type":"Incremental Snapshot"'
WARM_UP_S = 10.0
"""How long the changes run before the snapshot begins."""
ROUNDS = ("", ", again")
"""The table is read twice: a process that has just started still compiles itself while it reads the first time."""


def run(scale: Scale, postgres: int) -> Result:
    """Read the table with Debezium, with its default and with larger chunks, and with Floodmark."""
    rows = scale.incremental_rows
    result = new_result("incremental", scale, postgres)
    with changing_table(rows, postgres) as (server, connection, update):
        if scale.debezium:
            for chunk in (None, 10_000):
                with Writer(postgres_session(server, update)):
                    result.legs += _debezium(server, connection, rows, chunk)
        with Writer(postgres_session(server, update)) as writer:
            result.legs += floodmark(server, connection, ["t"], rows, writer)
    add_ratios(result)
    return result


def new_result(name: str, scale: Scale, postgres: int) -> Result:
    """Return the result of a benchmark that reads a table while it changes, without legs."""
    result = Result(name, scale.name, f"PostgreSQL {postgres}")
    rows = scale.incremental_rows
    result.notes.append(f"{rows:,} rows, {RATE} update transactions/s on them; latencies are those of the updates")
    return result


@contextmanager
def changing_table(rows: int, postgres: int) -> Iterator[tuple[EmbeddedPostgres, Connection, str]]:
    """Run a server with the table, the signal table and a publication of both.

    Yields:
        The server, a connection to it, and the statement that updates a row, which takes the update's number.
    """
    # The number of an update makes it hit any row.
    update = f"UPDATE t SET updated_at = clock_timestamp() WHERE id = 1 + (%s::bigint * 7919) %% {rows}"
    with database(postgres, synchronous_commit="on") as (server, connection):
        create_tables(connection, ["t"])
        connection.execute(SIGNALS)
        connection.execute("ALTER PUBLICATION bench SET TABLE t, signals")
        fill(connection, "t", 1, rows)
        connection.execute("VACUUM ANALYZE t")
        yield server, connection, update


def add_ratios(result: Result) -> None:
    """Compare each reading with Debezium's of the same round."""
    again = [leg for leg in result.legs if leg.name.endswith(ROUNDS[1])]
    first = [leg for leg in result.legs if leg not in again]
    for suffix, legs in zip(ROUNDS, (first, again), strict=True):
        replace(result, legs=legs).add_ratio("rows/s", "x Debezium", f"{reference.DEBEZIUM}, default{suffix}")


def floodmark(
    server: EmbeddedPostgres, connection: Connection, tables: Sequence[str], rows: int, writer: Writer | None = None
) -> list[Leg]:
    """Read tables incrementally; twice, if rows change meanwhile.

    Args:
        server: with the publication and the signal table.
        connection: to it.
        tables: their names.
        rows: how many they have together.
        writer: changes rows meanwhile.
    """
    include = ",".join(f"public.{table}" for table in (*tables, "signals"))
    with tempfile.TemporaryDirectory() as directory, new_slot(connection, "floodmark_incremental") as slot:
        options = source_options(server, include, slot, Path(directory) / "state")
        options["signal.data.collection"] = "public.signals"
        asked = Asked(rows, lambda: ask_for(connection, tables), lambda: slot_active(connection, slot))
        rounds = ROUNDS if writer is not None else ROUNDS[:1]
        return floodmark_reads(options, asked, Path(directory), "Floodmark", rounds)


def _debezium(server: EmbeddedPostgres, connection: Connection, rows: int, chunk: int | None) -> list[Leg]:
    with new_slot(connection, "debezium_incremental") as slot:
        options = reference.debezium_options(server, INCLUDE, slot) | {"signal.data.collection": "public.signals"}
        asked = Asked(rows, lambda: ask_for(connection, ["t"]), lambda: slot_active(connection, slot))
        return debezium_reads(options, asked, chunk)


def ask_for(connection: Connection, tables: Sequence[str]) -> None:
    """Ask for an incremental snapshot of tables."""
    data = signal_data([f"public.{table}" for table in tables])
    connection.execute("INSERT INTO signals VALUES (%s, 'execute-snapshot', %s)", [str(uuid.uuid4()), data])


def signal_data(tables: Sequence[str]) -> str:
    """Return what a signal says that asks for an incremental snapshot of tables."""
    return json.dumps({"data-collections": list(tables), "type": "incremental"})


@dataclass(frozen=True)
class Asked:
    """An incremental snapshot that is asked for.

    Args:
        rows: how many it has.
        ask: asks for it.
        streams: whether the server sees that its log is read.
    """

    rows: int
    ask: Callable[[], None]
    streams: Callable[[], bool]


def floodmark_reads(
    options: dict[str, str],
    asked: Asked,
    scratch: Path,
    name: str,
    rounds: Sequence[str] = ROUNDS,
    trigger: str = "",
    commit_s: float = 0.0,
) -> list[Leg]:
    """Read with Floodmark.

    Args:
        options: the source's.
        asked: what is to be read.
        scratch: a folder that is empty.
        name: of the legs.
        rounds: what is added to it for each time that the rows are read.
        trigger: of the query, as ``Spec`` has it.
        commit_s: of its sink, as ``Spec`` has it.
    """
    output = scratch / "batches.jsonl"
    spec = Spec(options, str(scratch / "checkpoint"), "mixed", str(output), False, trigger, commit_s)
    legs: list[Leg] = []
    with QueryProcess([spec], scratch / "query.log") as query:
        query.start_next()
        wait_until(asked.streams, START_TIMEOUT_S, "the query streams")
        time.sleep(WARM_UP_S)
        for suffix in rounds:
            before = len(read_lines(output))

            def delivered(before: int = before) -> bool:
                query.check()
                reads: int = sum(line["reads"] for line in read_lines(output)[before:])
                return reads >= asked.rows

            mark, begin = query.sampler.now(), time.time()
            asked.ask()
            wait_until(delivered, LEG_TIMEOUT_S, "the snapshot is through", 0.1)
            usage = query.sampler.usage(since=mark)
            lines = read_lines(output)[before:]
            figures = _figures(asked.rows, begin, lines) | {
                "CPU s": usage.cpu_s,
                "peak MB": usage.peak_memory >> 20,
                "batches": sum(bool(line["reads"]) for line in lines),
            }
            legs.append(Leg(name + suffix, figures, process_peaks(usage)))
        query.end_input()
        legs[0].batches = durations(query.wait("finished", 60)["progress"])
    return legs


def _figures(rows: int, begin: float, lines: Sequence[dict[str, Any]]) -> dict[str, float | int | str | None]:
    end = next(line for line in reversed(lines) if line["reads"])["received"] / 1e6
    delays = [
        (line["received"] - moment) / 1000 for line in lines for moment in line["committed"] if moment >= begin * 1e6
    ]
    return {"rows/s": rows / (end - begin), "seconds": end - begin} | (quantiles(delays) if delays else {})


def debezium_reads(options: dict[str, str], asked: Asked, chunk: int | None) -> list[Leg]:
    """Read with Debezium, in chunks of its default size or of another."""
    own = {
        "snapshot.mode": "no_data",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": NOTIFICATIONS,
    }
    if chunk is not None:
        own["incremental.snapshot.chunk.size"] = str(chunk)
    name = f"{reference.DEBEZIUM}, {'default' if chunk is None else f'chunks of {chunk:,}'}"
    legs: list[Leg] = []
    with tempfile.TemporaryDirectory() as directory:
        events = Path(directory) / "events.jsonl"
        with Debezium(options | own, events, timestamps=True, leave_out='"op":"r"') as debezium:
            debezium.wait_records(1, START_TIMEOUT_S)
            time.sleep(WARM_UP_S)
            for number, suffix in enumerate(ROUNDS, 1):
                left_out = debezium.left_out
                mark, begin = debezium.sampler.now(), time.time()
                asked.ask()
                debezium.wait_for(COMPLETED, LEG_TIMEOUT_S, number)
                usage = debezium.sampler.usage(since=mark)
                reads = debezium.left_out - left_out
                # It leaves out rows that change while their chunk is read.
                if reads < 0.95 * asked.rows:
                    raise RuntimeError(f"Debezium has read {reads:,} rows only")
                figures = _debezium_figures(asked.rows, begin, debezium.records())
                figures |= {"CPU s": usage.cpu_s, "peak MB": usage.peak_memory >> 20}
                legs.append(Leg(name + suffix, figures))
    return legs


def _debezium_figures(rows: int, begin: float, records: Sequence[Record]) -> dict[str, float | int | str | None]:
    end = [record.received_ms or 0 for record in records if COMPLETED in (record.value or "")][-1] / 1000
    delays = []
    for record in records:
        if record.topic.endswith(".t") and record.value is not None and record.received_ms is not None:
            committed_ms = json.loads(record.value)["source"]["ts_us"] / 1000
            if begin * 1000 <= committed_ms and record.received_ms <= end * 1000:
                delays.append(record.received_ms - committed_ms)
    return {"rows/s": rows / (end - begin), "seconds": end - begin} | quantiles(delays)
