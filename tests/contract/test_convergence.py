"""Generated workloads: applying the events gives the source's tables, and no row goes back to an older state.

Sessions change rows all the time while tables are read in each of the ways, and the query dies at generated steps.
``FLOODMARK_GENERATED_CASES`` sets how many cases there are: one of each way for 250.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.contract.collecting import each, of_snapshots
from tests.contract.conftest import Start
from tests.contract.crowd import Crowd
from tests.contract.internals import look_for_new_tables_at_once
from tests.contract.query import SIGNALS, SMALL, Query, reads_tables
from tests.contract.under_test import Capabilities, ConnectorUnderTest, SourceUnderTest

CASES = max(int(os.environ.get("FLOODMARK_GENERATED_CASES", "250")) // 250, 1)
CRASHES = ("planned, not kept", "planned", "read, not delivered", "delivered")
FIRST, LAST = 8, 60
"""The query dies in one of the first micro-batches; when the last one is planned, nothing changes any more."""
TABLES = ("t", "u")
Way = tuple[str, int]


def ways(able: Capabilities) -> list[Way]:
    """Return the ways in which a connector reads tables, each as often as there are cases."""
    found = ["initial", "blocking"]
    found += ["incremental"] * able.incremental
    found += ["watermarks"] * (able.watermarks and able.signal_table)
    found += [f"new tables {mode}" for mode in able.new_tables]
    return [(way, case) for way in found for case in range(CASES)]


@of_snapshots
@each("way", ways)
def test_tables_converge_and_no_row_goes_back(
    connector: ConnectorUnderTest,
    source: SourceUnderTest,
    start: Start,
    way: Way,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    kind, case = way
    chance = random.Random(f"{kind} {case}")
    new = kind.startswith("new tables ")
    if new:
        source.create("other")
        look_for_new_tables_at_once(monkeypatch)
    else:
        source.create(*TABLES)
    crowd = Crowd(source, TABLES, chance)
    request.addfinalizer(crowd.close)
    if not new:
        crowd.fill()
    query = begin(start, source, kind)
    if new:
        source.create(*TABLES)
        crowd.fill()
    elif kind != "initial":
        way_of_signal = "blocking" if kind == "blocking" else "incremental"
        query.signal("execute-snapshot", {"type": way_of_signal, "data-collections": [rf"{source.schema}\.(t|u)"]})
    crowd.start()
    live(query, crowd, chance)
    crowd.stop()
    query.drain()
    assert not query.snapshots
    crowd.check(query.events)


def begin(start: Start, source: SourceUnderTest, kind: str) -> Query:
    """Start a query that reads tables in some way; it has delivered everything unless that is an initial snapshot."""
    options = dict(SMALL)
    if kind == "initial":
        return start(*TABLES, **options)
    options["snapshot.mode"] = "no_data"
    tables: tuple[str, ...] = TABLES
    if kind == "watermarks":
        source.create_signal_table(SIGNALS)
        options["incremental.snapshot.read.points"] = "watermarks"
        options["signal.data.collection"] = f"{source.schema}.{SIGNALS}"
    elif kind.startswith("new tables "):
        options["snapshot.new.tables"] = kind.removeprefix("new tables ")
        tables = (*TABLES, "other")
    query = start(*tables, **options)
    query.step()
    return query


def live(query: Query, crowd: Crowd, chance: random.Random) -> None:
    """Run micro-batches while rows change and the query dies, until the tables have been read."""
    crashes = {chance.randrange(FIRST): chance.choice(CRASHES) for _ in range(2)}
    begun = query.snapshots
    for number in range(LAST):
        crowd.pass_by()
        end = query.plan()
        begun = begun or reads_tables(end)
        crowd.pass_by()
        crash = crashes.pop(number, None)
        empty = chance.random() < 0.5
        if crash == "planned, not kept":
            query.die(empty)
            continue
        if crash == "planned":
            query.die(empty)
        rows = query.run(end)
        if crash == "read, not delivered":
            query.die(empty)
            rows = query.run(end)
        query.take(end, rows)
        if crash == "delivered":
            query.die(empty)
        else:
            query.process.reader.commit(end)
        if begun and not query.snapshots and number >= FIRST:
            return
