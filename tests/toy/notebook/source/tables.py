"""The captured tables of a notebook, as the planner asks about them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from floodmark.connectors.contract.captured_table import UNCOUNTED, CapturedTable
from floodmark.connectors.contract.chunk import DescribedTable
from floodmark.connectors.contract.table_key import TableKey
from floodmark.errors import SourceStateError
from floodmark.snapshots.table_order import in_order
from tests.toy.notebook.database.notebook import SCHEMA, Table, quote
from tests.toy.notebook.options import NotebookOptions
from tests.toy.notebook.snapshot.conditions import row_filter, row_query
from tests.toy.notebook.snapshot.key_ranges import key_of
from tests.toy.notebook.source.read_points import NotebookSnapshots, NotebookView

WHOLE = 1


class NotebookTables:
    """A ``TableCatalog``."""

    def __init__(self, options: NotebookOptions, snapshots: NotebookSnapshots) -> None:
        self._options = options
        self._snapshots = snapshots

    def _now(self) -> dict[int, Table]:
        """Return the captured tables by their numbers."""
        with self._snapshots.open() as view:
            return {table.number: table for table in self._captured(view)}

    def _captured(self, view: NotebookView) -> list[Table]:
        return [table for table in view.tables.values() if self._options.captures(SCHEMA, table.name)]

    def _one(self, oid: int) -> Table:
        table = self._now().get(oid)
        if table is None:
            raise SourceStateError("A table that is to be read does not exist any more.")
        return table

    def captured(self, sized: bool = False) -> list[CapturedTable]:
        """Return all captured tables."""
        del sized
        with self._snapshots.open() as view:
            return [
                _described(table, view.query(f"SELECT count(*) FROM {quote(table.name)}")[0][0])
                for table in self._captured(view)
            ]

    def to_snapshot(self) -> list[CapturedTable]:
        """Return the tables that a snapshot reads, in its order."""
        statements = self._options.select_statements()
        found = in_order(self._options, self.captured(), lambda one: one.name, lambda one: one.rows)
        # What a statement returns has no key by which it could be split.
        return [replace(table, units=WHOLE) if table.name in statements else table for table in found]

    def names(self) -> list[str]:
        """Return the names of all captured tables."""
        return [_name(table) for table in self._now().values()]

    def follow(self, known: Collection[str]) -> frozenset[str]:
        """Return no tables: the log holds all of them."""
        del known
        return frozenset()

    def fingerprints(self, oids: Sequence[int]) -> dict[int, str]:
        """Return the fingerprints of tables, which are never altered."""
        return {number: _fingerprint(table) for number, table in self._now().items() if number in oids}

    def describe(self, oids: Sequence[int]) -> dict[int, DescribedTable]:
        """Return tables as chunks name them."""
        statements = self._options.select_statements()
        return {
            number: DescribedTable(number, _name(table), table, statements.get(_name(table)))
            for number, table in self._now().items()
            if number in oids
        }

    def key_of(self, oid: int, surrogate: str | None) -> TableKey | None:
        """Return the key that a table is split by."""
        table = self._now().get(oid)
        return None if table is None else key_of(table, surrogate)

    def chunk_units(self) -> int:
        """Return how many units make a chunk."""
        return WHOLE

    def row_filter(self, oid: int, condition: str) -> str:
        """Translate a signal's condition on the rows of a table."""
        return row_filter(self._one(oid), condition, self._options)

    def row_query(self, oid: int, statement: str) -> str:
        """Translate a blocking signal's statement on a table."""
        return row_query(self._one(oid), statement, self._options)


def _name(table: Table) -> str:
    return f"{SCHEMA}.{table.name}"


def _fingerprint(table: Table) -> str:
    return str(table.number)


def _described(table: Table, rows: int) -> CapturedTable:
    units = WHOLE if key_of(table) is None else UNCOUNTED
    return CapturedTable(_name(table), _name(table), table.number, table.number, _fingerprint(table), units, rows)
