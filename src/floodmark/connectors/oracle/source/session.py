"""The ordinary connection of a source, and the database that it leads to."""

from __future__ import annotations

from floodmark.connectors.oracle.checks.obstacles import obstacles, standby
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.connection import Connection, close, connect
from floodmark.connectors.oracle.server.database import NO_PRIMARY_CURE, Database, read_database
from floodmark.errors import ConnectError, NotReadyError, SourceStateError


class OracleSession:
    """Connections that are opened at their first use, and again when they are lost.

    Args:
        options: the source's options.

    Attributes:
        identity: of the database that the log is read of; empty: none is known yet.
    """

    def __init__(self, options: OracleOptions) -> None:
        self._options = options
        self._conn: Connection | None = None
        self.identity = ""

    def ordinary(self) -> Connection:
        """Return the connection to the database that has the tables; replace it if it is lost.

        Raises:
            ConnectError: it leads to another database than the one that the log is of.
        """
        if self._conn is not None and not self._conn.is_healthy():
            # Whoever has found out has got an error, and tries again.
            close(self._conn)
            self._conn = None
        if self._conn is None:
            conn = connect(self._options)
            try:
                self.agree(read_database(conn))
            except BaseException:
                close(conn)
                raise
            self._conn = conn
        return self._conn

    def mining(self) -> Connection:
        """Open a connection to where the log is mined, after checking that it has everything that is needed.

        Raises:
            SourceStateError: the database doesn't log what is needed.
            NotReadyError: an address leads to a copy of the database that isn't meant, as after a switchover.
        """
        conn = connect(self._options, to_mine=True)
        try:
            for finding in standby(conn, self._options):
                if finding.status == "error":
                    raise NotReadyError(finding.finding, finding.fix)
            for finding in obstacles(conn):
                raise SourceStateError(finding.finding, finding.fix)
        except BaseException:
            close(conn)
            raise
        return conn

    def database(self) -> Database:
        """Return the database that the ordinary connection leads to."""
        return read_database(self.ordinary())

    def close(self) -> None:
        """Close the ordinary connection."""
        if self._conn is not None:
            close(self._conn)
            self._conn = None

    def agree(self, found: Database) -> None:
        """Verify that a connection leads to the database that the log is of.

        Raises:
            ConnectError: it doesn't.
        """
        if found.is_standby:
            raise NotReadyError(
                f"The address leads to a standby by now: {found.name} ({found.role}).",
                NO_PRIMARY_CURE,
            )
        if self.identity and found.identity != self.identity:
            raise ConnectError(f"The address leads to another database by now: {found.name} ({found.identity}).")
