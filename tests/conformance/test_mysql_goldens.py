"""Floodmark's events of MySQL and MariaDB beside those recorded from Debezium, byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.cases import cases_of
from tests.conformance.cases.case import Case
from tests.conformance.count import counts
from tests.conformance.golden import PREFIX, Golden, load, masked, settled
from tests.conformance.mysql_differences import SORTED, expected_difference, in_order, places, told
from tests.support.inprocess import InProcess
from tests.support.mysql import Flavor, MysqlServer

FLAVORS: tuple[Flavor, ...] = ("mysql", "mariadb")
SELDOM = {
    "route_regex",
    "cloud_events_bare",
    "outbox",
    "zone",
    "zone_connect",
    "described",
    "vectors_json",
    "partition",
    "script",
}
"""Cases that only ``make chaos`` runs."""
CASES = [case for flavor in FLAVORS for case in cases_of(flavor)]

Servers = Callable[[Case], MysqlServer]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """Return the server that a case wants; they run until the module's tests are through."""
    running: dict[tuple[tuple[str, str], ...], MysqlServer] = {}
    with ExitStack() as stack:

        def server(case: Case) -> MysqlServer:
            flavor: Flavor = "mariadb" if case.connector == "mariadb" else "mysql"
            wanted = (("flavor", flavor), *sorted(case.settings.items()))
            if wanted not in running:
                running[wanted] = stack.enter_context(MysqlServer(flavor, **case.settings))
            return running[wanted]

        yield server


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.long if case.name in SELDOM else ()) for case in CASES],
    ids=lambda case: f"{case.connector}-{case.name}",
)
def test_events_equal_debeziums(case: Case, servers: Servers, tmp_path: Path) -> None:
    server = servers(case)
    options = {
        "database.include.list": case.name,
        **server.options(),
        "topic.prefix": PREFIX,
        "state.dir": str(tmp_path / "state"),
        **case.options,
    }
    if case.schemas:
        options["schemas.enable"] = "true"
    with server.connect() as session, session.cursor() as cursor:
        for statement in (f"CREATE DATABASE `{case.name}`", f"USE `{case.name}`", *case.setup):
            cursor.execute(statement)
        query = InProcess(options)
        try:
            events = query.drain()
            for statement in case.statements:
                cursor.execute(statement)
            session.commit()
            events += query.drain()
        finally:
            query.stop()
            cursor.execute(f"DROP DATABASE IF EXISTS `{case.name}`")
    _compare(case, events)


def _compare(case: Case, events: list[dict[str, Any]]) -> None:
    mine = in_order(settled([_event(row) for row in events]))
    theirs = in_order(settled(told(case, load(case.name, case.connector))))
    assert places(case, mine) == places(case, theirs)
    if case.name in SORTED:
        mine, theirs = (sorted(given, key=lambda event: (event.topic, event.key or "")) for given in (mine, theirs))
    wrong = []
    for got, want in zip(mine, theirs, strict=True):
        if want.value is not None and got.value is not None:
            wrong += expected_difference(case, masked(got.value) or "", masked(want.value) or "")
        else:
            assert (got.value is None) == (want.value is None)
        assert (got.headers, got.partition) == (want.headers, want.partition)
    assert not wrong, "\n".join(wrong[:20])


def _event(row: dict[str, Any]) -> Golden:
    headers = {header["key"]: header["value"].decode() for header in row["headers"] or []}
    return Golden(row["topic"], row["key"], row["value"], headers, row.get("partition"))


@pytest.mark.parametrize("flavor", FLAVORS)
def test_enough_is_compared(flavor: Flavor) -> None:
    events, _, options = counts(flavor)
    assert events >= 2000
    assert options >= 40
