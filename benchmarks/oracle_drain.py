"""Drain a backlog that waits in Oracle's log, beside Debezium: both read the same stand-in.

The stand-in prepares its answers, and its own CPU is measured apart; see ``oracle_stand_in``. It isn't Oracle: what is
compared is the work of the consumers. Debezium reads it through a JDBC driver of the stand-in's own, which parses JSON
where Oracle's would parse its own format; Floodmark reads it through Oracle's driver.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.conformance.debezium.debezium import Debezium, oracle_options
from tests.conformance.oracle.record_cases import DRIVER

from benchmarks import reference
from benchmarks.common import LEG_TIMEOUT_S, Leg, Result, Scale, wait_until
from benchmarks.engine import Amount, run_halves
from benchmarks.oracle_stand_in import CHANGES, DELETES, SCHEMA, TABLE, StandIn
from floodmark.connectors.load import load_options
from floodmark.connectors.registry import connector_module


def run(scale: Scale) -> Result:
    """Drain one backlog with Debezium and with Floodmark, from the moment at which all of it can be read."""
    transactions = scale.drain_transactions
    amount = Amount("changes/s", transactions * CHANGES, transactions * (CHANGES + DELETES))
    result = Result("oracle_drain", scale.name, "stand-in of Oracle")
    result.notes.append(f"{amount.counted:,} row changes, {amount.events:,} events with tombstones")
    with tempfile.TemporaryDirectory() as directory, StandIn() as stand_in:
        options = _options(stand_in.place.tns_port, Path(directory))
        position = _begin(options)
        stand_in.go_on()
        run_halves(options, Amount("changes/s", 0, 0), *position)
        if not stand_in.asked("tns"):
            raise RuntimeError("The stand-in can't prepare its answers: it doesn't know the query.")
        if not scale.debezium:
            stand_in.add_backlog(transactions)
        else:
            with Debezium(_debezium_options(stand_in.place.json_port), drivers=[DRIVER]) as debezium:
                wait_until(lambda: stand_in.asked("json") > 0, 120, "Debezium streams")
                before = stand_in.cpu_s()
                seen = stand_in.add_backlog(transactions)
                prepared, begun = stand_in.cpu_s(), debezium.sampler.now()
                debezium.wait_records(amount.events, LEG_TIMEOUT_S)
                usage = debezium.sampler.usage(since=begun)
                wall = debezium.progress[-1][0] - seen
                result.legs.append(_leg(reference.DEBEZIUM, amount, wall, usage.cpu_s, stand_in.cpu_s() - prepared))
            result.notes.append(f"the stand-in prepared its answers in {prepared - before:.0f} s of CPU")
        before = stand_in.cpu_s()
        halves = run_halves(options, amount, *position)
        served = stand_in.cpu_s() - before
    seconds, cpu_s = (sum(float(leg.figures[name] or 0) for leg in halves) for name in ("seconds", "CPU s"))
    result.legs += [*halves, _leg("Floodmark, one after the other", amount, seconds, cpu_s, served)]
    for figure, name in (("changes/s", "x Debezium"), ("CPU s", "CPU x Debezium")):
        result.add_ratio(figure, name, reference.DEBEZIUM)
    return result


def _begin(options: dict[str, str]) -> tuple[str, str]:
    """Return where the log ends, and what is known of that position."""
    loaded = load_options(options)
    source = connector_module(loaded.connector, "connector").make_source(loaded)
    try:
        start, _ = source.log.create(False)
        return start, json.dumps(source.log.bookmark(start))
    finally:
        source.close()


def _leg(name: str, amount: Amount, seconds: float, cpu_s: float, stand_in_s: float) -> Leg:
    figures = {
        amount.unit: amount.counted / seconds,
        "seconds": seconds,
        "CPU s": cpu_s,
        "stand-in's CPU s": stand_in_s,
    }
    return Leg(name, {**figures})


def _options(port: int, directory: Path) -> dict[str, str]:
    return {
        "connector": "oracle",
        "topic.prefix": "reference",
        "state.dir": str(directory / "state"),
        "database.hostname": "127.0.0.1",
        "database.port": str(port),
        "database.user": "C##DBZUSER",
        "database.password": "dbz",
        "database.dbname": "FREE",
        "database.pdb.name": "ORCLPDB1",
        "table.include.list": rf"{SCHEMA}\.{TABLE}",
        "snapshot.mode": "no_data",
        "include.schema.changes": "false",
        "log.mining.poll.interval.ms": "50",
    }


def _debezium_options(port: int) -> dict[str, str]:
    return {
        **oracle_options(port),
        "table.include.list": rf"{SCHEMA}\.{TABLE}",
        "snapshot.mode": "no_data",
        "include.schema.changes": "false",
        # It reads ahead as far as it lets itself at once, and doesn't wait in between.
        "log.mining.batch.size.default": "100000",
        "log.mining.batch.size.max": "100000",
        "log.mining.sleep.time.default.ms": "0",
        "log.mining.sleep.time.min.ms": "0",
        "log.mining.sleep.time.increment.ms": "0",
    }
