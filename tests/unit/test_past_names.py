"""What columns were called before they were renamed."""

from __future__ import annotations

import pytest

from floodmark.connectors.postgres.decode.relation_names import past_names

GONE = (None, 0, False)


@pytest.mark.parametrize(
    ("then", "now", "found"),
    [
        ("id a b", "id a b", {"id": "id", "a": "a", "b": "b"}),
        ("id a", "id a b", {"id": "id", "a": "a"}),
        ("id a", "id b", {"id": "id", "b": "a"}),
        ("id a", "key b c", {"key": "id", "b": "a"}),
        ("id a b", "id - b", {"id": "id", "b": "b"}),
        ("id a b", "id - c", {"id": "id", "c": "b"}),
        ("id a b", "id c - b d", {"id": "id", "b": "b"}),
        ("id a", "id - b", {"id": "id"}),
        ("id a z", "id b z - y", {"id": "id", "b": "a", "z": "z"}),
        ("id a", "id b:25", {"id": "id"}),
        ("a b", "x a", {"x": "a", "a": "b"}),
        ("a b", "b a", {"b": "a", "a": "b"}),
        ("a b", "b a -", {"b": "b", "a": "a"}),
        ("id a", "", {}),
    ],
)
def test_names_of_then(then: str, now: str, found: dict[str, str]) -> None:
    columns = [GONE if name == "-" else (name.split(":")[0], 25 if ":" in name else 23, False) for name in now.split()]
    assert past_names([(name, 23) for name in then.split()], columns) == found
