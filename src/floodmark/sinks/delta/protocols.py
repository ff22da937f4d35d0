"""What writes a target table, and what is told about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from floodmark.sinks.delta.parts import Part
from floodmark.sinks.delta.stores import TableFolder


class TableWriter(Protocol):
    """Writes micro-batches of one table, each exactly once."""

    def write(self, batch: int, parts: Sequence[Part]) -> bool:
        """Commit a micro-batch; return whether that changed the table, which it doesn't if it had been applied before.

        Args:
            batch: its number.
            parts: what its tasks have made of the table's rows; at least one.

        Raises:
            TargetChangedError: other writers were faster each time, or have made the table another one.
            TargetUnfitError: the table can't take the rows.
            TargetError: the table can't be written.
        """


class TableListener(Protocol):
    """Is told about tables before something happens to them."""

    def is_missing(self, table: str, keyed: bool, torn: bool = False) -> None:
        """Called before a table is made.

        Args:
            keyed: whether its rows have a key.
            torn: whether earlier rows of the micro-batch are left out, since they don't go with later ones.
        """

    def exists(self, table: str) -> None:
        """Called when a table is written for the first time in this process, as soon as it exists."""

    def gets_columns(self, table: str, columns: Sequence[str]) -> None:
        """Called before a table that has rows gets columns that the source's rows have."""


MakeWriter = Callable[[str, TableFolder, str, TableListener, int | None], TableWriter]
"""Makes the writer of a table.

Its arguments are the table's name, its folder, the name of the query in the table's log, what is told about it, and
the last micro-batch that the table must have, if it is known.
"""
