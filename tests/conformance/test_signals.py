"""Notifications beside those recorded from Debezium, byte by byte; and what its incremental rows look like."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from floodmark.notifications.records import (
    INITIAL,
    IncrementalSnapshotNotifications,
    InitialSnapshotNotifications,
    Notification,
)
from tests.conformance.golden import GOLDENS

PREFIX = "golden"
NOTIFICATIONS = "notifications"


@dataclass(frozen=True)
class Line:
    step: str
    topic: str
    key: str | None
    value: str | None

    @property
    def payload(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.value or "{}")
        found: dict[str, Any] = value.get("payload", value)
        return found


def load(name: str) -> list[Line]:
    with (GOLDENS / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [Line(**json.loads(line)) for line in lines]


def notifications(name: str) -> list[Line]:
    return [line for line in load(name) if line.topic == NOTIFICATIONS]


def made(theirs: dict[str, Any]) -> Notification:
    """Return Floodmark's notification of what one of Debezium's is about."""
    data, kind, timestamp = theirs["additional_data"], theirs["type"], theirs["timestamp"]
    tables = data.get("data_collections", "").split(",")
    if theirs["aggregate_type"] == INITIAL:
        return made_initial(data, kind, tables, timestamp)
    make = IncrementalSnapshotNotifications(PREFIX, lambda: timestamp)
    name = theirs["id"]
    if kind == "IN_PROGRESS":
        largest, last = ([data[field]] for field in ("maximum_key", "last_processed_key"))
        return make.in_progress(name, tables, data["current_collection_in_progress"], largest, last)
    if kind == "TABLE_SCAN_COMPLETED":
        rows = int(data["total_rows_scanned"])
        return make.table_completed(name, tables, data["scanned_collection"], rows, data["status"])
    if kind == "COMPLETED":
        return make.completed(name)
    methods = {"STARTED": make.started, "PAUSED": make.paused, "RESUMED": make.resumed, "ABORTED": make.aborted}
    return methods[kind](name, tables)


def made_initial(data: dict[str, str], kind: str, tables: list[str], timestamp: int) -> Notification:
    make = InitialSnapshotNotifications(PREFIX, lambda: timestamp)
    if kind == "IN_PROGRESS":
        return make.in_progress(data["current_collection_in_progress"], tables)
    if kind == "TABLE_SCAN_COMPLETED":
        return make.table_completed(data["scanned_collection"], tables, int(data["total_rows_scanned"]))
    return {"STARTED": make.started, "COMPLETED": make.completed, "SKIPPED": make.skipped}[kind]()


@pytest.mark.parametrize("name", ["signals", "signals_schemas", "signals_no_data"])
def test_notifications_equal_debeziums(name: str) -> None:
    with_schema = name == "signals_schemas"
    for line in notifications(name):
        theirs = line.payload
        ours = made(theirs)
        assert ours.additional_data == theirs["additional_data"]
        # The ids of initial snapshots are random. So is the order of some of Debezium's details: two of its keys
        # share a place in a hash map.
        random = {"id": theirs["id"]} if theirs["aggregate_type"] == INITIAL else {}
        ours = Notification.from_json({**ours.to_json(), **random, "additional_data": theirs["additional_data"]})
        assert ours.value_text(with_schema) == line.value
        assert ours.key_text(with_schema) == line.key


def test_every_kind_was_recorded() -> None:
    lines = notifications("signals") + notifications("signals_no_data")
    kinds = {(line.payload["aggregate_type"].split()[0], line.payload["type"]) for line in lines}
    initial = ("STARTED", "IN_PROGRESS", "TABLE_SCAN_COMPLETED", "COMPLETED", "SKIPPED")
    incremental = ("STARTED", "PAUSED", "RESUMED", "IN_PROGRESS", "TABLE_SCAN_COMPLETED", "ABORTED", "COMPLETED")
    assert kinds == {("Initial", kind) for kind in initial} | {("Incremental", kind) for kind in incremental}


def source_of(line: Line) -> dict[str, Any]:
    source: dict[str, Any] = line.payload["source"]
    return source


def test_rows_of_incremental_snapshots_have_a_position_only_in_the_sequence() -> None:
    lines = load("signals")
    rows = [line for line in lines if line.topic != NOTIFICATIONS and line.payload.get("op") == "r"]
    incremental = [source_of(line) for line in rows if source_of(line)["snapshot"] == "incremental"]
    assert len(incremental) > 20
    assert {(source["txId"], source["lsn"], source["xmin"]) for source in incremental} == {(None, None, None)}
    marks = {
        source_of(line)["sequence"]
        for line in lines
        if line.topic.endswith(".signals") and '"snapshot-window-close"' in (line.value or "")
    }
    two_tables = [line for line in rows if line.step == "two tables"]
    assert {source_of(line)["sequence"] for line in two_tables} <= marks
    assert all(source["ts_us"] <= line.payload["ts_us"] for line in two_tables for source in [source_of(line)])


def test_rows_of_blocking_snapshots_have_the_position_that_streaming_stopped_at() -> None:
    lines = [line for line in load("signals") if line.step == "blocking" and line.topic != NOTIFICATIONS]
    signal, *rows = [source_of(line) for line in lines]
    first = rows[0]
    same = ("ts_us", "sequence", "txId", "lsn")
    assert all(row[name] == first[name] for row in rows for name in same)
    assert first["txId"] == signal["txId"]
    assert first["lsn"] >= signal["lsn"]
    assert first["ts_us"] >= signal["ts_us"]
    markers = ["first", *["true"] * 6, "last_in_data_collection", "first_in_data_collection", "true", "last"]
    assert [row["snapshot"] for row in rows] == markers


def test_the_signal_table_is_streamed_and_not_in_snapshots() -> None:
    lines = [line for line in load("signals") if line.topic.endswith(".signals")]
    assert {line.payload["op"] for line in lines} == {"c"}
