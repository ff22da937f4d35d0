"""Record what Debezium delivers for cases: ``python -m tests.conformance.oracle.record_cases [ADAPTER/CASE ...]``."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.conformance.debezium.debezium import Debezium, Record, oracle_options
from tests.conformance.oracle.cases import chosen
from tests.conformance.oracle.cases.case import END, SCHEMA, Case
from tests.conformance.oracle.golden import golden_path
from tests.support.oracle.fronts.json_lines import JsonServer
from tests.support.oracle.replicator.documents import DEBEZIUM_3_6
from tests.support.oracle.replicator.server import ReplicatorServer

DRIVER = Path(__file__).with_name("StandInDriver.java").resolve()
LIMIT_S = 60.0


def main(names: list[str]) -> None:
    """Write the golden files."""
    for case in chosen(names):
        begun = time.monotonic()
        found = record(case)
        path = golden_path(case)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            for one in found:
                fields = {"topic": one.topic, "key": one.key, "value": one.value, "headers": one.headers}
                file.write(json.dumps(fields, ensure_ascii=False) + "\n")
        print(f"{case.name}: {len(found)} records in {time.monotonic() - begun:.0f} s", flush=True)


def record(case: Case) -> list[Record]:
    """Return what Debezium delivers for a case, without its last change."""
    database = case.prepared()
    with ExitStack() as stack:
        server = stack.enter_context(JsonServer(database))
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        replicated: Mapping[str, str] = {}
        if case.adapter == "olr":
            replicated = stack.enter_context(ReplicatorServer(database, DEBEZIUM_3_6)).options()
        options = {
            **oracle_options(server.port),
            "database.connection.adapter": case.adapter,
            "schema.include.list": SCHEMA,
            **replicated,
            **case.options,
        }
        with Debezium(options, Path(directory) / "records.jsonl", drivers=[DRIVER]) as debezium:
            debezium.wait_for('"snapshot":"last"', LIMIT_S)
            for step in case.steps:
                with database.step():
                    step(database)
            case.end(database)
            debezium.wait_for(f'"table":"{END}","txId":"', LIMIT_S)
            return [one for one in debezium.records() if END not in one.topic]


if __name__ == "__main__":
    main(sys.argv[1:])
