"""The files of what Debezium delivered."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.oracle.cases.case import Case

GOLDENS = Path(__file__).parents[1] / "goldens" / "oracle"
NOW = {"ts_ms", "ts_us", "ts_ns"}
"""Fields outside of the source block that say when Debezium made an event."""
CONTEXT = "__debezium.context."
"""What headers begin with that say which run of Debezium's made an event."""


@dataclass(frozen=True)
class Golden:
    """An event of Debezium's.

    Attributes:
        topic: its topic.
        key: parsed; None: there is none.
        value: parsed, without the times when it was made; None for a tombstone.
        headers: by name, without those of the run.
    """

    topic: str
    key: Any
    value: dict[str, Any] | None
    headers: Mapping[str, str]


def golden_path(case: Case) -> Path:
    """Return the file of a case."""
    return GOLDENS / case.adapter / f"{case.name}.jsonl{'.gz' if case.compact else ''}"


def written_golden(case: Case, lines: Sequence[str]) -> None:
    """Write the file of a case."""
    path = golden_path(case)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data, 9, mtime=0) if case.compact else data)


def goldens(case: Case) -> list[Golden]:
    """Return what Debezium delivered for a case."""
    found = []
    data = golden_path(case).read_bytes()
    for line in (gzip.decompress(data) if case.compact else data).decode().split("\n")[:-1]:
        one = json.loads(line)
        key, value = (None if one[name] is None else json.loads(one[name]) for name in ("key", "value"))
        headers = {name: text for name, text in one["headers"].items() if not name.startswith(CONTEXT)}
        found.append(Golden(one["topic"], key, None if value is None else timeless(value), headers))
    return found


def payload(one: Golden) -> dict[str, Any]:
    """Return an event's value without its schema; empty for a tombstone."""
    found: dict[str, Any] = {} if one.value is None else one.value.get("payload", one.value)
    return found


def timeless(value: dict[str, Any]) -> dict[str, Any]:
    payload = value.get("payload")
    if payload is not None and "schema" in value:
        return {**value, "payload": timeless(payload)}
    return {name: one for name, one in value.items() if name not in NOW}
