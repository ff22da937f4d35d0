"""The key whose ranges a table is read in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class TableKey:
    """The columns that a table is cut by.

    Attributes:
        columns: their names, in the order in which they are compared.
        nulls: whether there may be rows without key: NULL in a column.
        kinds: how the source writes and compares each column's values: a word and its parameters; empty if it doesn't
            have to know.
        index: the index that has the columns, if the source must be told to use it.
    """

    columns: tuple[str, ...]
    nulls: bool
    kinds: tuple[tuple[str, ...], ...] = ()
    index: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the key as offsets store it."""
        kinds = {"kinds": [list(kind) for kind in self.kinds], "index": self.index} if self.kinds else {}
        return {"columns": list(self.columns), **kinds, "nulls": self.nulls}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the key that ``to_json`` described."""
        kinds = tuple(tuple(kind) for kind in data.get("kinds", ()))
        return cls(tuple(data["columns"]), bool(data["nulls"]), kinds, data.get("index"))
