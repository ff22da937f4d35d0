"""What adapters of databases with SQL share: writers, tables and signals in statements that all of them understand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.contract.under_test import Row, Writer
from tests.support.databases import Database, Session


class SqlWriter:
    """A ``Writer`` over a session of a database.

    Args:
        session: names in double quotes are identifiers there, and ``%s`` is a parameter.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        for row in rows:
            self._session.execute(f'INSERT INTO "{table}" ("id", "v", "pad") VALUES (%s, %s, %s)', row)

    def update(self, table: str, key: int, v: int, pad: str | None = None) -> None:
        if pad is None:
            self._session.execute(f'UPDATE "{table}" SET "v" = %s WHERE "id" = %s', [v, key])
        else:
            self._session.execute(f'UPDATE "{table}" SET "v" = %s, "pad" = %s WHERE "id" = %s', [v, pad, key])

    def delete(self, table: str, key: int) -> None:
        self._session.execute(f'DELETE FROM "{table}" WHERE "id" = %s', [key])

    def commit(self) -> None:
        self._session.commit()

    def rollback(self) -> None:
        self._session.rollback()


class SqlTables:
    """The part of a ``SourceUnderTest`` that statements do.

    Args:
        database: how sessions are opened.
        create_table: returns the statements that create a table with the suite's columns.
        create_signals: returns the statement that creates a signal table.
        begin: statements at the beginning of each writer's session.
    """

    quote = ""

    def __init__(
        self,
        database: Database,
        create_table: Callable[[str], Sequence[str]],
        create_signals: str,
        begin: Sequence[str] = (),
    ) -> None:
        self._database = database
        self._create_table = create_table
        self._create_signals = create_signals
        self._begin = begin
        self.schema = database.schema

    def create(self, *tables: str) -> None:
        self._run(*(statement for table in tables for statement in self._create_table(table)))

    def create_signal_table(self, table: str) -> None:
        self._run(self._create_signals.format(table=table))

    def signal(self, table: str, number: str, kind: str, data: str) -> None:
        with self._database.session() as session:
            session.execute(f'INSERT INTO "{table}" VALUES (%s, %s, %s)', [number, kind, data])
            session.commit()

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        with self._database.session() as session:
            for statement in self._begin:
                session.execute(statement)
            session.commit()
            yield SqlWriter(session)

    def rows(self, table: str) -> list[Row]:
        with self._database.session() as session:
            return [
                (int(key), int(v), str(pad))
                for key, v, pad in session.execute(f'SELECT "id", "v", "pad" FROM "{table}"')
            ]

    def _run(self, *statements: str) -> None:
        with self._database.session() as session:
            for statement in statements:
                session.execute(statement)
            session.commit()
