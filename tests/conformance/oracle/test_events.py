"""Events of changes that LogMiner shows, beside Debezium's on the same stand-in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from floodmark.changes.table_version import EventVersions
from floodmark.connectors.oracle.decode.decoder import Decoder
from tests.conformance.oracle.cases.case import END, Case, table
from tests.conformance.oracle.cases.large_objects import DIFFERENCES, LARGE, LARGE_OBJECTS
from tests.conformance.oracle.cases.transactions import TRANSACTIONS
from tests.conformance.oracle.cases.values import VALUES
from tests.conformance.oracle.golden import Golden, goldens, timeless
from tests.conformance.oracle.mined import OracleCaseOptions, changed, changes_of, structures_of
from tests.support.oracle.model.database import OracleDatabase

NEITHER = {"log.mining.include.redo.sql", "interval.handling.mode", "lob.enabled", "include.schema.comments"}
"""Options that the decoder doesn't get from the source's options, or doesn't have yet."""
CASES = (*VALUES, *TRANSACTIONS, *LARGE_OBJECTS)
PREFIX = "reference"


def options_of(case: Case) -> OracleCaseOptions:
    given = {name: value for name, value in case.options.items() if name not in NEITHER}
    schemas = {given.pop(f"{part}.converter.schemas.enable", "false") for part in ("key", "value")}
    return OracleCaseOptions.parse(
        {"connector": "oracle", "topic.prefix": PREFIX, "state.dir": "/none", "schemas.enable": max(schemas), **given}
    )


def large_objects(case: Case) -> bool:
    """Return whether a case reads large objects."""
    return case.options.get("lob.enabled") == "true"


def delivered(case: Case, piece: int) -> list[Golden]:
    """Return the events of a case's changes."""
    database, options = changed(case), options_of(case)
    with_statements = case.options.get("log.mining.include.redo.sql") == "true"
    decoder = Decoder(options, EventVersions(options), with_statements, large_objects(case))
    batch = decoder.decode(*changes_of(case, database, piece), structures_of(case, database))
    assert batch is not None
    positions = batch["position"].to_pylist()
    assert positions == sorted(set(positions))
    return [event(row) for row in batch.to_pylist()]


def event(row: dict[str, Any]) -> Golden:
    key, value = (None if row[name] is None else json.loads(row[name]) for name in ("key", "value"))
    headers = {one["key"]: one["value"].decode() for one in row["headers"] or ()}
    return Golden(row["topic"], key, None if value is None else shown(timeless(value)), headers)


def shown(value: dict[str, Any]) -> dict[str, Any]:
    """Return an event without the version that has made it."""
    if "payload" in value:
        return {**value, "payload": shown(value["payload"])}
    return {**value, "source": {**value["source"], "version": ""}} if "source" in value else value


def wanted(case: Case) -> list[Golden]:
    """Return Debezium's events of a case's changes: no schema changes, and nothing of the transaction that ends it."""
    found = []
    for one in goldens(case):
        value = one.value
        payload: dict[str, Any] = {} if value is None else value.get("payload", value)
        is_change = value is None or payload.get("op", "r") != "r"
        if is_change or "status" in payload:
            found.append(Golden(one.topic, one.key, None if value is None else shown(value), one.headers))
    last = {one.value["id"] for one in found if one.value and END in str(one.value.get("data_collections"))}
    return [one for one in found if one.value is None or one.value.get("id") not in last]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.adapter}-{case.name}")
def test_events_of_the_log(case: Case) -> None:
    expected = wanted(case)
    assert len(expected) > 5
    for piece in (3, 1000):
        for found, one in zip(delivered(case, piece), expected, strict=True):
            assert found == one


NOT_KNOWN, NOT_KNOWN_BYTES = "__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
BYTES = "MDEyMzQ1Njc4OQ=="
DIFFERENT: list[tuple[str, dict[str, Any] | None, dict[str, Any] | None]] = [
    # What was there before isn't in the log, so Debezium's blanks are not what is there now.
    ("written behind the beginning", {"ID": 1, "C": "   abc"}, {"ID": 1, "C": NOT_KNOWN}),
    ("written with a gap", {"ID": 2, "C": "abc gap"}, {"ID": 2, "C": NOT_KNOWN}),
    ("trimmed", {"ID": 3, "C": None}, {"ID": 3, "C": NOT_KNOWN}),
    ("erased: Debezium delivers no event", None, {"ID": 4, "C": NOT_KNOWN, "B": NOT_KNOWN_BYTES}),
    ("only locked", {"ID": 5, "C": None}, None),
    # All that was there before is in the log.
    ("trimmed and written", {"ID": 11, "C": "012345gap9"}, {"ID": 11, "C": "0123  gap"}),
    ("erased", None, {"ID": 12, "C": "0   456789", "B": "MDEyMzQ1NjcAAA=="}),
    ("overwritten", {"ID": 13, "C": "second" + ("first" * 900)[6:]}, {"ID": 13, "C": "second"}),
    # Debezium asks the database for what an event of a new key lacks.
    ("a new key", {"ID": 66, "N": None, "B": BYTES}, {"ID": 66, "N": NOT_KNOWN, "B": NOT_KNOWN_BYTES}),
    ("written before its row", {"ID": 21, "C": None}, {"ID": 21, "C": NOT_KNOWN}),
    # Debezium leaves the quotes doubled that a literal has.
    ("quotes", {"NAME": "quotes", "S": "it''s" * 1001}, {"NAME": "quotes", "S": "it's" * 1001}),
    # Debezium takes all rows of a table without a key for one.
    ("without a key", {"NAME": "changed", "C": "written"}, {"NAME": "one", "C": "written"}),
    ("without a key", None, {"NAME": "changed", "C": NOT_KNOWN}),
]
"""What Debezium delivers and what Floodmark does, by the values that matter."""


def test_differences_of_large_objects() -> None:
    theirs = [one.value["after"] for one in wanted(DIFFERENCES) if one.value is not None]
    ours = [one.value["after"] for one in delivered(DIFFERENCES, 7) if one.value is not None]
    for what, debezium, floodmark in DIFFERENT:
        for rows, values in ((theirs, debezium), (ours, floodmark)):
            if values is not None:
                assert any(row is not None and values.items() <= row.items() for row in rows), what
    assert len(ours) - len(theirs) == sum((a is None) - (b is None) for _, a, b in DIFFERENT)
    changed = [one for _, one, _ in DIFFERENT if one is not None]
    same = [row for row in theirs if row is None or not any(one.items() <= row.items() for one in changed)]
    assert all(row in ours for row in same)
    assert len(same) == len(theirs) - len(changed)


def test_rows_without_a_rowid() -> None:
    """What has no ROWID at all, which Debezium refuses, is as what has one of no row."""

    def setup(database: OracleDatabase) -> None:
        LARGE.setup(database)
        for name in LARGE.tables:
            table(database, name).unknown_row_id = None

    assert delivered(replace(LARGE, setup=setup), 3) == wanted(LARGE)


def test_order_of_fields() -> None:
    case = next(one for one in CASES if one.name == "transactions")
    database, options = changed(case), options_of(case)
    batch = Decoder(options, EventVersions(options)).decode(*changes_of(case, database), structures_of(case, database))
    assert isinstance(batch, pa.RecordBatch)
    ours = next(json.loads(one) for one in batch["value"].to_pylist() if one)
    theirs = next(one.value for one in wanted(case) if one.value)
    assert list(ours["source"]) == list(theirs["source"])
    assert [name for name in ours if name in theirs] == list(theirs)
