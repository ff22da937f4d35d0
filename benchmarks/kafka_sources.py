"""The servers whose table is loaded into Kafka, and whose changes are followed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.conformance.debezium.debezium import mariadb_classes
from tests.support.mysql import Flavor, MysqlServer

from benchmarks import engine, mysql, mysql_workload, reference
from benchmarks.common import Connection, database
from benchmarks.mirror_chain import TRANSACTION, update
from benchmarks.mysql_workload import VERSIONS, Watch
from benchmarks.workload import create_tables, fill, slot_active
from floodmark.demo.embedded import EmbeddedPostgres

Seen = Callable[[], bool]
"""Returns whether the server sees something."""


class KafkaSource(Protocol):
    """A server with a table, which has its rows from the beginning.

    Attributes:
        version: the server's name and version.
        table: the table's name in topics.
        classes: what Debezium's connector needs beside the wheel's classes.
    """

    version: str
    table: str
    classes: Sequence[Path]

    def options(self, name: str, state: Path) -> dict[str, str]:
        """Return the options of a Floodmark source of this name, which reads the table at first."""

    def debezium(self, name: str, folder: Path) -> dict[str, str]:
        """Return the options of Debezium's connector; it may write files to the folder."""

    def reads(self) -> Seen:
        """Return what sees that a query which starts after this call reads the table."""

    def streams(self, name: str) -> Seen:
        """Return what sees that the one of this name, if it starts after this call, reads the log."""

    def update(self, rows: int, updates: int) -> int:
        """Update rows at random, some in a transaction; return how many were updated."""


class _Postgres:
    table = "public.t"
    classes: Sequence[Path] = ()

    def __init__(self, server: EmbeddedPostgres, connection: Connection, version: int) -> None:
        self.version = f"PostgreSQL {version}"
        self._server = server
        self._connection = connection

    def options(self, name: str, state: Path) -> dict[str, str]:
        return engine.source_options(self._server, self.table, name, state, "initial")

    def debezium(self, name: str, folder: Path) -> dict[str, str]:  # noqa: ARG002
        return reference.debezium_options(self._server, self.table, name)

    def reads(self) -> Seen:
        return lambda: engine.copies(self._connection)

    def streams(self, name: str) -> Seen:
        return lambda: slot_active(self._connection, name)

    def update(self, rows: int, updates: int) -> int:
        return update(self._connection, rows, updates)


class _Mysql:
    table = mysql_workload.TABLE

    def __init__(self, server: MysqlServer) -> None:
        self.version = VERSIONS[server.flavor]
        self.classes: Sequence[Path] = mariadb_classes() if server.flavor == "mariadb" else ()
        self._server = server

    def options(self, name: str, state: Path) -> dict[str, str]:  # noqa: ARG002
        return mysql.source_options(self._server, state) | {"snapshot.mode": "initial"}

    def debezium(self, name: str, folder: Path) -> dict[str, str]:  # noqa: ARG002
        # The connector is stopped in between.
        return mysql.debezium_options(self._server) | mysql.history_in(folder)

    def reads(self) -> Seen:
        return Watch(self._server).reads

    def streams(self, name: str) -> Seen:  # noqa: ARG002
        return Watch(self._server).streams

    def update(self, rows: int, updates: int) -> int:
        return mysql_workload.update(self._server, rows, updates, TRANSACTION)


@contextmanager
def postgres_source(rows: int, version: int) -> Iterator[KafkaSource]:
    """Start PostgreSQL with a table of so many rows."""
    with database(version) as (server, connection):
        create_tables(connection, ["t"])
        fill(connection, "t", 1, rows)
        connection.execute("VACUUM ANALYZE t")
        yield _Postgres(server, connection, version)


@contextmanager
def mysql_source(rows: int, flavor: Flavor) -> Iterator[KafkaSource]:
    """Start MySQL or MariaDB with a table of so many rows."""
    with mysql_workload.database(flavor) as server:
        mysql_workload.fill(server, rows)
        yield _Mysql(server)
