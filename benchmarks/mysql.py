"""MySQL and MariaDB: drain a backlog that waits in the binlog, and read a table at first and incrementally."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.conformance.debezium.debezium import Debezium, mysql_options
from tests.support.mysql import ADMIN, ADMIN_PASSWORD, Flavor, MysqlServer

from benchmarks import reference
from benchmarks.common import Leg, Result, Scale, wait_until
from benchmarks.engine import START_TIMEOUT_S, Amount, QueryProcess, measure, run_halves
from benchmarks.incremental import Asked, add_ratios, debezium_reads, floodmark_reads, signal_data
from benchmarks.latency import RATE, Writer
from benchmarks.mysql_workload import (
    SIGNAL_TABLE,
    SIGNALS,
    TABLE,
    VERSIONS,
    Watch,
    create_backlog,
    database,
    fill,
    first_rows,
    session,
)
from benchmarks.query import Spec
from floodmark.connectors.load import load_options
from floodmark.connectors.registry import connector_module

RAW = "mysqlbinlog, raw"
SELECT = "SELECT, quick"
FLOODMARK = ("Floodmark, noop", "Floodmark, noop, warm session")
"""One after the other in the same session: the first also waits for the start of Spark's Python processes."""
INCREMENTAL: dict[str, dict[str, str]] = {
    "Floodmark, default": {},
    "Floodmark, batches of 2 s": {"snapshot.batch.target.ms": "2000"},
}


def drain(scale: Scale, flavor: Flavor) -> Result:
    """Drain one backlog with ``mysqlbinlog``, with Debezium and with Floodmark.

    A binlog has no slots: each consumer runs once before the changes are made, and goes on from where it stopped.
    """
    result = Result(f"{flavor}_drain", scale.name, VERSIONS[flavor])
    with database(flavor) as server, tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        scratch = Path(directory)
        debezium = _prepare_debezium(server, scratch) if scale.debezium else None
        if debezium is None:
            first_rows(server)
        specs = _specs({}, server, scratch)
        query = stack.enter_context(QueryProcess([*specs, *specs], scratch / "query.log"))
        for _ in specs:
            query.start_next()
            query.wait("finished", START_TIMEOUT_S)
        halves = source_options(server, scratch / "state_of_halves")
        position = _prepare_halves(halves)
        backlog = create_backlog(server, scale.drain_transactions)
        result.notes.append(f"{backlog.changes:,} row changes, {backlog.events:,} events with tombstones")
        amount = Amount("changes/s", backlog.changes, backlog.events)
        result.legs.append(_mysqlbinlog(server, backlog.file, amount))
        if debezium is not None:
            with Watch(server) as watch:
                result.legs.append(reference.debezium_stream(debezium, watch.streams, amount))
        result.legs += run_halves(halves, amount, position)
        for name in FLOODMARK:
            with Watch(server) as watch:
                result.legs.append(measure(query, name, watch.streams, amount))
    for name, base in (("x mysqlbinlog", RAW), ("x Debezium", reference.DEBEZIUM)):
        result.add_ratio("changes/s", name, base)
    return result


def snapshot(scale: Scale, flavor: Flavor) -> Result:
    """Read a large table with the server's client, with Debezium and with Floodmark."""
    result = Result(f"{flavor}_snapshot", scale.name, VERSIONS[flavor])
    rows = scale.large_rows
    with database(flavor) as server, tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        fill(server, rows)
        result.notes.append(f"{rows:,} rows")
        command = server.tool("mysql", *_login(server), "--quick", f"--execute=SELECT * FROM {TABLE}")
        wall, cpu = reference.run_client(*command)
        result.legs.append(Leg(SELECT, {"rows/s": rows / wall, "seconds": wall, "CPU s": cpu}))
        if scale.debezium:
            result.legs.append(reference.debezium_reads(debezium_options(server), rows))
        specs = _specs({"snapshot.mode": "initial_only"}, server, scratch)
        with QueryProcess(specs, scratch / "query.log") as query:
            for name in FLOODMARK:
                with Watch(server) as watch:
                    result.legs.append(measure(query, name, watch.reads, Amount("rows/s", rows, rows)))
    for name, base in (("x SELECT", SELECT), ("x Debezium", reference.DEBEZIUM)):
        result.add_ratio("rows/s", name, base)
    # Both from their first batch on.
    result.add_ratio("steady /s", "steady x Debezium", reference.DEBEZIUM)
    return result


