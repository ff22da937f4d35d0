"""A real Oracle server for the contract suite: ``make oracle DSN=host:1521/ORCLCDB PDB=ORCLPDB1`` (see docs/oracle.md).

Each test has a schema of its own. What statements can't do, such as losing logs, the suite leaves out.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import oracledb

from floodmark.connectors.oracle.server.connection import PROGRAM
from floodmark.demo.embedded import free_port
from tests.contract.sql_source import SqlWriter
from tests.contract.under_test import Capabilities, Row, SourceUnderTest, Writer
from tests.support.patience import within

VARIABLE = "FLOODMARK_ORACLE_"
"""What the names of the variables begin with that say where the server is."""


@dataclass(frozen=True)
class Server:
    """A server whose capturing account is prepared as docs/oracle.md says.

    Attributes:
        dsn: where it is: ``host:port/service`` of the root container.
        pluggable: the pluggable database; empty: there are no containers.
        account: who captures.
        password: their password.
        admin: who makes schemas and ends sessions.
        admin_password: their password.
    """

    dsn: str
    pluggable: str
    account: str
    password: str
    admin: str
    admin_password: str


def named_server() -> Server | None:
    """Return the server that the environment names; None: it names none.

    Raises:
        KeyError: it lacks a variable.
    """
    if f"{VARIABLE}DSN" not in os.environ:
        return None
    names = ("DSN", "PDB", "ACCOUNT", "PASSWORD", "ADMIN", "ADMIN_PASSWORD")
    return Server(*(os.environ[VARIABLE + name] for name in names))


class OracleServerUnderTest:
    """A server with one of the connector's adapters.

    Args:
        server: the server.
        adapter: ``database.connection.adapter``.
    """

    capabilities = Capabilities(refuses_no_tables=False, log_rests=False, loses_log=False)
    required: tuple[str, ...] = ("database.user", "database.dbname")
    kept: tuple[str, ...] = ("schema-history",)
    is_further_log = False

    def __init__(self, server: Server, adapter: str) -> None:
        self.name = f"oracle-server-{adapter}"
        self._server = server
        self._adapter = adapter

    @contextmanager
    def open(self, fixture: Callable[[str], Any]) -> Iterator[SourceUnderTest]:
        del fixture  # The server is there.
        source = OracleServerSource(self._server, self._adapter)
        source.run(
            f'CREATE USER {source.schema} IDENTIFIED BY "{secrets.token_hex(8)}" QUOTA UNLIMITED ON USERS',
        )
        try:
            yield source
        finally:
            source.run(f"DROP USER {source.schema} CASCADE")

    @contextmanager
    def open_another(self, fixture: Callable[[str], Any], like: SourceUnderTest) -> Iterator[SourceUnderTest]:
        raise NotImplementedError("There is one server only.")


class _Session:
    """A session of the administrator's in the schema; ``%s`` is a parameter."""

    def __init__(self, conn: oracledb.Connection) -> None:
        self._conn = conn

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        parts = statement.split("%s")
        text = "".join(f"{part}:{number}" for number, part in enumerate(parts[:-1], 1)) + parts[-1]
        with self._conn.cursor() as cursor:
            cursor.execute(text, list(values))
            return [tuple(row) for row in cursor] if cursor.description else []

    def commit(self) -> None:
        self._conn.commit()

    def rollback(self) -> None:
        self._conn.rollback()


class OracleServerSource:
    """A schema on the server."""

    lost_log = "oldest log"
    quote = '"'

    def __init__(self, server: Server, adapter: str) -> None:
        self._server = server
        self.schema = f"FLOODMARK_{secrets.token_hex(4).upper()}"
        self.options = {
            "connector": "oracle",
            "database.connection.adapter": adapter,
            "database.url": f"jdbc:oracle:thin:@{server.dsn}",
            "database.user": server.account,
            "database.password": server.password,
            "database.dbname": server.dsn.rpartition("/")[2],
            **({"database.pdb.name": server.pluggable} if server.pluggable else {}),
            "log.mining.poll.interval.ms": "20",
        }

    @contextmanager
    def _session(self) -> Iterator[_Session]:
        server = self._server
        with oracledb.connect(user=server.admin, password=server.admin_password, dsn=server.dsn) as conn:
            session = _Session(conn)
            if server.pluggable:
                session.execute(f"ALTER SESSION SET CONTAINER = {server.pluggable}")
            yield session

    @contextmanager
    def _in_schema(self) -> Iterator[_Session]:
        with self._session() as session:
            session.execute(f"ALTER SESSION SET CURRENT_SCHEMA = {self.schema}")
            yield session

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement of the administrator's, and commit it."""
        with self._session() as session:
            found = session.execute(statement)
            session.commit()
            return found

    def create(self, *tables: str) -> None:
        for table in tables:
            self._create(table, '"id" NUMBER(9,0) NOT NULL PRIMARY KEY, "v" NUMBER(18,0), "pad" VARCHAR2(4000)')

    def create_signal_table(self, table: str) -> None:
        self._create(
            table, '"id" VARCHAR2(42) NOT NULL PRIMARY KEY, "type" VARCHAR2(32) NOT NULL, "data" VARCHAR2(2048)'
        )

    def _create(self, table: str, columns: str) -> None:
        with self._in_schema() as session:
            session.execute(f'CREATE TABLE "{table}" ({columns})')
            session.execute(f'ALTER TABLE "{table}" ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS')

    def signal(self, table: str, number: str, kind: str, data: str) -> None:
        with self._in_schema() as session:
            session.execute(f'INSERT INTO "{table}" ("id", "type", "data") VALUES (%s, %s, %s)', [number, kind, data])
            session.commit()

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        with self._in_schema() as session:
            yield SqlWriter(session)

    def rows(self, table: str) -> list[Row]:
        with self._in_schema() as session:
            found = session.execute(f'SELECT "id", "v", "pad" FROM "{table}"')
        return [(int(key), int(v), str(pad)) for key, v, pad in found]

    def lose_log(self) -> None:
        raise NotImplementedError("No statement deletes logs.")

    def away(self) -> dict[str, str]:
        return {"database.url": f"jdbc:oracle:thin:@127.0.0.1:{free_port()}/NOWHERE"}

    def refused_login(self, secret: str) -> dict[str, str]:
        return {"database.password": secret}

    def created(self) -> list[str]:
        """Return nothing: the table that makes the server write its log is one for all tests."""
        return []

    def connections(self) -> int:
        deadline = time.monotonic() + within(2)
        # The server sees the end of a connection a moment after the client has closed it.
        while (found := len(self._sessions())) and time.monotonic() < deadline:
            time.sleep(0.01)
        return found

    def cut_connections(self) -> None:
        for number, serial in self._sessions():
            self.run(f"ALTER SYSTEM KILL SESSION '{number},{serial}' IMMEDIATE")

    def _sessions(self) -> list[tuple[Any, ...]]:
        return self.run(f"SELECT SID, SERIAL# FROM V$SESSION WHERE PROGRAM = '{PROGRAM}'")

    def held_log(self) -> str:
        raise NotImplementedError("The server keeps its logs as its administrators say.")
