"""The tables of a source, as the planner asks about them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.chunk import DescribedTable
from floodmark.connectors.contract.table_key import TableKey


class TableCatalog(Protocol):
    """Answers questions about the captured tables as they are now."""

    def captured(self, sized: bool = False) -> list[CapturedTable]:
        """Return all captured tables.

        Args:
            sized: whether ``units`` is needed, which may have to wait for a lock on a table.
        """

    def to_snapshot(self) -> list[CapturedTable]:
        """Return the tables that a snapshot of all tables reads, in the order in which they are read."""

    def names(self) -> list[str]:
        """Return the names that all captured tables have in events: ``published`` of each of ``captured``.

        It is called repeatedly while the log is streamed, so it must be cheap with thousands of tables.
        """

    def follow(self, known: Collection[str]) -> frozenset[str]:
        """Make the log include the changes of all tables that the filters match by now.

        Args:
            known: the published names of the tables that are captured already.

        Returns:
            The published names of new tables that can't be captured yet, since the log would not have all of their
            changes from now on. Call again later.
        """

    def fingerprints(self, oids: Sequence[int]) -> dict[int, str]:
        """Return the ``file`` of tables; those that are gone are left out."""

    def describe(self, oids: Sequence[int]) -> dict[int, DescribedTable]:
        """Return tables as chunks name them; those that are gone are left out."""

    def key_of(self, oid: int, surrogate: str | None) -> TableKey | None:
        """Return the key that a table is split by; None if it has none.

        Args:
            oid: the table.
            surrogate: a column to use instead.
        """

    def chunk_units(self) -> int:
        """Return how many units make a chunk."""

    def row_filter(self, oid: int, condition: str) -> str:
        """Translate a signal's condition on the rows of a table to SQL that can do nothing else.

        Args:
            oid: the table.
            condition: the signal's text.

        Raises:
            ConditionError: the text is not one condition, or has something that is not allowed.
            SourceStateError: the table is gone.
        """

    def row_query(self, oid: int, statement: str) -> str:
        """Translate a blocking signal's statement on a table to SQL that reads its rows and can do nothing else.

        Args:
            oid: the table.
            statement: ``SELECT * FROM <table> WHERE …``, or the condition alone.

        Raises:
            ConditionError: the text is neither, or has something that is not allowed.
            SourceStateError: the table is gone.
        """
