"""The captured tables as snapshots read them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from floodmark.changes.column_plan import read_columns
from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.chunk import DescribedTable
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.catalog import StoredTable, read_tables
from floodmark.connectors.oracle.server.connection import Connection
from floodmark.connectors.oracle.snapshot.row_ranges import Ranges, RowRanges
from floodmark.connectors.oracle.sql import quoted
from floodmark.connectors.oracle.structures.stored import table_json
from floodmark.connectors.oracle.structures.table import Table
from floodmark.connectors.schema_history.files import StateDirFiles
from floodmark.errors import SourceStateError
from floodmark.extensions.snapshotter import SnapshotQuery
from floodmark.packing import table_number
from floodmark.snapshots.select_statements import WHOLE, SelectStatements
from floodmark.snapshots.table_order import in_order

KNOWN_S = 1.0
KNOWN_SHARE = 4
"""The list is valid for at least this many times as long as reading it took."""


@dataclass(frozen=True)
class ReadTable:
    """What a chunk needs to know of a table.

    Attributes:
        structure: with the columns that are read.
        ranges: of its rows.
    """

    structure: TableStructure
    ranges: Ranges


class SnapshotTables:
    """The captured tables as they are now.

    Args:
        options: the source's options.
        query: the one that ``snapshot.query.mode=custom`` names; None if there is none.
        ordinary: returns an open connection.

    Attributes:
        statements: those that some tables are read with.
    """

    def __init__(self, options: OracleOptions, query: SnapshotQuery | None, ordinary: Callable[[], Connection]) -> None:
        self._options = options
        self._ordinary = ordinary
        self._ranges = RowRanges(StateDirFiles(options.state_dir, options.owner), options.snapshot_chunk_bytes)
        self.statements = SelectStatements(options, query)
        self._known: dict[int, StoredTable] = {}
        self._known_until = 0.0

    def now(self, numbers: Sequence[int] | None = None) -> dict[int, StoredTable]:
        """Return the captured tables by their numbers, as they were a moment ago.

        Args:
            numbers: only these.
        """
        began = time.monotonic()
        if began > self._known_until:
            options = self._options
            found = read_tables(self._ordinary(), options.database, options.captures)
            self._known = {number_of(one.table): one for one in found if not one.is_temporary}
            now = time.monotonic()
            self._known_until = now + max(KNOWN_S, KNOWN_SHARE * (now - began))
        if numbers is None:
            return self._known
        return {number: self._known[number] for number in numbers if number in self._known}

    def forget(self) -> None:
        """Read the tables again at the next call."""
        self._known_until = 0.0

    def described(self) -> list[CapturedTable]:
        """Return all captured tables, as the engines expect them, including one that was created a moment ago."""
        self.forget()
        return [self._captured(number, found) for number, found in self.now().items()]

    def to_snapshot(self) -> list[CapturedTable]:
        """Return the tables that a snapshot reads, in its order.

        Raises:
            ConfigError: the options have a statement for a table that the snapshot doesn't read.
        """
        tables = list(self.now().items())
        chosen = in_order(self._options, tables, lambda one: one[1].full_name, lambda one: one[1].rows)
        self.statements.check([found.full_name for _, found in chosen])
        result = []
        for number, found in chosen:
            own, statement = self._statement(found)
            if not own:
                result.append(self._captured(number, found))
            elif statement is not None:
                result.append(replace(self._captured(number, found), units=WHOLE))
        return result

    def to_read(self, numbers: Sequence[int]) -> dict[int, DescribedTable]:
        """Return tables as chunks name them; their ``structure`` is a ``ReadTable``."""
        return {
            number: DescribedTable(
                number,
                sql_name(found.table),
                ReadTable(self._structure(found), self._ranges_of(found)),
                self._statement(found)[1],
            )
            for number, found in self.now(numbers).items()
        }

    def _structure(self, found: StoredTable) -> TableStructure:
        options = self._options
        return TableStructure(self._as_read(found.table), options.settings, options.include_schema_comments)

    def one(self, number: int) -> StoredTable:
        """Return a table.

        Raises:
            SourceStateError: it doesn't exist any more.
        """
        found = self.now([number]).get(number)
        if found is None:
            raise SourceStateError("A table that is to be read does not exist any more.")
        return found

    def file_of(self, found: StoredTable) -> str:
        """Return a table's fingerprint, which changes when it is altered, or when its ranges are others."""
        return f"{_fingerprint(found)}{self._ranges_of(found).digest}"

    def _captured(self, number: int, found: StoredTable) -> CapturedTable:
        name = found.full_name
        return CapturedTable(name, name, number, number, self.file_of(found), self._ranges_of(found).count, found.rows)

    def _ranges_of(self, found: StoredTable) -> Ranges:
        if found.is_index:
            return Ranges()
        return self._ranges.of(self._ordinary(), sql_name(found.table), _fingerprint(found), found.size, found.rows)

    def _statement(self, found: StoredTable) -> tuple[bool, str | None]:
        """Return whether a table is read with a statement of its own, and the statement; None leaves it out."""

        def columns() -> list[str]:
            return [quoted(column.name) for column in self._as_read(found.table).columns]

        return self.statements.of(found.full_name, sql_name(found.table), columns)

    def _as_read(self, table: Table) -> Table:
        """Return a table with the columns that must be read."""
        names = [column.name for column in table.columns]
        wanted = read_columns(table.owner, table.name, names, table.key, self._options)
        return replace(table, columns=tuple(column for column in table.columns if column.name in wanted))


def number_of(table: Table) -> int:
    """Return the number that identifies a table."""
    return table_number(table.owner, table.name)


def sql_name(table: Table) -> str:
    """Return a table's name for SQL."""
    return f"{quoted(table.owner)}.{quoted(table.name)}"


def _fingerprint(found: StoredTable) -> str:
    described = json.dumps([found.number, found.segment, table_json(found.table)], sort_keys=True)
    return hashlib.blake2b(described.encode(), digest_size=12).hexdigest()
