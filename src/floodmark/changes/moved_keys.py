"""Follows rows whose key changed while the log lacks some of their values, from key to key.

Such a value is the one that the row had under its old key, in the micro-batch or in the target. These rows are rare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

Values = dict[str, object]
"""A row's values by the columns' names, as Arrow gives them to Python; they are only passed on."""
Key = tuple[object, ...]


class Event(TypedDict):
    """An event with its key as ``_at``."""

    op: str
    position: str
    unavailable: list[str]
    before: Values | None
    after: Values
    _at: Values


@dataclass
class State:
    """A row: its known values, and the key under which the target holds the unknown ones."""

    values: Values
    unknown: set[str]
    held: Key | None


@dataclass(frozen=True)
class LastState:
    """How a key ends.

    Attributes:
        position: that of its last event.
        state: None if there is no row any more.
    """

    key: Key
    position: str
    state: State | None


def last_states(key: Sequence[str], columns: Sequence[str], events: Sequence[Event]) -> list[LastState]:
    """Return the last states of all keys that occur in events."""
    rows: dict[Key, State | None] = {}
    gone: dict[Key, State] = {}
    ends: dict[Key, str] = {}
    for event in sorted(events, key=lambda one: one["position"]):
        at = tuple(event["_at"][name] for name in key)
        ends[at] = event["position"]
        if event["op"] == "d":
            gone[at] = rows.get(at) or State({}, set(columns), at)
            rows[at] = None
            continue
        source = _source(event, rows, gone, key, columns)
        lacking = set(event["unavailable"])
        values = {name: source.values.get(name) if name in lacking else event["after"][name] for name in columns}
        rows[at] = State(values, source.unknown & lacking, source.held)
    return [LastState(at, ends[at], state) for at, state in rows.items()]


def _source(
    event: Event,
    rows: Mapping[Key, State | None],
    gone: Mapping[Key, State],
    key: Sequence[str],
    columns: Sequence[str],
) -> State:
    """Return the state of an event's row before the event."""
    if event["op"] != "c":
        at = tuple(event["_at"][name] for name in key)
        return rows.get(at) or State({}, set(columns), at)
    if event["before"] is None:
        return State({}, set(columns), None)
    old = tuple(event["before"][name] for name in key)
    # Where deletes only mark rows, the old one is still there.
    return gone.get(old) or rows.get(old) or State({}, set(columns), old)
