"""Applying events and comparing, as the demo does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from floodmark.demo.comparison import Column, Event, Rows, TableShape, apply_events, compare, decode, decoded_rows
from floodmark.demo.event_tail import EventTail

SHAPE = TableShape((Column("id", "bigint", 0), Column("v", "text", 0)), ("id",))


def event(position: int, key: int, after: Mapping[str, Any] | None, tombstone: bool = False) -> Event:
    value = None if tombstone else json.dumps({"before": None, "after": after})
    return Event("t", json.dumps({"id": key}), value, f"{position:04}")


def test_events_are_applied_in_the_order_of_their_positions() -> None:
    events = [
        event(3, 1, {"id": 1, "v": "new"}),
        event(1, 1, {"id": 1, "v": "old"}),
        event(1, 2, {"id": 2, "v": "x"}),
        event(4, 2, None),
        event(5, 2, None, tombstone=True),
    ]
    assert apply_events(events) == {"t": {'{"id": 1}': {"id": 1, "v": "new"}}}


def test_unavailable_values_are_what_they_were() -> None:
    events = [event(1, 1, {"id": 1, "v": "large"}), event(2, 1, {"id": 1, "v": "__debezium_unavailable_value"})]
    assert apply_events(events)["t"]['{"id": 1}'] == {"id": 1, "v": "large"}


def test_every_kind_of_difference_is_found() -> None:
    source: Rows = {(1,): {"id": 1, "v": "a"}, (2,): {"id": 2, "v": "b"}, (3,): {"id": 3, "v": "c"}}
    captured = decoded_rows([{"id": 1, "v": "a"}, {"id": 2, "v": "B"}, {"id": 4, "v": "d"}], SHAPE)
    result = compare("t", source, captured)
    assert (result.missing, result.unexpected, result.different) == (1, 1, 1)
    assert not result.equal
    assert result.example == "(2,): v is 'b', captured 'B'"
    assert compare("t", source, dict(source)).equal


def test_a_value_of_another_type_differs() -> None:
    assert compare("t", {(1,): {"id": 1, "v": 1}}, {(1,): {"id": 1, "v": True}}).different == 1


@pytest.mark.parametrize(
    ("type_", "scale", "value", "expected"),
    [
        ("numeric", 2, "AMg=", Decimal("2.00")),
        ("numeric", 2, "/w==", Decimal("-0.01")),
        ("date", 0, -1, date(1969, 12, 31)),
        ("timestamp without time zone", 0, 1_000_001, datetime(1970, 1, 1, 0, 0, 1, 1)),
        ("timestamp with time zone", 0, "2026-01-02T03:04:05.678901Z", datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)),
        ("uuid", 0, "12345678-1234-5678-1234-567812345678", UUID("12345678-1234-5678-1234-567812345678")),
        ("jsonb", 0, '{"a": [1]}', {"a": [1]}),
        ("double precision", 0, 5, 5.0),
        ("date", 0, "not a number of days", "not a number of days"),
        ("text", 0, None, None),
    ],
)
def test_values_are_decoded_as_the_driver_returns_them(type_: str, scale: int, value: Any, expected: Any) -> None:
    assert decode(value, Column("c", type_, scale)) == expected


def test_only_finished_files_are_read_and_each_once(tmp_path: Path) -> None:
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    tail = EventTail(tmp_path)
    (tmp_path / "part-0.json").write_text("a\u2028b\nc\n", encoding="utf-8")
    assert list(tail.new()) == []
    entry = json.dumps({"path": f"file://{tmp_path}/part-0.json"})
    (log / "0").write_text(f"v1\n{entry}", encoding="utf-8")
    assert list(tail.new()) == ["a\u2028b", "c"]
    (tmp_path / "part-1.json").write_text("d\n", encoding="utf-8")
    second = json.dumps({"path": f"file://{tmp_path}/part-1.json"})
    (log / "1.compact").write_text(f"v1\n{entry}\n{second}", encoding="utf-8")
    assert list(tail.new()) == ["d"]
    assert list(tail.new()) == []
