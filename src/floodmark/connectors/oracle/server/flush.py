"""Makes the server write its log: a change that is only in its memory is in no log that LogMiner reads.

The log writer writes at every commit, so a table of our own is changed and committed, as Debezium does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from floodmark.connectors.oracle.server.connection import Connection, close, run, value
from floodmark.errors import LockTimeoutError
from floodmark.logger import get_logger

log = get_logger(__name__)

_CURE = (
    "GRANT CREATE TABLE TO the account, and give it a quota in its default tablespace; or set "
    "log.mining.read.only=true, with which changes may come later."
)


class FlushTables:
    """The table as each instance of a cluster writes to it: an instance writes only its own log.

    Args:
        conn: a connection to where the log is mined.
        name: of the table.
        others: open connections to the other instances.
    """

    def __init__(self, conn: Connection, name: str, others: Sequence[Callable[[], Connection]] = ()) -> None:
        self._tables = [FlushTable(conn, name)]
        self._name = name
        self._others = others
        self._connections: list[Connection] = []

    def flush(self, scn: int) -> None:
        """Let all instances write their logs; see ``FlushTable.flush``."""
        if self._others and not self._connections:
            self._connections = [connecting() for connecting in self._others]
            self._tables = [FlushTable(conn, self._name) for conn in self._connections]
        for table in self._tables:
            table.flush(scn)

    def close(self) -> None:
        """Close the connections to the other instances."""
        for conn in self._connections:
            close(conn)
        self._connections = []


class FlushTable:
    """The table.

    Args:
        conn: a connection to the database where logs are mined.
        name: of the table, checked with the options; it is the account's own.
    """

    def __init__(self, conn: Connection, name: str) -> None:
        self._conn = conn
        self._name = name
        self._is_there = False

    def flush(self, scn: int) -> None:
        """Change the table, and commit that.

        Args:
            scn: the current change number, which is stored.
        """
        if not self._is_there:
            self._create()
        try:
            run(self._conn, f"UPDATE {self._name} SET LAST_SCN = {scn}", f"writing to {self._name}", _CURE)
        except LockTimeoutError:
            # Another query writes it now, and commits.
            log.info("flush_table_is_locked", table=self._name)
        run(self._conn, "COMMIT", f"writing to {self._name}")

    def _create(self) -> None:
        name = self._name
        found = value(
            self._conn,
            "SELECT COUNT(*) FROM USER_TABLES WHERE TABLE_NAME = :1",
            f"looking for the table {name}",
            binds=[name.upper()],
        )
        if not found:
            run(self._conn, f"CREATE TABLE {name} (LAST_SCN NUMBER(19,0))", f"creating the table {name}", _CURE)
        if not value(self._conn, f"SELECT COUNT(*) FROM {name}", f"reading {name}"):
            run(self._conn, f"INSERT INTO {name} VALUES (0)", f"writing to {name}", _CURE)
            run(self._conn, "COMMIT", f"writing to {name}")
        self._is_there = True
