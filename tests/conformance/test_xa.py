"""XA transactions: what Debezium delivers of them and when, by its recorded events, and what Floodmark does instead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.differences import compare
from tests.conformance.golden import PREFIX, masked, path_of
from tests.conformance.record_xa import BEFORE, NAME, OPTIONS, SETUP, STEPS
from tests.support.inprocess import InProcess
from tests.support.mysql import Flavor, MysqlServer

FLAVORS: tuple[Flavor, ...] = ("mysql", "mariadb")
Event = tuple[str, dict[str, Any]]
"""The step after which it came, and its value without what is different in each run."""


def recorded(flavor: Flavor) -> list[Event]:
    with path_of(NAME, flavor).open(encoding="utf-8") as lines:
        return [(one["step"], json.loads(masked(one["value"]) or "")) for one in map(json.loads, lines)]


def delivered(flavor: Flavor, state: Path) -> list[Event]:
    found: list[Event] = []
    with MysqlServer(flavor) as server:
        server.execute(*SETUP)
        BEFORE(server)
        query = InProcess({**server.options(), "topic.prefix": PREFIX, "state.dir": str(state), **OPTIONS})
        try:
            for name, step in {"initial": lambda _: None, **STEPS}.items():
                step(server)
                found += [(name, json.loads(masked(row["value"]) or "")) for row in query.drain()]
        finally:
            query.stop()
    return found


def rows(events: Sequence[Event]) -> list[tuple[str, str, int]]:
    """Return steps, operations and keys of rows."""
    return [(step, value["op"], value["after"]["id"]) for step, value in events if "op" in value]


def transactions(events: Sequence[Event]) -> list[tuple[str, str, int | None]]:
    """Return steps, status and counts of the transaction topic."""
    return [(step, value["status"], value["event_count"]) for step, value in events if "status" in value]


@pytest.mark.parametrize("flavor", FLAVORS)
def test_what_debezium_delivers(flavor: Flavor) -> None:
    """Rows come when they are prepared, stay if they are rolled back, and are lost if a snapshot lies in between."""
    events = recorded(flavor)
    assert rows(events) == [
        ("initial", "r", 0),
        ("prepared", "c", 2),
        ("prepared", "u", 2),
        ("another", "c", 3),
        ("prepared again", "c", 4),
        ("one phase", "c", 5),
        ("last", "c", 6),
    ]
    outside = {
        value["after"]["id"] for _, value in events if value.get("op") in ("c", "u") and not value["transaction"]
    }
    told = transactions(events)
    ended = [step for step, status, _ in told if status == "END"]
    if flavor == "mysql":
        assert outside == {2, 4, 5}
        assert ended == ["another", "last"]
        assert len(told) == 2 * len(ended)
    else:
        assert not outside
        assert ended == ["another", "one phase", "last"]
        assert {step for step, status, _ in told if status == "BEGIN"} == STEPS.keys()


@pytest.mark.parametrize("flavor", FLAVORS)
def test_what_floodmark_delivers(flavor: Flavor, tmp_path: Path) -> None:
    """Rows come when they are committed, like those of any transaction; their values are Debezium's."""
    events = delivered(flavor, tmp_path)
    assert rows(events) == [
        ("initial", "r", 0),
        ("another", "c", 3),
        ("committed", "c", 2),
        ("committed", "u", 2),
        ("committed after the snapshot", "c", 1),
        ("one phase", "c", 5),
        ("last", "c", 6),
    ]
    counts = {"another": 1, "committed": 2, "committed after the snapshot": 1, "one phase": 1, "last": 1}
    assert transactions(events) == [
        (step, status, count if status == "END" else None)
        for step, count in counts.items()
        for status in ("BEGIN", "END")
    ]
    theirs = {
        (op, key): value for (_, op, key), value in zip(rows(recorded(flavor)), values(recorded(flavor)), strict=True)
    }
    for (_, op, key), value in zip(rows(events), values(events), strict=True):
        if op == "r" or (op, key) not in theirs:
            continue
        differing = {path for path, _, _ in compare("", value, theirs[op, key])}
        # Debezium leaves the block and the session out of MySQL's XA transactions.
        assert differing <= ({".transaction", ".source.thread"} if flavor == "mysql" and key in (2, 5) else set())


def values(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [value for _, value in events if "op" in value]
