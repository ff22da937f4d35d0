"""Record what Debezium delivers for cases: ``python -m tests.conformance.oracle.record_cases [ADAPTER/CASE ...]``."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from tests.conformance.debezium.debezium import Debezium, DebeziumError, Jvm, Record, oracle_options
from tests.conformance.oracle import statements
from tests.conformance.oracle.cases import chosen
from tests.conformance.oracle.cases.case import END, SCHEMA, Case, Pause
from tests.conformance.oracle.golden import written_golden
from tests.support.oracle.fronts.json_lines import JsonServer
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.outbound.server import JAVA, OutboundServer
from tests.support.oracle.replicator.documents import DEBEZIUM_3_6
from tests.support.oracle.replicator.server import CONTINUE, START, ReplicatorServer

DRIVER = Path(__file__).with_name("StandInDriver.java").resolve()
LIMIT_S = 60.0
AT_ONCE = 2
"""How many JVMs run at the same time."""


def main(names: list[str]) -> None:
    """Write the golden files."""
    cases = chosen(names)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        shares = pool.map(_recorded, (cases[place::AT_ONCE] for place in range(AT_ONCE)))
        failures = [name for share in shares for name in share]
    if failures:
        sys.exit(f"Not recorded: {', '.join(failures)}")


def _recorded(cases: Sequence[Case]) -> list[str]:
    """Record cases in one JVM; return the names of those that failed."""
    failures = []
    with Jvm([DRIVER], [JAVA]) as jvm:
        for case in cases:
            begun = time.monotonic()
            try:
                found = record(case, jvm)
            except DebeziumError as exc:
                print(f"{case.name}: {exc}", file=sys.stderr, flush=True)
                failures.append(f"{case.adapter}/{case.name}")
                continue
            fields = ({"topic": one.topic, "key": one.key, "value": one.value, "headers": one.headers} for one in found)
            written_golden(case, [json.dumps(one, ensure_ascii=False) for one in fields])
            print(f"{case.name}: {len(found)} records in {time.monotonic() - begun:.0f} s", flush=True)
    return failures


def record(case: Case, jvm: Jvm) -> list[Record]:
    """Return what Debezium delivers for a case, without its last change."""
    database = case.prepared()
    with ExitStack() as stack:
        server = stack.enter_context(JsonServer(database))
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        replicator: ReplicatorServer | None = None
        if case.adapter == "olr":
            replicator = stack.enter_context(ReplicatorServer(database, DEBEZIUM_3_6))
        outbound = stack.enter_context(OutboundServer(database)) if case.adapter == "xstream" else None
        options = {
            **oracle_options(server.port),
            "database.connection.adapter": case.adapter,
            "table.include.list": rf"{SCHEMA}\..*",
            **({} if replicator is None else replicator.options()),
            **({} if outbound is None else {"xstream.out.server.name": outbound.name}),
            **case.options,
        }
        options = {name: value for name, value in options.items() if value}
        with Debezium(options, Path(directory) / "records.jsonl", jvm=jvm) as debezium:
            _wait_for_stream(case, database, replicator, debezium)
            ends = 0
            for step in [*case.steps, Pause()]:
                if not isinstance(step, Pause):
                    with database.step():
                        step(database)
                elif step.text:
                    debezium.wait_for(step.text, LIMIT_S, step.times)
                elif case.streams:
                    ends += 1
                    case.end(database)
                    debezium.wait_for(f'"table":"{END}","txId":"', LIMIT_S, ends)
            if case.adapter in statements.ADAPTERS and case.name in statements.CASES:
                statements.write_sent(case, statements.sent(database))
            return [one for one in debezium.records() if END not in one.topic]


def _wait_for_stream(
    case: Case, database: OracleDatabase, replicator: ReplicatorServer | None, debezium: Debezium
) -> None:
    """Wait until the snapshot is over."""
    if case.reads:
        debezium.wait_for('"snapshot":"last"', LIMIT_S)
        return
    deadline = time.monotonic() + LIMIT_S
    while not streams(database, replicator):
        if time.monotonic() > deadline or debezium.failed:
            raise DebeziumError(f"Debezium did not begin to stream.\n{debezium.log_text()[-4000:]}")
        time.sleep(0.05)


def streams(database: OracleDatabase, replicator: ReplicatorServer | None) -> bool:
    """Return whether a connector has begun to stream."""
    if replicator is not None:
        return any(code in (START, CONTINUE) for code, _ in list(replicator.requests))
    # What it asks first: a thread that writes nothing keeps it from mining.
    return any("max(bytes)" in one.text.lower() for one in list(database.statements))


if __name__ == "__main__":
    main(sys.argv[1:])
