"""Tables as Debezium's schema change topic describes them, and events of their rows, on the same stand-in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from floodmark.changes.table_version import EventVersions
from floodmark.connectors.oracle.decode.decoder import Decoder
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.structures.described import described_table, table_id
from tests.conformance.oracle.cases import CASES
from tests.conformance.oracle.cases.case import SCHEMA, Case
from tests.conformance.oracle.cases.ddl import AFTER, BEFORE, DDL
from tests.conformance.oracle.golden import goldens
from tests.conformance.oracle.mined import (
    changed,
    changes_of,
    comments_of,
    followed,
    settings_of,
    structures_of,
)
from tests.conformance.oracle.test_events import event, options_of, wanted


def schema_changes(case: Case, of_snapshot: bool) -> list[dict[str, Any]]:
    """Return the records that Debezium's schema change topic has of a case's snapshot, or of its log."""
    found = []
    for one in goldens(case):
        payload: dict[str, Any] = {} if one.value is None else one.value.get("payload", one.value)
        if "tableChanges" in payload and (payload["source"]["snapshot"] == "true") == of_snapshot:
            found.append(payload)
    return found


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: f"{case.adapter}-{case.name}")
def test_tables_of_the_dictionary(case: Case) -> None:
    names = BEFORE if case.name in {one.name for one in DDL} else case.tables
    case = replace(case, tables=tuple(names))
    tables = [one.definition for one in structures_of(case, case.prepared()).values()]
    ours = {table_id(one): described_table(one, comments_of(case)) for one in tables}
    theirs = {
        one["id"]: one["table"]
        for payload in schema_changes(case, True)
        for one in payload["tableChanges"]
        if one["id"] in ours
    }
    assert len(ours) == len(names) > 0
    assert with_known_lengths(ours) == with_known_lengths(theirs)


def with_known_lengths(tables: dict[str, Any]) -> dict[str, Any]:
    """Leave out the length that JDBC reports of XMLTYPE, which only the stand-in says."""
    for table in tables.values():
        for column in table["columns"]:
            if column["typeName"] == "XMLTYPE":
                del column["length"]
    return tables


@pytest.mark.parametrize("case", DDL, ids=lambda case: case.name)
def test_statements_of_the_log(case: Case) -> None:
    comments = comments_of(case)
    ours = [(text, change.described(comments)) for text, change, _ in followed(case, list(BEFORE))]
    theirs = [(one["ddl"], one["tableChanges"]) for one in schema_changes(case, False)]
    assert len(theirs) == (12 if comments else 10)
    assert [(text.removesuffix(";"), one) for text, one in ours if one] == theirs


@pytest.mark.parametrize("case", DDL, ids=lambda case: case.name)
def test_rows_of_tables_that_were_altered(case: Case) -> None:
    database, options = changed(case), options_of(case)
    *_, (_, _, tables) = followed(case, list(BEFORE))
    structures = {
        f"{SCHEMA}.{name}": TableStructure(table, settings_of(case), comments_of(case))
        for (_, name), table in tables.items()
    }
    assert sorted(structures) == sorted(f"{SCHEMA}.{name}" for name in AFTER)
    batch = Decoder(options, EventVersions(options)).decode(*changes_of(case, database), structures)
    assert batch is not None
    found = [event(row) for row in batch.to_pylist()]
    assert found == wanted(case)
    # Defaults and comments are in the schemas that are compared.
    text = json.dumps([one.value for one in found])
    assert [part in text for part in ('"default": "APo="', '"doc": "A value"')] == [comments_of(case)] * 2
