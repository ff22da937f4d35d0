"""Events of changes that LogMiner shows, beside Debezium's on the same stand-in."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from floodmark.changes.table_version import EventVersions
from floodmark.connectors.oracle.decode.decoder import Decoder
from tests.conformance.oracle.cases.case import END, Case
from tests.conformance.oracle.cases.transactions import TRANSACTIONS
from tests.conformance.oracle.cases.values import VALUES
from tests.conformance.oracle.golden import Golden, goldens, timeless
from tests.conformance.oracle.mined import OracleCaseOptions, changed, changes_of, structures_of

NEITHER = {"log.mining.include.redo.sql", "interval.handling.mode", "include.schema.comments"}
"""Options that the decoder doesn't get from the source's options, or doesn't have yet."""
CASES = (*VALUES, *TRANSACTIONS)
PREFIX = "reference"


def options_of(case: Case) -> OracleCaseOptions:
    given = {name: value for name, value in case.options.items() if name not in NEITHER}
    schemas = {given.pop(f"{part}.converter.schemas.enable", "false") for part in ("key", "value")}
    return OracleCaseOptions.parse(
        {"connector": "oracle", "topic.prefix": PREFIX, "state.dir": "/none", "schemas.enable": max(schemas), **given}
    )


def delivered(case: Case, piece: int) -> list[Golden]:
    """Return the events of a case's changes."""
    database, options = changed(case), options_of(case)
    with_statements = case.options.get("log.mining.include.redo.sql") == "true"
    decoder = Decoder(options, EventVersions(options), with_statements)
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
    assert len(expected) > 10
    for piece in (3, 1000):
        for found, one in zip(delivered(case, piece), expected, strict=True):
            assert found == one


def test_order_of_fields() -> None:
    case = next(one for one in CASES if one.name == "transactions")
    database, options = changed(case), options_of(case)
    batch = Decoder(options, EventVersions(options)).decode(*changes_of(case, database), structures_of(case, database))
    assert isinstance(batch, pa.RecordBatch)
    ours = next(json.loads(one) for one in batch["value"].to_pylist() if one)
    theirs = next(one.value for one in wanted(case) if one.value)
    assert list(ours["source"]) == list(theirs["source"])
    assert [name for name in ours if name in theirs] == list(theirs)
