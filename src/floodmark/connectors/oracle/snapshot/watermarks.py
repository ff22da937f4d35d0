"""Writes the watermarks of windows to a signal table of Oracle's."""

from __future__ import annotations

from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.connection import Connection, run, value
from floodmark.connectors.oracle.sql import constant, quoted
from floodmark.errors import SourceStateError
from floodmark.snapshots.incremental.watermarks import EXACT, WRITING, Watermarks

_FIRST_COLUMN = "SELECT COLUMN_NAME FROM ALL_TAB_COLS WHERE OWNER = :1 AND TABLE_NAME = :2 AND COLUMN_ID = 1"
_WRITABLE = "READ WRITE"


class OracleWatermarks(Watermarks[Connection]):
    """Writes watermarks to the signal table; each is committed at once."""

    def __init__(self, options: OracleOptions) -> None:
        super().__init__(options)
        # The option may name the database, too.
        self._owner, self._name = self.table.split(".")[-2:]
        self._sql_name = f"{quoted(self._owner)}.{quoted(self._name)}"

    def check(self, conn: Connection) -> str:
        """Verify that the table is there; return the name of its first column for SQL.

        Raises:
            SourceStateError: it isn't, or the database is open for reading only.
        """
        binds = [self._owner, self._name]
        rows = run(conn, _FIRST_COLUMN, "looking for the signal table", binds=binds)
        if not rows:
            raise SourceStateError(f"{self.what} does not exist.", f"Create it (see the page on signals), {EXACT}")
        mode = value(conn, "SELECT OPEN_MODE FROM V$DATABASE", "reading V$DATABASE")
        if mode != _WRITABLE:
            raise SourceStateError(
                f"{self.what} can't be written: the database is {mode}.", f"Use the primary, {EXACT}"
            )
        return quoted(str(rows[0][0]))

    def _insert(self, conn: Connection, name: str, kind: str, data: str) -> None:
        values = ", ".join(constant(text) for text in (name, kind, data))
        self._write(conn, f"INSERT INTO {self._sql_name} VALUES ({values})")

    def _delete(self, conn: Connection, name: str) -> None:
        self._write(conn, f"DELETE FROM {self._sql_name} WHERE {self.check(conn)} = {constant(name)}")

    def _write(self, conn: Connection, statement: str) -> None:
        run(conn, statement, WRITING, f"GRANT {self.rights} ON {self._sql_name} TO the account, {EXACT}")
        run(conn, "COMMIT", WRITING)
