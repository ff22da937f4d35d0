"""Lists the tables that a snapshot reads, in order, and the statements with which it reads some of them.

A statement can be any SELECT, so it can't be cut by pages, nor limited to the rows that changed since. Its table is
read as one chunk, at the read point. If that is lost meanwhile, the chunk returns nothing and the whole table is read
again at the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import psycopg

from floodmark.changes.column_plan import read_columns
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import Conn, Table, key_names, quote, stored_tables
from floodmark.connectors.postgres.snapshot.chunks import describe_tables, selected
from floodmark.errors import ConfigError, ConnectError
from floodmark.extensions.snapshotter import SnapshotQuery
from floodmark.snapshots.select_statements import SelectStatements
from floodmark.snapshots.table_order import in_order

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
        statements: those that some tables are read with.
    """

    def __init__(self, options: PostgresOptions, query: SnapshotQuery | None) -> None:
        self._options = options
        self.statements = SelectStatements(options, query)
        self._checked: set[tuple[str, tuple[tuple[str, int], ...]]] = set()

    def readings(self, conn: Conn) -> list[Reading]:
        """Return what a snapshot reads, in order.

        Raises:
            ConfigError: a statement is for a table that isn't captured, or doesn't return its columns.
        """
        tables = stored_tables(conn, self._options)
        pairs = in_order(self._options, tables, lambda pair: pair[1].full_name, lambda pair: pair[0].rows)
        readings = self._with_statements(conn, pairs) if self.statements else None
        return [Reading(*pair) for pair in pairs] if readings is None else readings

    def with_statements(self, conn: Conn) -> dict[int, Reading]:
        """Return the readings that have a statement, by the OID of the table that is read."""
        if not self.statements:
            return {}
        return {reading.stored.oid: reading for reading in self.readings(conn) if reading.statement is not None}

    def _with_statements(self, conn: Conn, pairs: list[tuple[Table, Table]]) -> list[Reading]:
        self.statements.check({table.full_name for pair in pairs for table in pair})
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
            target = stored if self.statements.overrides(stored.full_name) else published
            quoted = partial(_quoted, described)
            own, statement = self.statements.of(target.full_name, target.quoted, quoted)
            if not own:
                result.append(Reading(stored, published))
            elif statement is not None:
                reading = Reading(target, published, statement)
                if reading not in result:
                    self._check(conn, reading, described)
                    result.append(reading)
        return result

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


def _quoted(columns: Sequence[tuple[str, int]]) -> list[str]:
    return [quote(name) for name, _ in columns]
