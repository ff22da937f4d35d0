"""Versions of rows follow their changes, one after the other."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.sinks.history import CURRENT, TIME, VALID_FROM, VALID_TO, VALIDITY, versions_of
from tests.support.merging import key_of
from tests.unit.test_last_changes import CHANGES, KINDS, Row, Source, schema

POSITION = "_position"
BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def timed(told: Iterable[Row]) -> list[Row]:
    """Return rows with times: two each have the same one, and now and then the clock goes back."""
    rows = []
    for row in told:
        number = int(row["position"])
        seconds = number // 2 - (5 if number % 11 == 10 else 0)
        rows.append({**row, "source_ts": BEGIN + dt.timedelta(seconds=seconds)})
    return rows


def timed_schema(key: tuple[str, ...]) -> pa.Schema:
    return schema(key).append(pa.field("source_ts", TIME))


def follow(history: list[Row], told: Iterable[Row]) -> None:
    """Apply rows one after the other."""
    for event in told:
        old, new = (key_of(event, event[side]) for side in ("before", "after"))
        current = {tuple(row[name] for name in event["key"]): row for row in history if row[CURRENT]}
        ended = current.values() if event["op"] == "t" else [current.get((old if event["op"] == "d" else new) or ())]
        known = current.get(new or ()) or {}
        if event["op"] == "c" and event["before"] is not None:
            # Its last version has just ended.
            known = max(
                (row for row in history if tuple(row[name] for name in event["key"]) == old),
                key=lambda row: str(row[POSITION]),
            )
        values = {**(event["after"] or {}), **{name: known.get(name) for name in event["unavailable"]}}
        if event["op"] == "r" and known and all(known[name] == value for name, value in values.items()):
            continue
        at = event["source_ts"]
        for row in filter(None, ended):
            row[VALID_TO], row[CURRENT] = (at := max(event["source_ts"], row[VALID_FROM])), False
        if event["op"] not in ("d", "t"):
            history.append({**values, VALID_FROM: at, VALID_TO: None, CURRENT: True, POSITION: event["position"]})


@pytest.mark.parametrize("key", list(KINDS))
@given(st.lists(st.lists(CHANGES, max_size=12), max_size=5), st.randoms(use_true_random=False))
def test_versions_follow(key: tuple[str, ...], batches: list[list[tuple[Any, ...]]], chance: Any) -> None:
    source = Source(key)
    history: list[Row] = []
    expected: list[Row] = []
    names = [*KINDS[key].names, *VALIDITY.names, POSITION]
    kinds = pa.schema([*KINDS[key], *VALIDITY, (POSITION, pa.string())])
    for batch in batches:
        first = len(source.told)
        for change in batch:
            source.change(*change)
        told = timed(source.told[first:])
        follow(expected, told)
        current = [row for row in history if row[CURRENT]]
        held = pa.Table.from_pylist(chance.sample(current, len(current)), kinds)
        events = pa.Table.from_pylist(chance.sample(told, len(told)), timed_schema(key))
        found = versions_of(events, held, key, POSITION)
        assert found.rows.column_names == names
        by_key = {tuple(row[name] for name in key): row for row in current}
        for number, until in zip(found.ended, found.until.to_pylist(), strict=True):
            row = by_key[tuple(held[name][int(number)].as_py() for name in key)]
            row[VALID_TO], row[CURRENT] = until, False
        history += found.rows.to_pylist()
        assert sorted(history, key=lambda row: row[POSITION]) == sorted(expected, key=lambda row: row[POSITION])


def test_older_rows_make_no_version() -> None:
    source = Source(("id",))
    for change in [("insert", 1, 0, 5, False), ("update", 1, 0, 6, False), ("read", 2, 0, 7, False)]:
        source.change(*change)
    told = timed(source.told)
    kinds = pa.schema([*KINDS["id",], *VALIDITY, (POSITION, pa.string())])
    none = kinds.empty_table()
    made = versions_of(pa.Table.from_pylist(told, timed_schema(("id",))), none, ("id",), POSITION).rows
    assert [(row["v"], row[CURRENT]) for row in made.to_pylist()] == [(5, False), (6, True), (7, True)]
    held = made.filter(made[CURRENT])
    for row in told:
        found = versions_of(pa.Table.from_pylist([row], timed_schema(("id",))), held, ("id",), POSITION)
        assert (found.rows.num_rows, len(found.ended)) == (0, 0)
