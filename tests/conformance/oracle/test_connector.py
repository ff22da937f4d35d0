"""All events of the whole connector, through Oracle's own driver, beside Debezium's on the same stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.oracle.cases.case import END, SCHEMA, Case
from tests.conformance.oracle.cases.ddl import DDL
from tests.conformance.oracle.cases.large_objects import LARGE_OBJECTS
from tests.conformance.oracle.cases.replicated import REPLICATED
from tests.conformance.oracle.cases.transactions import TRANSACTIONS
from tests.conformance.oracle.cases.values import ALTERED, TIMES, VALUES
from tests.conformance.oracle.golden import Golden, goldens
from tests.conformance.oracle.test_events import PREFIX, event, shown
from tests.conformance.oracle.test_schema_changes import with_known_lengths
from tests.support.inprocess import InProcess
from tests.support.oracle.fronts.tns.server import TnsServer
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.replicator.documents import DEBEZIUM_3_6, Format
from tests.support.oracle.replicator.server import ReplicatorServer

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


def delivered(case: Case, state: Path, format_: Format | None = None) -> list[Golden]:
    """Return all events that the connector makes of a case, those that its end makes as well.

    Args:
        case: the case.
        state: a directory.
        format_: what OpenLogReplicator sends; None: LogMiner is asked.
    """
    database = case.prepared()
    with ExitStack() as stack:
        server = stack.enter_context(TnsServer(database))
        options = options_of(case, database, server.port, state)
        if format_ is not None:
            del options["log.mining.poll.interval.ms"]
            options |= stack.enter_context(ReplicatorServer(database, format_)).options()
        query = InProcess(options)
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
            # Debezium says when it made the event, and what transaction and row it saw last.
            source |= dict.fromkeys(("txId", "commit_scn", "user_name", "txSeq", "row_id"))
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
    prove_equal(list(compared(delivered(case, tmp_path))), list(compared(goldens(case))))


FORMATS = {"as for Debezium 3.6": DEBEZIUM_3_6, "preset": Format(), "whole transactions": Format(whole=True)}
_ALWAYS = {"T6", "Z0", "Z6"}
OTHER_TIMES = {
    **dict.fromkeys(("values", "values_schemas", "time_connect", "interval_string"), _ALWAYS),
    **{name: {*_ALWAYS, "DAY"} for name in ("time_microseconds", "time_nanoseconds")},
    "time_isostring": {*_ALWAYS, "DAY", "T3", "T9"},
}
"""Columns of which Debezium's adapter ``olr`` shows times in another way than its snapshots and its other adapters.

Nanoseconds since the epoch that take more than 64 bits overflow. DATE is always in milliseconds, whatever the mode's
unit is, and in ISO 8601 times before 1970 are null. A zoned time without a fraction has a point, and one at UTC ends
with ``+00:00``. Floodmark shows each time as Debezium does with LogMiner, so that rows of snapshots and of the log are
alike.
"""


@pytest.mark.parametrize("format_", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("case", REPLICATED, ids=lambda case: case.name)
def test_all_events_of_openlogreplicator(case: Case, format_: Format, tmp_path: Path) -> None:
    ours, theirs = list(compared(delivered(case, tmp_path, format_))), list(compared(goldens(case)))
    mined = list(compared(goldens(replace(case, adapter="logminer"))))
    assert with_times_of(mined, theirs) == OTHER_TIMES.get(case.name, set())
    if format_.whole:
        # A message has one time, that of its transaction's beginning.
        for one in (*ours, *theirs):
            source = payload(one).get("source", {})
            source.update(dict.fromkeys({"ts_ms", "ts_us", "ts_ns"} & source.keys()))
    prove_equal([without_comments(one) for one in ours if not is_comment(one)], theirs)


def without_comments(one: Golden) -> Golden:
    """Return an event without the comment that COMMENT ON has given to a column."""
    return replace(one, key=_without_comments(one.key), value=_without_comments(one.value))


def _without_comments(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_comments(one) for one in value]
    if isinstance(value, dict):
        return {name: _without_comments(one) for name, one in value.items() if (name, one) != ("doc", "A value")}
    return value


def is_comment(one: Golden) -> bool:
    """Return whether an event is of COMMENT ON, which Debezium's adapter ``olr`` leaves out."""
    return str(payload(one).get("ddl")).startswith("COMMENT ON")


def with_times_of(mined: list[Golden], events: list[Golden]) -> set[str]:
    """Give events the times of others, and return the columns in which they differed."""
    found = set()
    changes = ([one for one in some if "op" in payload(one) and not is_read(one)] for some in (mined, events))
    for other, one in zip(*changes, strict=False):
        for side in ("before", "after"):
            row, wanted = payload(one)[side] or {}, payload(other)[side] or {}
            for name in {name for name in TIMES if name in row and row[name] != wanted[name]}:
                found.add(name)
                row[name] = wanted[name]
    return found


def prove_equal(ours: list[Golden], theirs: list[Golden]) -> None:
    """Prove that events are Debezium's."""
    assert len(theirs) > 10
    # Tables are read in parallel, so rows come in any order.
    assert sorted(map(repr, filter(is_read, ours))) == sorted(map(repr, filter(is_read, theirs)))
    changes, wanted = ([one for one in events if not is_read(one)] for events in (ours, theirs))
    for found, one in zip(changes, wanted, strict=False):
        assert found == one
    assert len(changes) == len(wanted)
