"""The key whose ranges a table is read in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from floodmark.json_data import Json, damaged_checkpoint, stored_object


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

    def to_json(self) -> dict[str, Json]:
        """Return the key as offsets store it."""
        kinds = {"kinds": [list(kind) for kind in self.kinds], "index": self.index} if self.kinds else {}
        return {"columns": list(self.columns), **kinds, "nulls": self.nulls}

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the key that ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        key = stored_object(data, "The key of a table")
        kinds = tuple(map(_kind, key.items("kinds"))) if "kinds" in key else ()
        return cls(key.texts("columns"), key.flag("nulls"), kinds, key.optional_text("index"))


def beyond(names: Sequence[str], values: Sequence[str], sign: str, last_sign: str) -> str:
    """Return the SQL condition of keys beyond a bound, for databases that don't compare rows, or not by an index.

    Args:
        names: the columns of the key, quoted for SQL.
        values: those of the bound, as SQL.
        sign: how a column compares if those before it are equal: ``<`` or ``>``.
        last_sign: the same for the last column, such as ``<=``.
    """
    parts = []
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        equal = [f"{other} = {same}" for other, same in zip(names[:place], values[:place], strict=True)]
        compared = f"{name} {last_sign if place == len(names) - 1 else sign} {value}"
        parts.append(" AND ".join([*equal, compared]))
    return parts[0] if len(parts) == 1 else " OR ".join(f"({part})" for part in parts)


def _kind(data: Json) -> tuple[str, ...]:
    match data:
        case [*words] if all(isinstance(word, str) for word in words):
            return tuple(map(str, words))
    raise damaged_checkpoint("the kind of a key's column is no list of texts")
