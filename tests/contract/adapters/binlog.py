"""MySQL and MariaDB for the contract suite."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pymysql

from floodmark.demo.embedded import free_port
from tests.contract.sql_source import SqlTables
from tests.contract.under_test import Capabilities, SourceUnderTest
from tests.support.databases import Mysql
from tests.support.mysql import Flavor, MysqlServer

SERVER_IDS = itertools.count(700_000)


class BinlogUnderTest:
    """MySQL or MariaDB."""

    capabilities = Capabilities(refuses_no_tables=False)
    required: tuple[str, ...] = ("database.hostname", "database.user")
    kept: tuple[str, ...] = ("schema-history",)
    is_further_log = False

    def __init__(self, flavor: Flavor) -> None:
        self.name: str = flavor
        self._flavor = flavor

    @contextmanager
    def open(self, fixture: Callable[[str], Any]) -> Iterator[SourceUnderTest]:
        source = BinlogSource(fixture(self._flavor), f"c{uuid.uuid4().hex[:12]}")
        try:
            yield source
        finally:
            source.drop()

    @contextmanager
    def open_another(self, fixture: Callable[[str], Any], like: SourceUnderTest) -> Iterator[SourceUnderTest]:
        with MysqlServer(self._flavor) as server:
            yield BinlogSource(server, like.schema)


class BinlogSource(SqlTables):
    """A database on a server."""

    lost_log = "binlog file"

    def __init__(self, server: MysqlServer, database: str) -> None:
        self._server = server
        server.execute(f"CREATE DATABASE {database}")
        super().__init__(
            Mysql(server, database),
            lambda table: (f'CREATE TABLE "{table}" (id integer PRIMARY KEY, v bigint NOT NULL, pad mediumtext)',),
            'CREATE TABLE "{table}" (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))',
            # Or a session would lock the gaps between its keys, too.
            ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",),
        )
        # The state directory has a folder for each server id; by default that depends on where it is.
        self.options = {
            **server.options(),
            "database.include.list": database,
            "database.server.id": str(next(SERVER_IDS)),
        }

    def create_signal_table(self, table: str) -> None:
        super().create_signal_table(table)
        # For the marks of windows.
        account = f"'{self.options['database.user']}'@'%'"
        self._server.execute(f"GRANT INSERT, DELETE ON {self.schema}.{table} TO {account}")

    def lose_log(self) -> None:
        self._server.purge_old_logs()

    def away(self) -> dict[str, str]:
        return {"database.port": str(free_port())}

    def refused_login(self, secret: str) -> dict[str, str]:
        return {"database.password": secret}

    def created(self) -> list[str]:
        return []

    def connections(self) -> int:
        return len(self._sessions())

    def cut_connections(self) -> None:
        for number in self._sessions():
            with suppress(pymysql.err.OperationalError):  # It has ended by itself.
                self._server.execute(f"KILL {number}")

    def held_log(self) -> str:
        raise NotImplementedError("The server keeps its log as it is configured to.")

    def drop(self) -> None:
        """Drop the database."""
        self._server.execute(f"DROP DATABASE {self.schema}")

    def _sessions(self) -> list[int]:
        with self._server.connect() as session, session.cursor() as cursor:
            statement = "SELECT id FROM information_schema.processlist WHERE user = %s"
            cursor.execute(statement, (self.options["database.user"],))
            return [int(number) for (number,) in cursor.fetchall()]
