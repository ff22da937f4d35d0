"""A notebook: a database for tests in a directory, with tables in SQLite and a log in a file.

A writer appends its transaction to the log and commits it with its number in SQLite while it holds a file's lock.
So a transaction of SQLite that reads shows exactly the state after the transaction whose number it reads.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.toy.notebook.database.log_file import LogFile, line_of

ColumnType = Literal["integer", "text"]
SCHEMA = "notebook"
"""What comes before the names of tables in filters and events."""
OPTIONAL = "?"


@dataclass(frozen=True)
class Column:
    """A column; ``optional`` is whether it may be NULL."""

    name: str
    type: ColumnType
    optional: bool


@dataclass(frozen=True)
class Table:
    """A table. It is never altered; one that is created again has another number."""

    number: int
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the table as the log and SQLite store it."""
        columns = [[column.name, column.type, column.optional] for column in self.columns]
        return {"number": self.number, "name": self.name, "columns": columns, "key": list(self.key)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Table:
        """Return the table that ``to_json`` described."""
        columns = tuple(Column(*column) for column in data["columns"])
        return cls(data["number"], data["name"], columns, tuple(data["key"]))


def quote(name: str) -> str:
    """Return a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


class Notebook:
    """A notebook in a directory.

    Attributes:
        log: its log.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = LogFile(path / "log.jsonl")
        self._tables = path / "tables.sqlite"

    @classmethod
    def make(cls, path: Path) -> Notebook:
        """Make an empty notebook in a new directory."""
        path.mkdir()
        made = cls(path)
        made.log.path.touch()
        (path / "lock").touch()
        with closing(sqlite3.connect(made._tables)) as conn, conn:
            conn.execute("PRAGMA journal_mode = WAL")
            conn.execute("CREATE TABLE _log (id TEXT NOT NULL, committed INTEGER NOT NULL)")
            conn.execute("INSERT INTO _log VALUES (?, 0)", (uuid.uuid4().hex,))
            conn.execute("CREATE TABLE _tables (number INTEGER PRIMARY KEY AUTOINCREMENT, structure TEXT)")
        return made

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep transactions from being committed meanwhile.

        Raises:
            FileNotFoundError: there is no notebook in the directory.
        """
        if not self._tables.exists():
            raise FileNotFoundError(f"there is no notebook in {self.path}")
        with (self.path / "lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def connect(self) -> sqlite3.Connection:
        """Open a connection that any thread may use, one at a time."""
        return sqlite3.connect(self._tables, isolation_level=None, check_same_thread=False)

    def create(self, name: str, columns: Mapping[str, str], key: Sequence[str] = ("id",)) -> None:
        """Create a table.

        Args:
            name: its name.
            columns: the types of its columns; one that ends with a question mark may be NULL.
            key: the columns of its primary key; none: it has no key.
        """
        described = [f"{quote(column)} {_sql_type(kind)}" for column, kind in columns.items()]
        if key:
            described.append(f"PRIMARY KEY ({', '.join(map(quote, key))})")
        with self.locked(), closing(self.connect()) as conn, _transaction(conn):
            number = conn.execute("INSERT INTO _tables DEFAULT VALUES").lastrowid
            made = tuple(
                Column(column, "integer" if kind.startswith("integer") else "text", kind.endswith(OPTIONAL))
                for column, kind in columns.items()
            )
            structure = json.dumps(Table(number or 0, name, made, tuple(key)).to_json())
            conn.execute("UPDATE _tables SET structure = ? WHERE number = ?", (structure, number))
            conn.execute(f"CREATE TABLE {quote(name)} ({', '.join(described)})")

    def drop(self, name: str) -> None:
        """Drop a table."""
        with self.locked(), closing(self.connect()) as conn, _transaction(conn):
            conn.execute("DELETE FROM _tables WHERE structure ->> 'name' = ?", (name,))
            conn.execute(f"DROP TABLE {quote(name)}")

    def page(self) -> Page:
        """Begin a transaction."""
        return Page(self)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """Return the rows of a table, sorted."""
        with closing(self.connect()) as conn:
            return sorted(conn.execute(f"SELECT * FROM {quote(name)}"))

    def cut_log(self) -> None:
        """Remove all lines that the log has."""
        with self.locked(), closing(self.connect()) as conn:
            _, committed = log_state(conn)
            kept = self.log.path.read_bytes()[self.log.offset_of(committed + 1) :]
            rest = self.path / "log.rest"
            rest.write_bytes(kept)
            rest.replace(self.log.path)

    def commit(self, steps: Sequence[Step]) -> None:
        """Run the steps of a transaction, and append what they changed to the log."""
        with self.locked(), closing(self.connect()) as conn:
            size = self.log.size()
            try:
                with _transaction(conn):
                    known = {table.name: table for table in tables_of(conn)}
                    changes = [change for step in steps for change in step(conn, known)]
                    if not changes:
                        return
                    _, committed = log_state(conn)
                    conn.execute("UPDATE _log SET committed = committed + 1")
                    numbers = {change["table"] for change in changes}
                    tables = {str(one.number): one.to_json() for one in known.values() if one.number in numbers}
                    with self.log.path.open("ab") as file:
                        file.write(line_of(committed + 1, time.time_ns() // 1000, tables, changes))
            except BaseException:
                os.truncate(self.log.path, size)
                raise


Row = dict[str, Any]
Step = Callable[[sqlite3.Connection, Mapping[str, Table]], list[dict[str, Any]]]
"""Changes rows and returns the changes as the log holds them."""


class Page:
    """A transaction; nothing of it happens before it is committed, so pages never wait for each other."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        self._steps: list[Step] = []

    def __enter__(self) -> Page:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.commit()

    def insert(self, table: str, *rows: Row) -> None:
        """Insert rows; columns that are left out are NULL."""

        def step(conn: sqlite3.Connection, known: Mapping[str, Table]) -> list[dict[str, Any]]:
            columns = [column.name for column in known[table].columns]
            values = [[row.get(name) for name in columns] for row in rows]
            conn.executemany(f"INSERT INTO {quote(table)} VALUES ({', '.join('?' * len(columns))})", values)
            return [_change(known[table], "insert", None, one) for one in values]

        self._steps.append(step)

    def update(self, table: str, where: Row, **values: Any) -> None:
        """Change the rows whose columns have the values of ``where``."""

        def step(conn: sqlite3.Connection, known: Mapping[str, Table]) -> list[dict[str, Any]]:
            columns = [column.name for column in known[table].columns]
            old = _chosen(conn, table, where)
            assigned = ", ".join(f"{quote(name)} = ?" for name in values)
            conn.execute(
                f"UPDATE {quote(table)} SET {assigned} WHERE {_condition(where)}", [*values.values(), *where.values()]
            )
            new = [[values.get(name, value) for name, value in zip(columns, row, strict=True)] for row in old]
            pairs = zip(old, new, strict=True)
            return [_change(known[table], "update", before, after) for before, after in pairs]

        self._steps.append(step)

    def delete(self, table: str, **where: Any) -> None:
        """Delete the rows whose columns have these values."""

        def step(conn: sqlite3.Connection, known: Mapping[str, Table]) -> list[dict[str, Any]]:
            old = _chosen(conn, table, where)
            conn.execute(f"DELETE FROM {quote(table)} WHERE {_condition(where)}", list(where.values()))
            return [_change(known[table], "delete", row, None) for row in old]

        self._steps.append(step)

    def commit(self) -> None:
        """Do what was asked for, and begin another transaction."""
        steps, self._steps = self._steps, []
        self._notebook.commit(steps)

    def rollback(self) -> None:
        """Forget what was asked for."""
        self._steps = []


def log_state(conn: sqlite3.Connection) -> tuple[str, int]:
    """Return the log's identity, and the number of the last transaction that the connection sees."""
    ((identity, committed),) = conn.execute("SELECT id, committed FROM _log")
    return identity, committed


def tables_of(conn: sqlite3.Connection) -> list[Table]:
    """Return all tables that the connection sees."""
    found = conn.execute("SELECT structure FROM _tables ORDER BY number")
    return [Table.from_json(json.loads(structure)) for (structure,) in found]


@contextmanager
def _transaction(conn: sqlite3.Connection) -> Iterator[None]:
    conn.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        conn.execute("ROLLBACK")
        raise
    conn.execute("COMMIT")


def _sql_type(kind: str) -> str:
    return kind.removesuffix(OPTIONAL) if kind.endswith(OPTIONAL) else f"{kind} NOT NULL"


def _condition(where: Row) -> str:
    return " AND ".join(f"{quote(name)} IS ?" for name in where) or "TRUE"


def _chosen(conn: sqlite3.Connection, table: str, where: Row) -> list[tuple[Any, ...]]:
    return conn.execute(f"SELECT * FROM {quote(table)} WHERE {_condition(where)}", list(where.values())).fetchall()


def _change(table: Table, operation: str, before: Sequence[Any] | None, after: Sequence[Any] | None) -> dict[str, Any]:
    return {"table": table.number, "op": operation, "before": _texts(before), "after": _texts(after)}


def _texts(row: Sequence[Any] | None) -> list[str | None] | None:
    return None if row is None else [None if value is None else str(value) for value in row]
