"""Floodmark's events beside those recorded from Debezium, byte by byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.embedded import VERSIONS, EmbeddedPostgres
from tests.conformance.cases import CASES, DDL, Case
from tests.conformance.differences import OTHER_KEYS, expected_difference
from tests.conformance.golden import Golden, load, masked, masked_key, settled
from tests.conftest import drop_slots, make_source
from tests.support.inprocess import InProcess


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_events_equal_debeziums(case: Case, version: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: EmbeddedPostgres = request.getfixturevalue(f"{'contrib' if case.extensions else 'pg'}{version}")
    source = make_source(server, tmp_path / "state", **{**case.options, "topic.prefix": "golden"})
    if case.schemas:
        source.options["schemas.enable"] = "true"
    source.execute(*case.setup)
    query = InProcess(source.options)
    delivered = query.drain()
    with psycopg.connect(source.conninfo, autocommit=True) as session:
        for statement in case.statements:
            if statement.startswith(DDL):
                delivered += query.drain()
            session.execute(statement.encode())
    delivered += query.drain()
    query.stop()
    drop_slots(source)

    mine = settled([event for event in map(_event, delivered) if event.topic not in OTHER_KEYS])
    theirs = [golden for golden in load(case.name) if golden.topic not in OTHER_KEYS]
    assert list(map(_place, mine)) == list(map(_place, theirs))
    wrong = []
    for got, want in zip(mine, theirs, strict=True):
        want_value = (masked(want.value) or "").replace(f'"db":"{case.name}"', f'"db":"{source.dbname}"')
        if want.value is not None and got.value is not None:
            wrong += expected_difference(case.name, masked(got.value) or "", want_value)
        else:
            assert (got.value is None) == (want.value is None)
        assert got.headers == want.headers
    assert not wrong, "\n".join(map(str, wrong[:20]))


def _event(row: dict[str, Any]) -> Golden:
    headers = {header["key"]: header["value"].decode() for header in row["headers"] or []}
    return Golden(row["topic"], row["key"], row["value"], headers)


def _place(event: Golden) -> tuple[str, str | None]:
    return event.topic, masked_key(event.topic, event.key)


def test_goldens_are_json() -> None:
    for case in CASES:
        for golden in load(case.name):
            assert golden.value is None or json.loads(golden.value)
