"""Read a table incrementally, while its rows change, under triggers that wait and with a sink that commits slowly."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.common import LEG_TIMEOUT_S, Connection, Leg, Result, Scale
from benchmarks.engine import QueryProcess, source_options
from benchmarks.incremental import INCLUDE, Asked, ask_for, changing_table, floodmark_reads, new_result
from benchmarks.latency import Writer, new_slot, postgres_session, read_lines
from benchmarks.query import Spec
from benchmarks.workload import slot_active
from floodmark.demo.embedded import EmbeddedPostgres

CASES = {
    "no trigger": ("", 0.0),
    "every 3 s": ("3 seconds", 0.0),
    "every 60 s": ("60 seconds", 0.0),
    "commits of 2 s": ("", 2.0),
}
"""The trigger, and how long the sink's commit takes."""
AVAILABLE_NOW = "availableNow"


def run(scale: Scale, postgres: int) -> Result:
    """Read the table once in each case."""
    rows = scale.incremental_rows
    result = new_result("pace", scale, postgres)
    with changing_table(rows, postgres) as (server, connection, update), Writer(postgres_session(server, update)):
        for name, (trigger, commit_s) in CASES.items():
            with tempfile.TemporaryDirectory() as directory, new_slot(connection, "floodmark_pace") as slot:
                options = _options(server, slot, Path(directory))
                asked = Asked(rows, partial(ask_for, connection, ["t"]), partial(slot_active, connection, slot))
                result.legs += floodmark_reads(options, asked, Path(directory), name, [""], trigger, commit_s)
        result.legs.append(_available_now(server, connection, rows))
    result.add_ratio("rows/s", "x no trigger", "no trigger")
    return result


def _options(server: EmbeddedPostgres, slot: str, directory: Path) -> dict[str, str]:
    options = source_options(server, INCLUDE, slot, directory / "state")
    return options | {"signal.data.collection": "public.signals"}


def _available_now(server: EmbeddedPostgres, connection: Connection, rows: int) -> Leg:
    """Ask for the table while no query runs; the next one ends when it has been read."""
    with tempfile.TemporaryDirectory() as directory, new_slot(connection, "floodmark_pace") as slot:
        output = Path(directory) / "batches.jsonl"
        spec = Spec(_options(server, slot, Path(directory)), f"{directory}/checkpoint", "mixed", str(output))
        with QueryProcess([spec, spec], Path(directory) / "query.log") as query:
            query.start_next()
            query.wait("finished", LEG_TIMEOUT_S)
            before = len(read_lines(output))
            ask_for(connection, ["t"])
            begin = time.time()
            query.start_next()
            query.wait("finished", LEG_TIMEOUT_S)
        lines = read_lines(output)[before:]
        end = next(line for line in reversed(lines) if line["reads"])["received"] / 1e6
    batches = sum(bool(line["reads"]) for line in lines)
    return Leg(AVAILABLE_NOW, {"rows/s": rows / (end - begin), "seconds": end - begin, "batches": batches})
