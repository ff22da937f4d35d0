"""Applying events, and the two properties that must hold: convergence and no time travel."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Rows = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Event:
    """An event as a sink got it.

    Attributes:
        batch: micro-batch that delivered it.
        value: the envelope, None for a tombstone.
    """

    batch: int
    table: str
    key: str | None
    value: dict[str, Any] | None
    position: str
    op: str


def event(batch: int, row: Any) -> Event:
    """Return the event of a row of the sink's output."""
    value = None if row["value"] is None else json.loads(row["value"])
    return Event(
        batch, f"{row['schema'] or row['database']}.{row['table']}", row["key"], value, row["position"], row["op"]
    )


def apply(events: Iterable[Event], before: dict[str, Rows] | None = None) -> dict[str, Rows]:
    """Apply events in the order of delivery: by micro-batch, and by position within one.

    Args:
        events: the events.
        before: what earlier ones made, which is changed; None: nothing.

    Returns:
        Table, then key, to row.
    """
    tables: dict[str, Rows] = {} if before is None else before
    for one in delivered(events):
        rows = tables.setdefault(one.table, {})
        if one.key is None or one.value is None:
            continue
        if one.op == "d":
            rows.pop(one.key, None)
        else:
            after = one.value["after"]
            known = rows.get(one.key, {})
            rows[one.key] = {
                name: known.get(name) if value == "__debezium_unavailable_value" else value
                for name, value in after.items()
            }
    return tables


def delivered(events: Iterable[Event]) -> list[Event]:
    """Return events in the order of delivery."""
    return sorted(events, key=lambda one: (one.batch, one.position))


def duplicates(events: Iterable[Event], reads: int = 1) -> list[Event]:
    """Return events that were delivered before, by table, key and position.

    Args:
        events: all events.
        reads: how often a table was read. Each time it delivers its rows, and while nothing changes at equal positions.
    """
    seen: dict[tuple[str, str | None, str, str], list[Event]] = {}
    result = []
    for one in events:
        if one.key is None:
            continue
        before = seen.setdefault((one.table, one.key, one.position, one.op), [])
        if len(before) >= (reads if one.op == "r" else 1) or any(_after(one) != _after(other) for other in before):
            result.append(one)
        before.append(one)
    return result


def _after(one: Event) -> object:
    return None if one.value is None else one.value["after"]


def time_travel(events: Iterable[Event], version: str = "v") -> list[tuple[Event, int]]:
    """Return events whose row is older than one of the same key delivered before.

    Args:
        events: all events.
        version: name of a column that grows with every change of a key.
    """
    newest: dict[tuple[str, str], int] = {}
    result = []
    for one in delivered(events):
        if one.key is None or one.value is None or one.value["after"] is None:
            continue
        number = int(one.value["after"][version])
        key = (one.table, one.key)
        if number < newest.get(key, -1):
            result.append((one, newest[key]))
        newest[key] = max(number, newest.get(key, -1))
    return result
