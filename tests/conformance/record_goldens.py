"""Record the conformance cases' events from Debezium.

``python -m tests.conformance.record_goldens [--connector NAME] [CASE ...]``
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from tests.conformance.cases import Case, cases_of
from tests.conformance.debezium.debezium import Record
from tests.conformance.golden import Golden, path_of, settled
from tests.conformance.recorders import mysql, postgres

RECORDERS = {"postgres": postgres, "mysql": mysql, "mariadb": mysql}
RUN_HEADERS = "__debezium.context."


def main(arguments: Sequence[str] | None = None) -> None:
    """Record the goldens of the named cases, of all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="names of cases")
    parser.add_argument("--connector", choices=RECORDERS, help="that connector's cases only")
    parsed = parser.parse_args(arguments)
    for connector, recorder in RECORDERS.items():
        if parsed.connector in (None, connector):
            chosen = [case for case in cases_of(connector) if not parsed.cases or case.name in parsed.cases]
            for case, records in recorder.record_all(chosen):
                save(case, records)
                print(f"{connector} {case.name}: {len(records)} records", flush=True)


def save(case: Case, records: list[Record]) -> None:
    """Write a case's records, without the headers that only name the run.

    Partitions are kept in cases of transforms that decide on them: Debezium sends all that isn't a row to partition 0.
    """
    lines = []
    for one in settled([Golden(one.topic, one.key, one.value, one.headers, one.partition) for one in records]):
        headers = {name: value for name, value in one.headers.items() if not name.startswith(RUN_HEADERS)}
        golden: dict[str, object] = {"topic": one.topic, "key": one.key, "value": one.value, "headers": headers}
        if one.partition is not None and "partition" in case.name:
            golden["partition"] = one.partition
        lines.append(json.dumps(golden, ensure_ascii=False, separators=(",", ":")) + "\n")
    path = path_of(case.name, case.connector)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
