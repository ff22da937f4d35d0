"""Lists the tables to read and describes them for the snapshot engines."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from floodmark.changes.column_plan import read_columns
from floodmark.connectors.contract.captured_table import UNCOUNTED, CapturedTable
from floodmark.connectors.contract.chunk import DescribedTable
from floodmark.connectors.mysql.ddl.schema import TableId
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.schema.catalog import read_schema
from floodmark.connectors.mysql.server.connection import Connection, run, without_waiting
from floodmark.connectors.mysql.snapshot.key_ranges import key_of
from floodmark.connectors.mysql.structures.session import Server
from floodmark.connectors.mysql.structures.table import Table, quote, table_name
from floodmark.errors import LockTimeoutError, SourceStateError
from floodmark.extensions.snapshotter import SnapshotQuery
from floodmark.logger import get_logger
from floodmark.packing import table_number
from floodmark.snapshots.select_statements import WHOLE, SelectStatements
from floodmark.snapshots.table_order import in_order

log = get_logger(__name__)

T = TypeVar("T")

DOING = "reading the list of tables"
KNOWN_S = 1.0
KNOWN_SHARE = 4
"""The list is valid for at least this many times as long as reading it took: seconds with thousands of tables."""
LOCKED_S = 2.0
PAUSE_S = 0.05
MANY = 200
_NAMES = """
    SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES
    WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')
      AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
"""
_ESTIMATES = """
    SELECT t.TABLE_SCHEMA, t.TABLE_NAME, t.TABLE_ROWS, COALESCE(e.TRANSACTIONS, 'NO') FROM information_schema.TABLES t
    LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE
    WHERE t.TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
