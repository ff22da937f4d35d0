"""Decides which parts of a micro-batch can be written together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from floodmark.errors import TargetUnfitError
from floodmark.sinks.delta.parts import OPERATION, Part


@dataclass(frozen=True)
class Agreement:
    """The parts that go with the newest one, and those that don't.

    Attributes:
        parts: at least one; the newest is the first.
        columns: their columns, with types that hold the values of all.
        others: those with another key, or with types that have none in common with the newest's.
    """

    parts: Sequence[Part]
    columns: pa.Schema
    others: Sequence[Part]

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Agreement:
        """Choose among parts.

        Args:
            parts: of one table; at least one.
        """
        newest, *older = sorted(parts, key=lambda part: part.last, reverse=True)
        chosen, columns, others = [newest], newest.columns, []
        for part in older:
            try:
                both = pa.unify_schemas([columns, part.columns], promote_options="permissive")
            except pa.ArrowException:
                both = None
            if both is None or part.key != newest.key:
                others.append(part)
            else:
                chosen.append(part)
                columns = both
        return cls(chosen, columns if newest.key else columns.append(pa.field(OPERATION, pa.string())), others)

    @property
    def key(self) -> Sequence[str]:
        """The columns of the key; empty without one."""
        return self.parts[0].key

    def torn(self, table: str) -> TargetUnfitError:
        """Return the error for a table that exists while there are others.

        Args:
            table: the table's name.
        """
        what = "key" if self.others[0].key != self.key else "types"
        return TargetUnfitError(
            f"The {what} of the table '{table}' changed within a micro-batch: its rows in the target can't be told "
            "apart any more, or have no type in common.",
            "Remove the target table, and start the query with the mirror's option missing.tables=read.",
        )
