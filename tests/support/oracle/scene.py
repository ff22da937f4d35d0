"""A database with a table, served to queries that run in the test's process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.support.inprocess import InProcess
from tests.support.oracle.fronts.tns.server import TnsServer
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import Column, Table, column
from tests.support.oracle.model.transactions import Transaction

SCHEMA, NAME, PASSWORD = "S", "T", "dbz"
COLUMNS = [column("ID", "NUMBER(9,0)", nullable=False), column("V", "NUMBER(9,0)"), column("PAD", "VARCHAR2(400)")]
Rows = list[dict[str, Any]]


class Scene:
    """The database, and its queries.

    Args:
        directory: for the queries' state.
        database: the database.
        columns: of the table.
        rows: how many rows the table has.
        adapter: of the queries.
    """

    def __init__(
        self,
        directory: Path,
        database: OracleDatabase | None = None,
        columns: list[Column] | None = None,
        rows: int = 20,
        adapter: str = "logminer",
    ) -> None:
        self.adapter = adapter
        self.database = database or OracleDatabase()
        self.table = self.database.create_table(SCHEMA, NAME, columns or COLUMNS, ["ID"], logged=False)
        self._directory = directory
        self._stack = ExitStack()
        self.server = self._stack.enter_context(TnsServer(self.database))
        others = [number for number in self.database.threads if number > 1]
        self.nodes = [self._stack.enter_context(TnsServer(self.database, thread=number)) for number in others]
        with self.change() as transaction:
            for number in range(rows):
                transaction.insert(self.table, ID=Decimal(number), V=Decimal(0), PAD=f"row {number}")
        with self.database.step():
            return

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def options(self, **more: str) -> dict[str, str]:
        """Return the options of a query; underscores of names stand for dots."""
        database = self.database
        return {
            "connector": "oracle",
            "database.connection.adapter": self.adapter,
            "topic.prefix": "p",
            "state.dir": str(self._directory / "state"),
            "database.hostname": "127.0.0.1",
            "database.port": str(self.server.port),
            "database.user": database.account,
            "database.password": PASSWORD,
            "database.dbname": database.settings.name,
            "database.pdb.name": database.pluggable,
            "table.include.list": rf"{SCHEMA}\..*",
            "log.mining.poll.interval.ms": "20",
            "include.schema.changes": "false",
            "errors.max.retries": "3",
            "errors.retry.delay.initial.ms": "10",
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    def query(self, offset: dict[str, Any] | None = None, /, **more: str) -> InProcess:
        """Return a query that goes on at an offset, or a new one; it is stopped at the end of the test."""
        made = InProcess(self.options(**more), offset)
        self._stack.callback(made.stop)
        return made

    @contextmanager
    def change(self, thread: int = 1) -> Iterator[Transaction]:
        """Make changes in a transaction, and commit them."""
        with self.database.lock:
            transaction = self.database.begin(thread=thread)
            yield transaction
            transaction.commit()
            self.database.background()

    def write(self, number: int, thread: int = 1) -> None:
        """Insert a row, and update another one."""
        with self.change(thread) as transaction:
            transaction.insert(self.table, ID=Decimal(number), V=Decimal(number), PAD="new")
            transaction.update(self.table, {"ID": 1}, V=Decimal(number))

    def expected(self, table: Table | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of the table now."""
        found = table or self.table
        rows = found.rows_at(self.database.clock.scn)
        names = [one.name for one in found.structure.columns]
        return sorted(
            tuple(int(row[name]) if isinstance(row.get(name), Decimal) else row.get(name) for name in names)
            for _, row in rows
        )


def applied(rows: Rows, table: str = NAME) -> list[tuple[Any, ...]]:
    """Return the rows of a table that events make."""
    found: dict[str, tuple[Any, ...]] = {}
    for row in rows:
        if row["table"] != table or row["value"] is None or row["op"] in ("gap", None):
            continue
        value = json.loads(row["value"])
        if value["op"] == "t":
            found.clear()
        elif value["after"] is None:
            found.pop(row["key"], None)
        else:
            found[row["key"]] = tuple(value["after"].values())
    return sorted(found.values())
