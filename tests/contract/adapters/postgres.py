"""PostgreSQL for the contract suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from floodmark.connectors.postgres.server.connection import APPLICATION_NAME
from floodmark.demo.embedded import EmbeddedPostgres, free_port
from tests.conftest import drop, drop_slots, make_source
from tests.contract.sql_source import SqlTables
from tests.contract.under_test import Capabilities, SourceUnderTest
from tests.support.clusters import ask

UNUSED = Path("unused")
"""Each query has a state directory of its own."""


class PostgresUnderTest:
    """A version of PostgreSQL; databases of another version stand for unrelated servers.

    Args:
        version: 16 or 18.
    """

    capabilities = Capabilities(holds_log=True)
    required: tuple[str, ...] = ("database.hostname", "database.user", "database.dbname")
    kept: tuple[str, ...] = ()
    is_further_log = False

    def __init__(self, version: int) -> None:
        self.name = f"postgres-{version}"
        self._server = f"pg{version}"
        self._another = "pg16" if version == 18 else "pg18"

    @contextmanager
    def open(self, fixture: Callable[[str], Any]) -> Iterator[SourceUnderTest]:
        source = PostgresSource(fixture(self._server))
        try:
            yield source
        finally:
            drop(source.source)

    @contextmanager
    def open_another(self, fixture: Callable[[str], Any], like: SourceUnderTest) -> Iterator[SourceUnderTest]:
        assert isinstance(like, PostgresSource)
        source = PostgresSource(fixture(self._another))
        source.options["slot.name"] = like.options["slot.name"]
        try:
            yield source
        finally:
            drop(source.source)


class PostgresSource(SqlTables):
    """A database on a server, and the slot that a query has there."""

    lost_log = "replication slot"

    def __init__(self, server: EmbeddedPostgres) -> None:
        self.source = make_source(server, UNUSED)
        super().__init__(
            self.source.database,
            lambda table: (
                f'CREATE TABLE "{table}" (id integer PRIMARY KEY, v bigint NOT NULL, pad text)',
                # Updates that leave a large value as it is have no value for it in the log.
                f'ALTER TABLE "{table}" ALTER pad SET STORAGE EXTERNAL',
            ),
            'CREATE TABLE "{table}" (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))',
        )
        self.options = self.source.options

    def lose_log(self) -> None:
        drop_slots(self.source)

    def away(self) -> dict[str, str]:
        return {"database.port": str(free_port())}

    def refused_login(self, secret: str) -> dict[str, str]:
        return {"database.user": "no_such_role", "database.password": secret}

    def created(self) -> list[str]:
        slots = f"SELECT slot_name FROM pg_replication_slots WHERE database = '{self.source.dbname}'"
        names = [*self._ask(slots), *self._ask("SELECT pubname FROM pg_publication")]
        return [str(name) for (name,) in names]

    def connections(self) -> int:
        return len(self._ask(f"SELECT pid FROM pg_stat_activity WHERE {self._of_queries}"))

    def cut_connections(self) -> None:
        self._ask(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {self._of_queries}")

    def held_log(self) -> str:
        name = self.options["slot.name"]
        found = self._ask(f"SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = '{name}'")
        return f"{int(found[0][0]):020d}"

    @property
    def _of_queries(self) -> str:
        return f"datname = '{self.source.dbname}' AND application_name = '{APPLICATION_NAME}'"

    def _ask(self, statement: str) -> list[tuple[Any, ...]]:
        return ask(self.source.server, statement, self.source.dbname)
