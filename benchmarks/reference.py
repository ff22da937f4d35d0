"""The reference clients: pg_recvlogical, the server's decoding alone, COPY, and Debezium."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.conformance.debezium.debezium import Debezium, postgres_options
from tests.conformance.debezium.usage import Usage

from benchmarks.common import LEG_TIMEOUT_S, Connection, Leg, wait_until
from benchmarks.engine import Amount
from benchmarks.workload import PUBLICATION, Backlog, copy_slot, drop_slot, slot_active
from floodmark.demo.embedded import EmbeddedPostgres

RECVLOGICAL = "pg_recvlogical"
DEBEZIUM = "Debezium 3.6.3"


def pg_recvlogical(server: EmbeddedPostgres, connection: Connection, backlog: Backlog) -> Leg:
    """Drain a copy of the backlog's slot into /dev/null."""
    slot = f"{backlog.slot}_recvlogical"
    copy_slot(connection, backlog.slot, slot)
    options = ["proto_version=1", f"publication_names={PUBLICATION}"]
    wall, cpu = run_client(
        str(server.bin / "pg_recvlogical"),
        f"--dbname={server.conninfo()}",
        f"--slot={slot}",
        "--start",
        "--no-loop",
        "--file=/dev/null",
        f"--endpos={backlog.end_lsn}",
        *(f"--option={option}" for option in options),
    )
    wait_until(lambda: not slot_active(connection, slot), 30, "pg_recvlogical's slot is free")
    drop_slot(connection, slot)
    return Leg(
        RECVLOGICAL,
        {"changes/s": backlog.changes / wall, "seconds": wall, "CPU s": cpu},
    )


def server_decoding(connection: Connection, backlog: Backlog) -> Leg:
    """Let the server decode the backlog without sending it anywhere."""
    query = """
        SELECT count(*) FROM pg_logical_slot_peek_binary_changes(
            %s, NULL, NULL, 'proto_version', '1', 'publication_names', %s)
    """
    start = time.monotonic()
    connection.execute(query, [backlog.slot, PUBLICATION])
    wall = time.monotonic() - start
    return Leg("server's decoding alone", {"changes/s": backlog.changes / wall, "seconds": wall})


def copy(server: EmbeddedPostgres, table: str, rows: int, binary: bool = False) -> Leg:
    """Read a table with psql's COPY into /dev/null."""
    style = "binary" if binary else "text"
    wall, cpu = run_client(
        str(server.bin / "psql"),
        "--no-psqlrc",
        "--quiet",
        "--output=/dev/null",
        f"--dbname={server.conninfo()}",
        f"--command=COPY {table} TO STDOUT (FORMAT {style})",
    )
    return Leg(f"COPY, {style}", {"rows/s": rows / wall, "seconds": wall, "CPU s": cpu})


def debezium_drain(server: EmbeddedPostgres, connection: Connection, backlog: Backlog) -> Leg:
    """Drain a copy of the backlog's slot with Debezium, counting its records."""
    slot = f"{backlog.slot}_debezium"
    copy_slot(connection, backlog.slot, slot)
    options = debezium_options(server, backlog.include_list, slot) | {"snapshot.mode": "no_data"}
    leg = debezium_stream(
        options, lambda: slot_active(connection, slot), Amount("changes/s", backlog.changes, backlog.events)
    )
    wait_until(lambda: not slot_active(connection, slot), 30, "Debezium's slot is free")
    drop_slot(connection, slot)
    return leg


def debezium_stream(options: dict[str, str], streaming: Callable[[], bool], amount: Amount) -> Leg:
    """Drain a backlog with Debezium, counting its records from the moment at which it streams."""
    with Debezium(options, max_records=amount.events) as debezium:
        wait_until(streaming, 60, "Debezium streams")
        ready = debezium.sampler.now()
        debezium.wait_records(amount.events, LEG_TIMEOUT_S)
        usage = debezium.sampler.usage(since=ready)
        start_up = ready[0] - debezium.started_at
    return _debezium_leg(amount, usage.wall_s, usage, start_up)


def debezium_snapshot(server: EmbeddedPostgres, connection: Connection, table: str, rows: int) -> Leg:
    """Take Debezium's initial snapshot of a table."""
    slot = "debezium_snapshot"
    leg = debezium_reads(debezium_options(server, f"public.{table}", slot), rows)
    wait_until(lambda: not slot_active(connection, slot), 30, "Debezium's slot is free")
    drop_slot(connection, slot)
    return leg


def debezium_reads(options: dict[str, str], rows: int) -> Leg:
    """Take an initial snapshot with Debezium, counting its records from the first batch on."""
    with Debezium(options | {"snapshot.mode": "initial_only"}, max_records=rows) as debezium:
        debezium.wait_records(1, 120)
        first, begun = debezium.progress[0][0], debezium.sampler.now()
        debezium.wait_records(rows, LEG_TIMEOUT_S)
        usage = debezium.sampler.usage(since=begun)
        wall = debezium.progress[-1][0] - first
        start_up = first - debezium.started_at
    leg = _debezium_leg(Amount("rows/s", rows, rows), wall, usage, start_up)
    leg.figures["steady /s"] = leg.figures["rows/s"]
    return leg


def _debezium_leg(amount: Amount, wall: float, usage: Usage, start_up: float) -> Leg:
    return Leg(
        DEBEZIUM,
        {
            amount.unit: amount.counted / wall,
            "seconds": wall,
            "CPU s": usage.cpu_s,
            "peak MB": usage.peak_memory >> 20,
            "start-up s": start_up,
        },
    )


def debezium_options(server: EmbeddedPostgres, include_list: str, slot: str) -> dict[str, str]:
    """Return options of a connector for these tables, with the benchmark's publication."""
    return {
        **postgres_options("127.0.0.1", server.port, server.user, "postgres"),
        "slot.name": slot,
        "publication.name": PUBLICATION,
        "publication.autocreate.mode": "disabled",
        "table.include.list": include_list,
    }


def run_client(*command: str) -> tuple[float, float]:
    """Run a client and return its wall time and CPU seconds."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=Path("/"))
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime
