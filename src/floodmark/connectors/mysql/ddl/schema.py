"""The structures of all tables at one position of the log, and what a statement changes in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from floodmark.connectors.mysql.ddl.column_types import Charset
from floodmark.connectors.mysql.structures.table import Table

TableId = tuple[str, str]
"""Database and name."""


@dataclass(frozen=True)
class Schema:
    """All databases and tables; never changed in place.

    Attributes:
        databases: the default character set of each database.
        tables: by database and name.
    """

    databases: Mapping[str, Charset] = field(default_factory=dict)
    tables: Mapping[TableId, Table] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """What a statement did to one table.

    Attributes:
        kind: ``CREATE``, ``ALTER``, ``DROP`` or ``TRUNCATE``.
        id: the table, by its name after the statement.
        previous: its name before the statement, if that was another one.
        table: its structure after the statement; None if it is dropped or wasn't known.
        statement: the statement; where it changes several tables, the part that changes this one.
        quiet: whether Debezium does not count it as a change of the table: ``CREATE INDEX``, ``DROP INDEX``.
    """

    kind: str
    id: TableId
    previous: TableId | None = None
    table: Table | None = None
    statement: str | None = None
    quiet: bool = False


@dataclass(frozen=True)
class Applied:
    """The outcome of a statement.

    Attributes:
        changes: what it did, in its own order.
        database: the database that it created, changed or dropped.
        made: whether it creates or drops that database.
        unknown: tables that it changes but that are not in the schema: views, or tables that are left out.
        understood: whether it is a statement about tables or databases, even if it changes nothing.
    """

    schema: Schema
    changes: tuple[Change, ...] = ()
    database: str | None = None
    made: bool = False
    unknown: tuple[TableId, ...] = ()
    understood: bool = False


class Draft:
    """A schema while a statement changes it; it shares what is unchanged with the schema before."""

    def __init__(self, schema: Schema) -> None:
        self._before = schema
        self._tables: dict[TableId, Table] | None = None
        self._databases: dict[str, Charset] | None = None
        self.changes: list[Change] = []
        self.unknown: list[TableId] = []
        self.database: str | None = None
        self.made = False
        self.understood = False

    @property
    def tables(self) -> Mapping[TableId, Table]:
        """The tables as they are now."""
        return self._before.tables if self._tables is None else self._tables

    @property
    def databases(self) -> Mapping[str, Charset]:
        """The databases as they are now."""
        return self._before.databases if self._databases is None else self._databases

    def find(self, table: TableId) -> Table | None:
        """Return a table; record its name in ``unknown`` if there is none."""
        found = self.tables.get(table)
        if found is None:
            self.unknown.append(table)
        return found

    def put(self, table: Table) -> None:
        """Add a table, or replace the one with its name."""
        if self._tables is None:
            self._tables = dict(self._before.tables)
        self._tables[table.database, table.name] = table

    def drop(self, table: TableId) -> None:
        """Remove a table if it is there."""
        if table in self.tables:
            if self._tables is None:
                self._tables = dict(self._before.tables)
            del self._tables[table]

    def set_database(self, name: str, charset: Charset) -> None:
        """Add a database or change its default."""
        self._databases = {**self.databases, name: charset}
        self.database = name

    def drop_database(self, name: str) -> None:
        """Remove a database with its tables."""
        self._databases = {key: value for key, value in self.databases.items() if key != name}
        self._tables = {key: value for key, value in self.tables.items() if key[0] != name}
        self.database = name

    def changed(
        self,
        kind: str,
        table: TableId,
        previous: TableId | None = None,
        statement: str | None = None,
        quiet: bool = False,
    ) -> None:
        """Record a change; its structure is the one that the table has now."""
        self.changes.append(Change(kind, table, previous, self.tables.get(table), statement, quiet))

    def applied(self) -> Applied:
        """Return the outcome of the statement."""
        schema = self._before
        if self._tables is not None or self._databases is not None:
            schema = Schema(self.databases, self.tables)
        return Applied(schema, tuple(self.changes), self.database, self.made, tuple(self.unknown), self.understood)
