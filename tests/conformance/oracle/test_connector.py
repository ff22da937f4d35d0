"""All events of the whole connector, through Oracle's own driver, beside Debezium's on the same stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.oracle.cases.case import END, SCHEMA, Case
from tests.conformance.oracle.cases.ddl import DDL
from tests.conformance.oracle.cases.large_objects import LARGE_OBJECTS
from tests.conformance.oracle.cases.transactions import TRANSACTIONS
from tests.conformance.oracle.cases.values import ALTERED, VALUES
from tests.conformance.oracle.golden import Golden, goldens
from tests.conformance.oracle.test_events import PREFIX, event, shown
from tests.conformance.oracle.test_schema_changes import with_known_lengths
from tests.support.inprocess import InProcess
from tests.support.oracle.fronts.tns.server import TnsServer
from tests.support.oracle.model.database import OracleDatabase

ALL = (*VALUES, ALTERED, *TRANSACTIONS, *LARGE_OBJECTS, *DDL)
WITH_LOCAL_ZONE = {"L3", "L6"}
"""Columns of the type TIMESTAMP WITH LOCAL TIME ZONE."""
SNAPSHOT = {"true", "first", "last", "first_in_data_collection", "last_in_data_collection"}
"""What ``snapshot`` of the source block may be for rows that were read; here it is always ``true``."""


def options_of(case: Case, database: OracleDatabase, port: int, state: Path) -> dict[str, str]:
    given = dict(case.options)
    schemas = {given.pop(f"{part}.converter.schemas.enable", "false") for part in ("key", "value")}
    return {
        "connector": "oracle",
        "topic.prefix": PREFIX,
        "state.dir": str(state),
        "database.connection.adapter": case.adapter,
        "database.hostname": "127.0.0.1",
        "database.port": str(port),
        "database.user": database.account,
        "database.password": "dbz",
        "database.dbname": database.settings.name,
        "database.pdb.name": database.pluggable,
        "table.include.list": rf"{SCHEMA}\..*",
        "log.mining.poll.interval.ms": "50",
        "schemas.enable": max(schemas),
        **given,
    }


def delivered(case: Case, state: Path) -> list[Golden]:
    """Return all events that the connector makes of a case, those that its end makes as well."""
    database = case.prepared()
    with TnsServer(database) as server:
        query = InProcess(options_of(case, database, server.port, state))
        try:
            rows = query.drain()
            query.restart()
            for step in case.steps:
                with database.step():
                    step(database)
            case.end(database)
            rows += query.drain()
        finally:
            query.stop()
    return [event(row) for row in rows if row["topic"]]


def payload(one: Golden) -> dict[str, Any]:
    found: dict[str, Any] = {} if one.value is None else one.value.get("payload", one.value)
    return found


def is_read(one: Golden) -> bool:
    return payload(one).get("op") == "r" or payload(one).get("source", {}).get("snapshot") in SNAPSHOT


def compared(events: list[Golden]) -> Iterator[Golden]:
    """Yield events without what can't be equal, and without the change that a case ends with."""
    for one in events:
        if END in one.topic or END in str(payload(one).get("data_collections")):
            continue
        value = None if one.value is None else shown(one.value)
        found = {} if value is None else value.get("payload", value)
        source = found.get("source")
        if source is not None and source["snapshot"] in SNAPSHOT:
            source["snapshot"] = "true"
        if source is not None and "tableChanges" in found:
            # Debezium says when it made the event, and what transaction it saw last.
            source |= {"txId": None, "commit_scn": None, "user_name": None, "txSeq": None}
            if source["snapshot"] == "true":
                source |= {"ts_ms": 0, "ts_us": 0, "ts_ns": 0}
            found["ddl"] = found["ddl"].removesuffix(";")
            tables = {change["id"]: change["table"] for change in found["tableChanges"] if change["table"]}
            with_known_lengths(tables)
        after = found.get("after") or {}
        if found.get("op") == "r":
            # The stand-in's JDBC driver gives Debezium no zone of its session's.
            for name in WITH_LOCAL_ZONE & set(after):
                after[name] = None
        yield Golden(one.topic, one.key, value, one.headers)


@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case.adapter}-{case.name}")
def test_all_events(case: Case, tmp_path: Path) -> None:
    ours, theirs = list(compared(delivered(case, tmp_path))), list(compared(goldens(case)))
    assert len(theirs) > 10
    # Tables are read in parallel, so rows come in any order.
    assert sorted(map(repr, filter(is_read, ours))) == sorted(map(repr, filter(is_read, theirs)))
    changes, wanted = ([one for one in events if not is_read(one)] for events in (ours, theirs))
    for found, one in zip(changes, wanted, strict=False):
        assert found == one
    assert len(changes) == len(wanted)
