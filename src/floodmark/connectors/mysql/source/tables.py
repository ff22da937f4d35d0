"""The captured tables of a MySQL or MariaDB server, as the planner asks about them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.chunk import DescribedTable
from floodmark.connectors.contract.table_key import TableKey
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.snapshot.key_ranges import key_of
from floodmark.connectors.mysql.snapshot.row_filters import row_filter, row_query
from floodmark.connectors.mysql.snapshot.tables import SnapshotTables
from floodmark.connectors.mysql.source.session import MysqlSession
from floodmark.connectors.mysql.structures.table import table_name
from floodmark.snapshots.modes import make_query

UNITS = 1


class MysqlTables:
    """A ``TableCatalog``.

    Args:
        options: the source's options.
        session: the connections.

    Attributes:
        snapshot: the tables of snapshots.
    """

    def __init__(self, options: BinlogOptions, session: MysqlSession) -> None:
        self._options = options
        self.snapshot = SnapshotTables(options, make_query(options), session.ordinary, session.server)

    def captured(self, sized: bool = False) -> list[CapturedTable]:
        """Return all captured tables."""
        del sized
        return self.snapshot.described()

    def to_snapshot(self) -> list[CapturedTable]:
        """Return the tables to snapshot."""
        return self.snapshot.to_snapshot()

    def names(self) -> list[str]:
        """Return the names of all captured tables."""
        return self.snapshot.names()

    def follow(self, known: Collection[str]) -> frozenset[str]:
        """Return no tables: the binlog holds all of them."""
        del known
        return frozenset()

    def fingerprints(self, oids: Sequence[int]) -> dict[int, str]:
        """Return the fingerprints of tables, which change when they are altered; those that are gone are left out."""
        return {number: found.file for number, found in self.snapshot.now(oids).items()}

    def describe(self, oids: Sequence[int]) -> dict[int, DescribedTable]:
        """Return tables as chunks name them; those that are gone are left out."""
        return self.snapshot.to_read(oids)

    def key_of(self, oid: int, surrogate: str | None) -> TableKey | None:
        """Return the key that a table is cut by; None if it has none."""
        found = self.snapshot.now([oid]).get(oid)
        key = None if found is None else key_of(found.table, surrogate)
        # A row with a null in one of several columns is in no range.
        return None if key is None or (key.nulls and len(key.columns) > 1) else key

    def chunk_units(self) -> int:
        """Return how many units make a chunk."""
        return UNITS

    def row_filter(self, oid: int, condition: str) -> str:
        """Return a signal's condition on the rows of a table as SQL that can do nothing else."""
        return row_filter(self.snapshot.one(oid), condition, self._options)

    def row_query(self, oid: int, statement: str) -> str:
        """Return a blocking signal's statement on a table as SQL that reads its rows and can do nothing else."""
        return row_query(self.snapshot.one(oid), statement, self._options)

    def sql_name(self, oid: int) -> str:
        """Return a table's name as SQL spells it.

        Raises:
            SourceStateError: the table is gone.
        """
        return table_name(self.snapshot.one(oid))
