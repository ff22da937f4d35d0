"""Lists the tables that a snapshot reads, in order, and the statements with which it reads some of them.

A statement can be any SELECT, so it can't be cut by pages, nor limited to the rows that changed since. Its table is
read as one chunk, at the read point. If that is lost meanwhile, the chunk returns nothing and the whole table is read
again at the next one.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

from floodmark.changes.column_plan import read_columns
from floodmark.config.model import matches
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import Conn, Table, key_names, quote, stored_tables
from floodmark.connectors.postgres.snapshot.chunks import describe_tables, selected
from floodmark.errors import ConfigError, ConnectError
from floodmark.extensions.snapshotter import SnapshotQuery
from floodmark.snapshots.table_order import in_order

OVERRIDES = "snapshot.select.statement.overrides"
WHOLE = 1
NO_FILE = ""


@dataclass(frozen=True)
class Reading:
    """How a snapshot reads a table.

    Attributes:
        stored: the table that is read.
        published: the table under whose name the events come.
        statement: the SELECT that returns its rows; None if its pages are read.
    """

    stored: Table
    published: Table
    statement: str | None = None


class SnapshotTables:
    """Decides what a snapshot reads.

    Args:
        options: the source's options.
        query: the query that ``snapshot.query.mode=custom`` names.

    Attributes:
        begun: whether the tables' names in the options have been verified; from then on, the name of a dropped table
            is no error.
    """

    def __init__(self, options: PostgresOptions, query: SnapshotQuery | None) -> None:
        self._options = options
        self._query = query
        self._overrides = options.select_statements()
        self.begun = False
        # The query's statements, kept so that they stay the same as long as the snapshot runs.
        self._asked: dict[tuple[int, tuple[str, ...]], str | None] = {}
        self._checked: set[tuple[str, tuple[tuple[str, int], ...]]] = set()

    def readings(self, conn: Conn) -> list[Reading]:
        """Return what a snapshot reads, in order.

        Raises:
            ConfigError: a statement is for a table that isn't captured, or doesn't return its columns.
        """
        tables = stored_tables(conn, self._options)
        pairs = in_order(self._options, tables, lambda pair: pair[1].full_name, lambda pair: pair[0].rows)
        readings = self._with_statements(conn, pairs) if self._overrides or self._query else None
        return [Reading(*pair) for pair in pairs] if readings is None else readings

    def with_statements(self, conn: Conn) -> dict[int, Reading]:
        """Return the readings that have a statement, by the OID of the table that is read."""
        if not self._overrides and self._query is None:
            return {}
        return {reading.stored.oid: reading for reading in self.readings(conn) if reading.statement is not None}

    def _with_statements(self, conn: Conn, pairs: list[tuple[Table, Table]]) -> list[Reading]:
        self._check_names([published for _, published in pairs], [stored for stored, _ in pairs])
        oids = sorted({published.oid for _, published in pairs})
        columns = describe_tables(conn, oids, self._options.publication_name)
        keys = {} if self._options.has_all_columns else key_names(conn, oids)
        result: list[Reading] = []
        for stored, published in pairs:
            listed = columns[published.oid]
            names = [str(name) for name, *_ in listed]
            key = keys.get(published.oid, [])
            read = read_columns(published.schema, published.name, names, key, self._options)
            described = tuple((str(name), int(type_oid)) for name, type_oid, *_ in listed if name in read)
            # A statement for a partitioned table reads all its partitions at once.
            target = stored if stored.full_name in self._overrides else published
            read_whole, statement = self._statement(target, tuple(quote(name) for name, _ in described))
            if read_whole:
                result.append(Reading(stored, published))
            elif statement is not None:
                reading = Reading(target, published, statement)
                if reading not in result:
                    self._check(conn, reading, described)
                    result.append(reading)
        return result

    def _statement(self, table: Table, columns: tuple[str, ...]) -> tuple[bool, str | None]:
        """Return whether a table's pages are read and, if not, its statement; None leaves the table out."""
        if table.full_name in self._overrides:
            return False, self._overrides[table.full_name]
        if self._query is None:
            return True, None
        asked = (table.oid, columns)
        if asked not in self._asked:
            self._asked[asked] = self._query.snapshot_query(table.quoted, columns)
        return False, self._asked[asked]

    def _check_names(self, *tables: list[Table]) -> None:
        """Verify that every override is for a table that is read: for a wrong name, its table would be read in full."""
        if self.begun:
            return
        names = {table.full_name for listed in tables for table in listed}
        captured = self._options.snapshot_include_collection_list
        for name in self._overrides:
            if name not in names and not (captured and not matches(captured, name)):
                raise ConfigError(
                    f"Option '{OVERRIDES}' names the table '{name}', which the snapshot does not read.",
                    f"It reads {', '.join(sorted(names)) or 'no table'}. Correct the name (case counts), or remove it.",
                )
        self.begun = True

    def _check(self, conn: Conn, reading: Reading, columns: tuple[tuple[str, int], ...]) -> None:
        """Verify that a statement returns the table's columns, with their types."""
        assert reading.statement is not None
        if (reading.statement, columns) in self._checked:
            return
        where = f"The snapshot's statement for the table '{reading.published.full_name}'"
        try:
            looking = f"SELECT {selected([name for name, _ in columns], reading.statement)} LIMIT 0"
            # Prepared, it can't be several statements.
            cursor = conn.execute(looking, prepare=True)
        except psycopg.OperationalError as exc:
            raise ConnectError(f"{where} could not be checked: {' '.join(str(exc).split())}.") from None
        except psycopg.Error as exc:
            raise ConfigError(
                f"{where} cannot be used: {' '.join(str(exc).split())}.",
                "It must be one SELECT that returns all columns of the table: "
                f"{', '.join(name for name, _ in columns)}.",
            ) from None
        found = [column.type_code for column in cursor.description or []]
        wrong = [name for (name, type_oid), got in zip(columns, found, strict=True) if got != type_oid]
        if wrong:
            raise ConfigError(
                f"{where} returns another type than the table's for: {', '.join(wrong)}.", "Cast them to that type."
            )
        self._checked.add((reading.statement, columns))
