"""Which notifications come of which signals, beside those recorded from Debezium, on a real server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conformance.record_signals import NOTIFICATIONS, SETUP
from tests.conformance.test_signals import notifications
from tests.conftest import Source, drop, make_source
from tests.support.inprocess import InProcess

INCREMENTAL = {
    "two tables": ["public.a", "public\\.b"],
    "empty": ["public.nothing"],
    "keyless": ["public.nokey"],
    "unknown": ["public.unknown"],
    "mixed": ["public.nokey", "public.nothing", "public.b", "public.a"],
}
Told = tuple[str, str, str, str]


@pytest.fixture
def source(pg18: EmbeddedPostgres, tmp_path: Path) -> Iterator[Source]:
    made = make_source(pg18, tmp_path / "state", **{"signal.data.collection": "public.signals"})
    made.options |= {"notification.enabled.channels": "sink", "notification.sink.topic.name": NOTIFICATIONS}
    made.execute(*SETUP)
    yield made
    drop(made)


def send(source: Source, name: str, **data: Any) -> None:
    text = json.dumps({field.replace("_", "-"): value for field, value in data.items()})
    with psycopg.connect(source.conninfo, autocommit=True) as conn:
        conn.execute("INSERT INTO signals VALUES (%s, 'execute-snapshot', %s)", [name, text])


def sequence(told: Iterable[dict[str, Any]]) -> list[Told]:
    """Return what is told of each table in its order, and what is told of the whole; repeated progress once.

    The tables of a micro-batch are read together, so their order among each other says nothing.
    """
    found = [_of(one) for one in told]
    once = [one for one, _ in groupby(found)]
    return sorted(once, key=lambda one: (once[0] != one, one[1] == "COMPLETED", one[2]))


def _of(told: dict[str, Any]) -> Told:
    data = told["additional_data"]
    table = data.get("current_collection_in_progress") or data.get("scanned_collection") or ""
    return told["aggregate_type"], told["type"], table, data.get("status", "")


def of_debezium(step: str) -> list[Told]:
    return sequence(line.payload for line in notifications("signals") if line.step == step)


def of_floodmark(query: InProcess) -> list[Told]:
    return sequence(json.loads(row["value"]) for row in query.drain() if row["topic"] == NOTIFICATIONS)


def test_the_same_is_told_of_the_same_snapshots(source: Source) -> None:
    query = InProcess(source.options)
    found = {"initial": of_floodmark(query)}
    for step, tables in INCREMENTAL.items():
        send(source, step, data_collections=tables)
        found[step] = of_floodmark(query)
    condition = {"data-collection": "public.a", "filter": "id > 5"}
    send(source, "filtered", data_collections=["public.a"], additional_conditions=[condition])
    found["filtered"] = of_floodmark(query)
    send(source, "blocking", type="blocking", data_collections=["public.a", "public.b"])
    found["blocking"] = of_floodmark(query)
    query.stop()
    assert found == {step: of_debezium(step) for step in found}
    assert found["initial"][-2:] == [
        ("Initial Snapshot", "TABLE_SCAN_COMPLETED", "public.nothing", "SUCCEEDED"),
        ("Initial Snapshot", "COMPLETED", "", ""),
    ]


def test_an_initial_snapshot_names_the_same_tables(source: Source) -> None:
    """The signal table is named among the captured tables, and isn't read."""
    query = InProcess(source.options)
    mine = _named(json.loads(row["value"]) for row in query.drain() if row["topic"] == NOTIFICATIONS)
    query.stop()
    theirs = _named(line.payload for line in notifications("signals") if line.step == "initial")
    assert mine == theirs
    scanned = ("TABLE_SCAN_COMPLETED", "public.a")
    assert "public.signals" in mine[scanned][0]
    assert "public.signals" not in {table for _, table in mine}


def _named(told: Iterable[dict[str, Any]]) -> dict[tuple[str, str], tuple[frozenset[str], str | None]]:
    """Return the tables that each notification names, whose order is that of a hash map, and the number of rows."""
    found = {}
    for one in told:
        data = one["additional_data"]
        tables = frozenset(data.get("data_collections", "").split(","))
        found[one["type"], _of(one)[2]] = (tables, data.get("total_rows_scanned"))
    return found
