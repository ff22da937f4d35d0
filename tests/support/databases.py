"""What tells databases apart for workloads: how tables are made and changed, and how they are connected to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg
import pymysql

from tests.support.mysql import MysqlServer

Row = tuple[Any, ...]


class Session(Protocol):
    """A session of a database, in which transactions are committed by hand."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement; iterating over what it returns gives its rows."""

    def commit(self) -> None:
        """End the transaction."""

    def rollback(self) -> None:
        """Undo the transaction."""


class Database(Protocol):
    """A database that a workload changes.

    Attributes:
        schema: the schema of its tables, as events have it.
        tables: statements that create the workload's tables.
        numbers: a query of the numbers from 1 to its parameter, as the column ``g``.
        text: of a number ``g``, after the word ``k``.
        lost: what a lost connection raises.
        alterations: statements that change a table's structure, to be run one after the other.
    """

    schema: str
    tables: tuple[str, ...]
    numbers: str
    text: str
    lost: tuple[type[Exception], ...]
    alterations: tuple[str, ...]

    def session(self) -> Any:
        """Return a context manager that opens a ``Session``."""

    def upsert(self, keys: Sequence[str], others: Sequence[str]) -> str:
        """Return the end of an INSERT that updates the row of a key that is there."""

    def rekey(self, table: str) -> str:
        """Return a statement that changes a key unless the new one is taken; values: new, version, old, new."""

    def swap(self, table: str, new: str, old: str) -> tuple[str, ...]:
        """Return the statements that put a new table in a table's place, which gets another name, all at once."""


class Postgres:
    """A PostgreSQL database, by its connection string."""

    schema: str = "public"
    tables: tuple[str, ...] = (
        "CREATE TABLE plain (id integer PRIMARY KEY, v bigint NOT NULL, note text)",
        """CREATE TABLE "Mixed Case" ("the key" text, part integer, v bigint NOT NULL, amount numeric(12,2),
                                      PRIMARY KEY (part, "the key"))""",
        "CREATE TABLE toasted (id bigint PRIMARY KEY, v bigint NOT NULL, big text)",
        "ALTER TABLE toasted ALTER big SET STORAGE EXTERNAL",
        "CREATE TABLE full_identity (id integer PRIMARY KEY, v bigint NOT NULL, note text)",
        "ALTER TABLE full_identity REPLICA IDENTITY FULL",
    )
    numbers = "SELECT g FROM generate_series(1, %s) g"
    text = "'k' || g"
    lost: tuple[type[Exception], ...] = (psycopg.OperationalError,)
    alterations: tuple[str, ...] = ()

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo

    def session(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._conninfo)

    def upsert(self, keys: Sequence[str], others: Sequence[str]) -> str:
        changes = ", ".join(f"{name} = excluded.{name}" for name in others)
        return f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"

    def rekey(self, table: str) -> str:
        return f"UPDATE {table} SET id = %s, v = %s WHERE id = %s AND NOT EXISTS (SELECT FROM {table} WHERE id = %s)"

    def swap(self, table: str, new: str, old: str) -> tuple[str, ...]:
        return f"ALTER TABLE {table} RENAME TO {old}", f"ALTER TABLE {new} RENAME TO {table}"


@dataclass
class _Pymysql:
    connection: pymysql.Connection[Any]

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, tuple(values) or None)
            return list(cursor.fetchall())

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()


class Mysql:
    """A database of a MySQL or MariaDB server."""

    tables: tuple[str, ...] = (
        "CREATE TABLE plain (id integer PRIMARY KEY, v bigint NOT NULL, note text)",
        """CREATE TABLE "Mixed Case" ("the key" varchar(40) CHARACTER SET latin1, part integer, v bigint NOT NULL,
                                      amount numeric(12,2), PRIMARY KEY (part, "the key"))""",
        "CREATE TABLE toasted (id bigint PRIMARY KEY, v bigint NOT NULL, big longtext)",
        "CREATE TABLE full_identity (id integer PRIMARY KEY, v bigint NOT NULL, note json)",
    )
    numbers = "WITH RECURSIVE s AS (SELECT 1 AS g UNION ALL SELECT g + 1 FROM s WHERE g < %s) SELECT g FROM s"
    text = "CONCAT('k', g)"
    lost: tuple[type[Exception], ...] = (pymysql.err.OperationalError, pymysql.err.InterfaceError)

    alterations: tuple[str, ...] = (
        "ALTER TABLE plain ADD more integer DEFAULT 7 FIRST",
        "ALTER TABLE plain DROP more",
    )

    def __init__(self, server: MysqlServer, database: str, image: str = "FULL") -> None:
        """Take a server's database, and what its sessions log of changed rows (``binlog_row_image``)."""
        self._server = server
        self._image = image
        self.schema = database

    @contextmanager
    def session(self) -> Iterator[Session]:
        depth = "max_recursive_iterations" if self._server.flavor == "mariadb" else "cte_max_recursion_depth"
        begin = f"SET sql_mode = 'ANSI_QUOTES', {depth} = 1000000, binlog_row_image = '{self._image}'"
        with self._server.connect(self.schema, autocommit=False, init_command=begin) as connection:
            yield _Pymysql(connection)

    def upsert(self, keys: Sequence[str], others: Sequence[str]) -> str:
        return "ON DUPLICATE KEY UPDATE " + ", ".join(f"{name} = VALUES({name})" for name in others)

    def rekey(self, table: str) -> str:
        return f"UPDATE IGNORE {table} SET id = %s, v = %s WHERE id = %s AND %s > 0"

    def swap(self, table: str, new: str, old: str) -> tuple[str, ...]:
        return (f"RENAME TABLE {table} TO {old}, {new} TO {table}",)