"""


def fingerprint(table: Table) -> str:
    """Return a hash that changes when a table is altered."""
    return hashlib.blake2b(json.dumps(table.to_json()).encode(), digest_size=12).hexdigest()


@dataclass(frozen=True)
class Found:
    """A captured table of the server.

    Attributes:
        rows: how many it has, roughly; -1 if not known.
        transactional: whether a view shows it as of the read point.
    """

    table: Table
    rows: int
    transactional: bool

    @property
    def name(self) -> str:
        """Its name, with that of its database."""
        return f"{self.table.database}.{self.table.name}"

    @cached_property
    def file(self) -> str:
        """Its fingerprint, which changes when it is altered."""
        return fingerprint(self.table)

    @property
    def number(self) -> int:
        """The number that identifies it."""
        return table_number(self.table.database, self.table.name)


class SnapshotTables:
    """The captured tables as they are now.

    Args:
        options: the source's options.
        query: the one that ``snapshot.query.mode=custom`` names; None if there is none.
        ordinary: returns an open connection.
        server: returns the properties of the server.

    Attributes:
        statements: those that some tables are read with.
    """

    def __init__(
        self,
        options: BinlogOptions,
        query: SnapshotQuery | None,
        ordinary: Callable[[], Connection],
        server: Callable[[], Server],
    ) -> None:
        self._options = options
        self._ordinary = ordinary
        self._server = server
        self.statements = SelectStatements(options, query)
        self._warned: set[str] = set()
        self._known: dict[int, Found] = {}
        self._known_until = 0.0

    def now(self, numbers: Sequence[int] | None = None) -> dict[int, Found]:
        """Return the captured tables by their numbers, as they were a moment ago.

        Args:
            numbers: only these.

        Raises:
            LockTimeoutError: another session keeps tables locked, perhaps because it waits for a view to be released.
        """
        began = time.monotonic()
        if began > self._known_until:
            self._known = self._answer(self._read)
            now = time.monotonic()
            self._known_until = now + max(KNOWN_S, KNOWN_SHARE * (now - began))
        if numbers is None:
            return self._known
        return {number: self._known[number] for number in numbers if number in self._known}

    def forget(self) -> None:
        """Read the tables again at the next call."""
        self._known_until = 0.0

    def names(self) -> list[str]:
        """Return the names of the captured tables, without reading their structures.

        Raises:
            LockTimeoutError: as ``now``.
        """
        rows = self._answer(lambda conn: run(conn, _NAMES, DOING))
        return [f"{database}.{name}" for database, name in rows if self._options.captures(database, name)]

    def find(self, at: TableId) -> Table | None:
        """Return a table as it is now."""
        return read_schema(self._ordinary(), self._server(), [at]).tables.get(at)

    def _answer(self, ask: Callable[[Connection], T]) -> T:
        """Return the result of a query about tables, waiting only briefly for locks.

        A session that has locked a table may wait for a view of another one, and so for the caller.
        """
        conn = self._ordinary()
        if not self._server().mariadb:
            return ask(conn)
        until = time.monotonic() + LOCKED_S
        while True:
            try:
                with without_waiting(conn):
                    return ask(conn)
            except LockTimeoutError:
                if time.monotonic() > until:
                    raise
            time.sleep(PAUSE_S)

    def _read(self, conn: Connection) -> dict[int, Found]:
        estimates = {
            (str(database), str(name)): (-1 if rows is None else int(rows), transactions == "YES")
            for database, name, rows, transactions in run(conn, _ESTIMATES, DOING)
        }
        wanted = [at for at in estimates if self._options.captures(*at)]
        # A long list of names costs more than reading tables that are not wanted.
        known = read_schema(conn, self._server(), wanted if len(wanted) <= MANY else None).tables
        return {
            table_number(*at): Found(known[at], *estimates[at])
            for at in sorted(wanted)
            if at in known and not known[at].sequence
        }

    def described(self) -> list[CapturedTable]:
        """Return all captured tables, as the engines expect them, including one that was created a moment ago."""
        self.forget()
        return [self._captured(found) for found in self.now().values()]

    def to_snapshot(self) -> list[CapturedTable]:
        """Return the tables that a snapshot reads, in its order.

        Raises:
            ConfigError: the options have a statement for a table that the snapshot doesn't read.
        """
        tables = in_order(self._options, list(self.now().values()), lambda one: one.name, lambda one: one.rows)
        self.statements.check([found.name for found in tables])
        self._warn([found.name for found in tables if not found.transactional])
        result = []
        for found in tables:
            own, statement = self._statement(found.table)
            if not own:
                result.append(self._captured(found))
            elif statement is not None:
                result.append(replace(self._captured(found), units=WHOLE))
        return result

    def to_read(self, numbers: Sequence[int]) -> dict[int, DescribedTable]:
        """Return tables as chunks name them; their ``structure`` is a ``Table`` with the columns that are read."""
        return {
            number: DescribedTable(
                number, table_name(found.table), self._as_read(found.table), self._statement(found.table)[1]
            )
            for number, found in self.now(numbers).items()
        }

    def one(self, number: int) -> Table:
        """Return a table.

        Raises:
            SourceStateError: it doesn't exist any more.
        """
        found = self.now([number]).get(number)
        if found is None:
            raise SourceStateError("A table that is to be read does not exist any more.")
        return found.table

    def _captured(self, found: Found) -> CapturedTable:
        units = WHOLE if key_of(found.table) is None else UNCOUNTED
        return CapturedTable(found.name, found.name, found.number, found.number, found.file, units, found.rows)

    def _statement(self, table: Table) -> tuple[bool, str | None]:
        """Return whether a table is read with a statement of its own, and the statement; None leaves it out."""

        def columns() -> list[str]:
            return [quote(column.name) for column in self._as_read(table).columns]

        return self.statements.of(f"{table.database}.{table.name}", table_name(table), columns)

    def _as_read(self, table: Table) -> Table:
        """Return a table with the columns that must be read."""
        names = [column.name for column in table.columns]
        wanted = read_columns(table.database, table.name, names, table.key, self._options)
        return replace(table, columns=tuple(column for column in table.columns if column.name in wanted))

    def _warn(self, names: Sequence[str]) -> None:
        new = sorted(set(names) - self._warned)
        if new and self._options.snapshot_locking_mode != "extended":
            self._warned |= set(new)
            log.warning(
                "tables_without_transactions",
                tables=new,
                reason="a view of the data does not hold them, so they are read as they are meanwhile",
                cure="snapshot.locking.mode=extended, or another storage engine",
            )
