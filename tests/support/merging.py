"""Applying typed rows to a target as a MERGE by key does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Target = dict[tuple[Any, ...], dict[str, Any]]
"""Rows by key."""


def merge(target: Target, rows: Iterable[dict[str, Any]]) -> Target:
    """Apply the rows of a micro-batch in the order of their positions; return the target.

    A value that a row lacks is that of the target's row, also where the row's key changed.
    """
    gone: Target = {}
    for row in sorted(rows, key=lambda one: str(one["position"])):
        if row["op"] == "t":
            target.clear()
        if row["op"] in ("t", "gap"):
            continue
        old, new = (key_of(row, row[side]) for side in ("before", "after"))
        if row["op"] == "d":
            assert old is not None
            if old in target:
                gone[old] = target.pop(old)
            continue
        assert new is not None
        moved = old if row["op"] == "c" else None
        known = target.get(new, {}) if moved is None else gone.get(moved, {})
        lacking = {name: known[name] for name in row["unavailable"] if name in known}
        target[new] = {**row["after"], **lacking}
    return target


def key_of(row: dict[str, Any], values: dict[str, Any] | None) -> tuple[Any, ...] | None:
    """Return the key of an old or new row; None if there is none."""
    return None if values is None else tuple(values[name] for name in row["key"])
