"""Offsets that earlier versions stored are read and written as they were; damaged ones end in one error."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodmark.errors import CheckpointError
from floodmark.spark.stream.offsets import Offset

RECORDED = sorted((Path(__file__).parents[1] / "data" / "offsets").glob("*.json"))
OPAQUE = ("token", "bookmark")
"""Members that only the connector reads."""
SHOWN = ("progress",)
"""Members that are there for people, and are not read."""
ADDED_LATER = ("heartbeat", "xmin", "bookmark", "gaps", "switched_ms", "described", "owed", "place", "kinds", "index")
"""Members that checkpoints of some earlier version lack, so their absence is no damage."""


def recorded(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def paths(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield where each member of an offset is, as far as Floodmark's engines read it."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, value in items:
        if name in SHOWN or (path and path[-1] in OPAQUE):
            continue
        yield (*path, name)
        yield from paths(value, (*path, name))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_an_offset_is_stored_as_it_was(path: Path) -> None:
    data = recorded(path)
    assert json.loads(json.dumps(Offset.from_json(data).to_json())) == data


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_member_of_another_type_is_found(path: Path) -> None:
    data = recorded(path)
    places = list(paths(data))
    assert len(places) > 15
    for place in places:
        damaged = copy.deepcopy(data)
        holder = damaged
        for step in place[:-1]:
            holder = holder[step]  # type: ignore[index]
        holder[place[-1]] = "a text" if place[-1] in OPAQUE else {"of": ["another", "type"]}  # type: ignore[index]
        with pytest.raises(CheckpointError, match=r"The checkpoint (is damaged|has format version)"):
            Offset.from_json(damaged)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_missing_member_is_found(path: Path) -> None:
    data = recorded(path)
    for name in data:
        if name in ADDED_LATER:
            continue
        damaged = {other: value for other, value in data.items() if other != name}
        with pytest.raises(CheckpointError, match=r"The checkpoint (is damaged|has format version)"):
            Offset.from_json(damaged)
