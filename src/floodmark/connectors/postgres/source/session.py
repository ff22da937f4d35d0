"""The connections of a source to its server, and the proof that they lead to the log that is read."""

from __future__ import annotations

import psycopg
from psycopg.rows import TupleRow

from floodmark.connectors.postgres.continuity.check import Continuity
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.connection import (
    connect,
    connect_for_queries,
    limit_statements,
    limit_waits,
    run,
)
from floodmark.connectors.postgres.snapshot.read_point import SLOT_CURE
from floodmark.errors import ConnectError
from floodmark.json_data import Json

Conn = psycopg.Connection[TupleRow]


class PostgresSession:
    """Connections that are opened at their first use, and again when they are lost.

    Args:
        options: the source's options.

    Attributes:
        continuity: verifies that a connection leads to the log that is read.
        streams: whether the log is streamed, so that statements have a limit on their time.
    """

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        self.continuity = Continuity(options)
        self.streams = False
        self._conn: Conn | None = None
        self._capture_conn: Conn | None = None
        self._limited = False

    def system(self) -> str:
        """Return the server's system identifier."""
        conn = connect(self._options, replication=True)
        try:
            system = str(run(conn, "IDENTIFY_SYSTEM", "the server's identity", SLOT_CURE)[0][0])
        finally:
            conn.close()
        self.continuity.identified(system)
        return system

    @property
    def open_connection(self) -> Conn | None:
        """The ordinary connection, if there is one."""
        return self._conn

    def ordinary(self) -> Conn:
        """Return the ordinary connection."""
        if self._conn is None or self._conn.closed or self._conn.broken:
            self._conn = self._connect()
            limit_waits(self._conn, self._options)
            self._limited = False
        if self.streams and not self._limited:
            limit_ms = self._options.snapshot_statement_timeout_ms
            limit_statements(self._conn, min(self._options.query_timeout_ms or limit_ms, limit_ms))
            self._limited = True
        return self._conn

    def catalog(self) -> Conn:
        """Return the capture thread's own connection for catalog look-ups."""
        if self._capture_conn is None or self._capture_conn.closed or self._capture_conn.broken:
            self._capture_conn = self._connect()
        return self._capture_conn

    def prove_log(self, position: str | None, bookmark: dict[str, Json] | None = None) -> None:
        """Verify that the server has the log that a checkpoint's position belongs to, and is not a standby."""
        if position is not None:
            self.continuity.resume(position, bookmark)
        conn = connect(self._options, replication=True)
        try:
            self.continuity.prove(conn)
        finally:
            conn.close()

    def close(self) -> None:
        """Close the connections."""
        for conn in (self._conn, self._capture_conn):
            if conn is not None:
                conn.close()
        self._conn = self._capture_conn = None

    def _connect(self) -> Conn:
        """Open an ordinary connection to the server whose log is read: an address may lead to another one by now."""
        conn = connect_for_queries(self._options)
        try:
            if not self.continuity.leads_here(conn):
                self.prove_log(None)
                if not self.continuity.leads_here(conn):
                    raise ConnectError("The connections to PostgreSQL lead to different servers.")
        except BaseException:
            conn.close()
            raise
        return conn