def incremental(scale: Scale, flavor: Flavor) -> Result:
    """Read the table incrementally, with Debezium and with Floodmark, while its rows change at a steady rate."""
    rows = scale.incremental_rows
    result = Result(f"{flavor}_incremental", scale.name, VERSIONS[flavor])
    result.notes.append(f"{rows:,} rows, {RATE} update transactions/s on them; latencies are those of the updates")
    update = f"UPDATE {TABLE} SET updated_at = NOW(6) WHERE id = 1 + (%s * 7919) %% {rows}"
    signals = {"signal.data.collection": SIGNAL_TABLE, "table.include.list": f"{TABLE},{SIGNAL_TABLE}"}
    with database(flavor) as server, tempfile.TemporaryDirectory() as directory:
        # Debezium writes marks to the signal table.
        server.execute(SIGNALS, f"GRANT INSERT, UPDATE, DELETE ON {SIGNAL_TABLE} TO {server.user}")
        fill(server, rows)

        def ask() -> None:
            data = signal_data([TABLE])
            server.execute(f"INSERT INTO {SIGNAL_TABLE} VALUES (UUID(), 'execute-snapshot', '{data}')")

        if scale.debezium:
            for chunk in (None, 10_000):
                with Writer(session(server, update)), Watch(server) as watch:
                    asked = Asked(rows, ask, watch.streams)
                    result.legs += debezium_reads(debezium_options(server) | signals, asked, chunk)
        for name, own in INCREMENTAL.items():
            scratch = Path(directory) / name
            scratch.mkdir()
            with Writer(session(server, update)), Watch(server) as watch:
                options = source_options(server, scratch / "state") | signals | own
                result.legs += floodmark_reads(options, Asked(rows, ask, watch.streams), scratch, name)
    add_ratios(result)
    return result


def source_options(server: MysqlServer, state: Path) -> dict[str, str]:
    """Return the options of a Floodmark source that reads no rows at first."""
    return {
        **server.options(),
        "topic.prefix": "bench",
        "table.include.list": TABLE,
        "state.dir": str(state),
        "snapshot.mode": "no_data",
        "include.schema.changes": "false",
    }


def _specs(options: dict[str, str], server: MysqlServer, scratch: Path) -> list[Spec]:
    return [
        Spec(source_options(server, scratch / f"state_{number}") | options, str(scratch / f"checkpoint_{number}"))
        for number in range(len(FLOODMARK))
    ]


def _prepare_halves(options: dict[str, str]) -> str:
    source = connector_module(options["connector"], "connector").make_source(load_options(options))
    position, _ = source.log.create(False)
    source.close()
    return str(position)


def _prepare_debezium(server: MysqlServer, scratch: Path) -> dict[str, str]:
    """Let Debezium write down a place in the log, and return the options with which it goes on from there."""
    options = debezium_options(server) | {
        "snapshot.mode": "no_data",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(scratch / "offsets"),
    }
    options |= history_in(scratch)
    with Watch(server) as watch, Debezium(options) as debezium:
        wait_until(watch.streams, START_TIMEOUT_S, "Debezium streams")
        debezium.wait_records(first_rows(server), START_TIMEOUT_S)
    return options


def history_in(folder: Path) -> dict[str, str]:
    """Return options with which Debezium's schema history outlives the connector."""
    return {
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": str(folder / "history"),
    }


def debezium_options(server: MysqlServer) -> dict[str, str]:
    """Return options of Debezium's connector for the table, which keeps offsets and schema history in memory."""
    return mysql_options(server) | {"table.include.list": TABLE, "include.schema.changes": "false"}


def _mysqlbinlog(server: MysqlServer, file: str, amount: Amount) -> Leg:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        arguments = ("--read-from-remote-server", "--raw", f"--result-file={directory}/", file)
        wall, cpu = reference.run_client(*server.tool("mysqlbinlog", *_login(server), *arguments))
    return Leg(RAW, {amount.unit: amount.counted / wall, "seconds": wall, "CPU s": cpu})


def _login(server: MysqlServer) -> list[str]:
    return [
        "--no-defaults",
        "--host=127.0.0.1",
        f"--port={server.port}",
        f"--user={ADMIN}",
        f"--password={ADMIN_PASSWORD}",
    ]
