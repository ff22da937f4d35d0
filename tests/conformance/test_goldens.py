"""Floodmark's events beside those recorded from Debezium, byte by byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.demo.embedded import VERSIONS, EmbeddedPostgres
from floodmark.errors import SourceStateError
from tests.conformance.cases import (
    CASES,
    DDL,
    Case,
    altered,
    cases_of,
    changed,
    cloud_events,
    described,
    fields,
    outbox,
    partitions,
    routing,
    scripting,
    tables,
    zones,
)
from tests.conformance.count import counts
from tests.conformance.differences import LEFT_OUT, OTHER_KEYS, expected_difference, read_twice
from tests.conformance.golden import Golden, load, masked, masked_key, settled
from tests.conftest import Source, drop, make_source
from tests.support.inprocess import InProcess

COMPARED = [case for case in CASES if case.name not in tables.REFUSED]
REFUSED = [case for case in CASES if case.name in tables.REFUSED]


ALWAYS = {
    "route_regex",
    "route_logical_every_schemas",
    "changed_dropped_schemas",
    "fields_inserted_schemas",
    "fields_masked_by",
    "fields_extracted_envelopes_schemas",
    "fields_cast",
    "cloud_events_default",
    "cloud_events_bare",
    "outbox_expanded_schemas",
    "zone_daylight",
    "partition_java",
    "script_filter",
}
"""The cases of transforms and converters that ``make test`` runs; it is ``make chaos`` that runs the others."""
THEMES = (routing, changed, fields, cloud_events, outbox, zones, described, partitions, scripting)
SELDOM = [case for theme in THEMES for case in theme.CASES if case.name not in ALWAYS]


BOTH = {"extensions", "scalars", "arrays", "defaults", "workload", "transactions", "schema_change", "altered_types"}
"""The cases that ``make test`` compares on both servers; others on one of them, the next on the other."""


def is_long(case: Case, place: int, version: int) -> bool:
    """Return whether only ``make chaos`` compares a case on a server."""
    return case in SELDOM or (case.name not in BOTH and version != [*VERSIONS][place % len(VERSIONS)])


@pytest.mark.parametrize(
    ("case", "version"),
    [
        pytest.param(
            case, version, marks=pytest.mark.long if is_long(case, place, version) else (), id=f"{case.name}-{version}"
        )
        for place, case in enumerate(COMPARED)
        for version in VERSIONS
    ],
)
def test_events_equal_debeziums(case: Case, version: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: EmbeddedPostgres = request.getfixturevalue(f"{'contrib' if case.extensions else 'pg'}{version}")
    source = _source(case, server, tmp_path)
    source.execute(*case.setup)
    query = InProcess(source.options)
    events = query.drain()
    with psycopg.connect(source.conninfo, autocommit=True) as session:
        for statement in case.statements:
            # Debezium was recorded so, too: keys and types come from the catalog as it is.
            if statement.startswith(DDL):
                events += query.drain()
            session.execute(statement.encode())
    events += query.drain()
    query.stop()
    drop(source)
    _compare(case, source, events)


@pytest.mark.parametrize("name", altered.LATE)
def test_changes_that_wait_in_the_log_are_those_of_their_time(
    name: str, server: EmbeddedPostgres, tmp_path: Path
) -> None:
    case = next(case for case in CASES if case.name == name)
    source = _source(case, server, tmp_path)
    source.execute(*case.setup)
    query = InProcess(source.options)
    events = query.drain()
    query.stop()
    source.execute(*case.statements)
    later = InProcess(source.options, query.offset)
    events += later.drain()
    later.stop()
    drop(source)
    _compare(case, source, events)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_filters_that_match_only_names_without_changes_are_refused(
    case: Case, server: EmbeddedPostgres, tmp_path: Path
) -> None:
    """Debezium reads the rows once and is silent from then on."""
    source = _source(case, server, tmp_path)
    source.execute(*case.setup)
    query = InProcess(source.options)
    named = tables.REFUSED[case.name]
    with pytest.raises(SourceStateError, match=rf"No changes would be captured. Changes of public\.{named} come as"):
        query.drain()
    query.stop()
    assert {json.loads(event.value or "{}").get("op") for event in load(case.name)} <= {"r"}


def _source(case: Case, server: EmbeddedPostgres, tmp_path: Path) -> Source:
    source = make_source(server, tmp_path / "state", **{**case.options, "topic.prefix": "golden"})
    if case.schemas:
        source.options["schemas.enable"] = "true"
    return source


def _compare(case: Case, source: Source, events: list[dict[str, Any]]) -> None:
    mine = settled([event for event in map(_event, events) if event.topic not in OTHER_KEYS])
    theirs = [golden for golden in load(case.name) if golden.topic not in OTHER_KEYS | LEFT_OUT]
    theirs = [golden for golden in theirs if not read_twice(case.name, golden)]
    assert list(map(_place, mine)) == list(map(_place, theirs))
    wrong = []
    for got, want in zip(mine, theirs, strict=True):
        want_value = (masked(want.value) or "").replace(f'"db":"{case.name}"', f'"db":"{source.dbname}"')
        if want.value is not None and got.value is not None:
            wrong += expected_difference(case.name, masked(got.value) or "", want_value)
        else:
            assert (got.value is None) == (want.value is None)
        assert (got.headers, got.partition) == (want.headers, want.partition)
    assert not wrong, "\n".join(map(str, wrong[:20]))


def _event(row: dict[str, Any]) -> Golden:
    headers = {header["key"]: header["value"].decode() for header in row["headers"] or []}
    return Golden(row["topic"], row["key"], row["value"], headers, row.get("partition"))


def _place(event: Golden) -> tuple[str, str | None]:
    return event.topic, masked_key(event.topic, event.key)


def test_enough_is_compared() -> None:
    events, _, options = counts()
    assert events * len(VERSIONS) >= 3000
    assert options >= 60


@pytest.mark.parametrize("connector", ["postgres", "mysql", "mariadb"])
def test_goldens_are_json(connector: str) -> None:
    for case in cases_of(connector):
        for golden in load(case.name, connector):
            # ExtractNewRecordState writes a delete as the text null.
            is_null = golden.value == "null" and "transforms" in case.options
            assert golden.value is None or is_null or json.loads(golden.value)
