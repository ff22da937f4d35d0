"""Writes the watermarks of windows to a signal table of MySQL or MariaDB."""

from __future__ import annotations

from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.server.connection import Connection, run
from floodmark.connectors.mysql.structures.table import quote
from floodmark.errors import SourceStateError
from floodmark.snapshots.incremental.watermarks import EXACT, WRITING, Watermarks


class MysqlWatermarks(Watermarks[Connection]):
    """Writes watermarks to the signal table."""

    def __init__(self, options: BinlogOptions) -> None:
        super().__init__(options)
        database, _, table = self.table.partition(".")
        self._database, self._name = database, table
        self._sql_name = f"{quote(database)}.{quote(table)}"

    def check(self, conn: Connection) -> str:
        """Verify that the table is there; return the name of its first column for SQL.

        Raises:
            SourceStateError: it isn't, or the server is read-only.
        """
        rows = run(
            conn,
            "SELECT COLUMN_NAME, @@GLOBAL.read_only FROM information_schema.COLUMNS WHERE ORDINAL_POSITION = 1 "
            f"AND TABLE_SCHEMA = {conn.escape(self._database)} AND TABLE_NAME = {conn.escape(self._name)}",
            "looking for the signal table",
        )
        if not rows:
            raise SourceStateError(f"{self.what} does not exist.", f"Create it (see the page on signals), {EXACT}")
        column, read_only = rows[0]
        if int(read_only):
            cure = f"Use the primary, {EXACT}"
            raise SourceStateError(f"{self.what} can't be written: the server is read-only.", cure)
        return quote(str(column))

    def _insert(self, conn: Connection, name: str, kind: str, data: str) -> None:
        values = ", ".join(conn.escape(value) for value in (name, kind, data))
        self._write(conn, f"INSERT INTO {self._sql_name} VALUES ({values})")

    def _delete(self, conn: Connection, name: str) -> None:
        self._write(conn, f"DELETE FROM {self._sql_name} WHERE {self.check(conn)} = {conn.escape(name)}")

    def _write(self, conn: Connection, statement: str) -> None:
        run(conn, statement, WRITING, f"GRANT {self.rights} ON {self._sql_name} to the account, {EXACT}")
