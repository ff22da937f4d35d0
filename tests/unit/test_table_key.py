"""The key that a table is cut by, as offsets store it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from floodmark.connectors.contract.table_key import TableKey
from floodmark.snapshots.incremental.state import TableRun

STORED: list[dict[str, Any]] = [
    {"columns": ["id"], "nulls": False},
    {"columns": ["b", "a"], "nulls": True},
    {
        "columns": ["id", "name"],
        "kinds": [["number"], ["text", "utf8mb4", "utf8mb4_bin"]],
        "index": "PRIMARY",
        "nulls": False,
    },
    {"columns": ["id"], "kinds": [["enum", "x", "y"]], "index": None, "nulls": True},
]


@pytest.mark.parametrize("data", STORED)
def test_keys_in_offsets_of_earlier_versions(data: dict[str, Any]) -> None:
    """They are read, and written as they were, so that an offset doesn't look like a new one."""
    key = TableKey.from_json(json.loads(json.dumps(data)))
    assert list(key.columns) == data["columns"]
    assert json.dumps(key.to_json()) == json.dumps(data)


@pytest.mark.parametrize("data", [{}, *STORED])
def test_a_table_that_is_described_later_has_no_key(data: dict[str, Any]) -> None:
    run = TableRun("public.t", 1, "", TableKey.from_json(data) if data else None, None, "", 0)
    stored = json.loads(json.dumps(run.to_json()))
    assert stored["key"] == data
    assert TableRun.from_json(stored) == run
