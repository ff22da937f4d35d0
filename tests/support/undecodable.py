"""Tables whose rows can't be decoded, whatever their columns."""

from __future__ import annotations

from typing import Any

import pytest

from floodmark.changes.structure import Structure


def refused_tables(monkeypatch: pytest.MonkeyPatch, versions: type[Any]) -> set[str]:
    """Return a set of names: tables with one of them can't be decoded from then on.

    Args:
        versions: what makes the versions of tables, by being called with a structure.
    """
    names: set[str] = set()
    made = versions.__call__

    def make(self: Any, structure: Structure) -> Any:
        if structure.table in names:
            raise ValueError("nobody knows this type")
        return made(self, structure)

    monkeypatch.setattr(versions, "__call__", make)
    return names
