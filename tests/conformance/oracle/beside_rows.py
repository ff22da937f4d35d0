"""Events that come beside those of the log: how many there are, and when, isn't the same from run to run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tests.conformance.oracle.cases.services import BEATS, NOTES
from tests.conformance.oracle.golden import Golden, payload

INITIAL, WITHOUT_KEY = "Initial Snapshot", "CASES.BARE"
DATABASE = "ORCLPDB1."
"""What Debezium's names of tables begin with here."""
_OF_RUNS = ("current_collection_in_progress", "maximum_key", "last_processed_key")
"""What is told of the progress of a table, which is read in other pieces."""


def apart(events: Iterable[Golden]) -> tuple[list[Golden], list[str]]:
    """Return events of the log and of snapshots, and what all others say, each once."""
    rows, said = [], set()
    for one in events:
        if one.topic == NOTES:
            said |= {repr(found) for found in _notification(one)}
        elif "beat" in one.topic.lower():
            said.add(repr(_beat(one)))
        else:
            rows.append(one)
    return rows, sorted(said)


def applied(events: Iterable[Golden]) -> dict[tuple[str, str], Any]:
    """Return the rows that events make of tables that have a key, by topic and key."""
    found: dict[tuple[str, str], Any] = {}
    for one in events:
        if one.key is None or "op" not in payload(one):
            continue
        place = one.topic, json.dumps(one.key)
        if payload(one)["after"] is None:
            found.pop(place, None)
        else:
            found[place] = payload(one)["after"]
    return found


def _notification(one: Golden) -> Iterator[tuple[Any, ...]]:
    """Yield what a notification says, without times, random identifiers, and the order of sets."""
    told = payload(one)
    data = {
        name: sorted(text.replace(DATABASE, "").split(",")) for name, text in sorted(told["additional_data"].items())
    }
    if "data_collections" in data and told["aggregate_type"] != INITIAL:
        # Debezium still counts tables without a key, which aren't read, until it is their turn.
        data["data_collections"] = [one for one in data["data_collections"] if one != WITHOUT_KEY]
    if told["type"] == "IN_PROGRESS":
        data = {name: texts for name, texts in data.items() if name not in _OF_RUNS}
    identifier = "" if told["aggregate_type"] == INITIAL else told["id"]
    value = one.value or {}
    yield one.topic, value.get("schema"), told["aggregate_type"], told["type"], identifier, data


def _beat(one: Golden) -> tuple[Any, ...]:
    """Return what a heartbeat says, or a row that its action has written."""
    value = payload(one)
    if BEATS in one.topic:
        return one.topic, one.key, value.get("op"), value.get("after")
    return one.topic, one.key, (one.value or {}).get("schema"), sorted(value)
