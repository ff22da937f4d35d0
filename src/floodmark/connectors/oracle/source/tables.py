"""The captured tables of an Oracle database, as the planner asks about them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.chunk import DescribedTable
from floodmark.connectors.contract.table_key import TableKey
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.snapshot.key_ranges import key_of
from floodmark.connectors.oracle.snapshot.row_filters import row_filter, row_query
from floodmark.connectors.oracle.snapshot.tables import SnapshotTables
from floodmark.connectors.oracle.source.session import OracleSession
from floodmark.snapshots.modes import make_query

UNITS = 1
"""A range of a table's rows is as large as a chunk."""


class OracleTables:
    """A ``TableCatalog``.

    Args:
        options: the source's options.
        session: the connections.

    Attributes:
        snapshot: the tables of snapshots.
    """

    def __init__(self, options: OracleOptions, session: OracleSession) -> None:
        self._options = options
        self.snapshot = SnapshotTables(options, make_query(options), session.ordinary)

    def captured(self, sized: bool = False) -> list[CapturedTable]:
        """Return all captured tables."""
        del sized
        return self.snapshot.described()

    def to_snapshot(self) -> list[CapturedTable]:
        """Return the tables to snapshot."""
        return self.snapshot.to_snapshot()

    def names(self) -> list[str]:
        """Return the names of all captured tables."""
        return [found.full_name for found in self.snapshot.now().values()]

    def follow(self, known: Collection[str]) -> frozenset[str]:
        """Return no tables: the log holds all of them."""
        del known
        return frozenset()

    def fingerprints(self, oids: Sequence[int]) -> dict[int, str]:
        """Return the fingerprints of tables, which change when they are altered; those that are gone are left out."""
        return {number: self.snapshot.file_of(found) for number, found in self.snapshot.now(oids).items()}

    def describe(self, oids: Sequence[int]) -> dict[int, DescribedTable]:
        """Return tables as chunks name them; those that are gone are left out."""
        return self.snapshot.to_read(oids)

    def key_of(self, oid: int, surrogate: str | None) -> TableKey | None:
        """Return the key that a table is split by; None if it has none."""
        found = self.snapshot.now([oid]).get(oid)
        return None if found is None else key_of(found.table, surrogate)

    def chunk_units(self) -> int:
        """Return how many units make a chunk."""
        return UNITS

    def row_filter(self, oid: int, condition: str) -> str:
        """Return a signal's condition on the rows of a table as SQL that can do nothing else."""
        return row_filter(self.snapshot.one(oid).table, condition, self._options)

    def row_query(self, oid: int, statement: str) -> str:
        """Return a blocking signal's statement on a table as SQL that reads its rows and can do nothing else."""
        return row_query(self.snapshot.one(oid).table, statement, self._options)
