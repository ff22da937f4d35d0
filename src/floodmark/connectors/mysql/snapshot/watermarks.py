"""Marks of windows in the signal table, as Debezium writes them."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

from floodmark.config.mysql import BinlogOptions
from floodmark.connectors.mysql.server.connection import Connection, run
from floodmark.connectors.mysql.snapshot.key_ranges import quote
from floodmark.errors import SourceStateError
from floodmark.snapshot.signals import WINDOW_CLOSE, WINDOW_OPEN

DOING = "writing a mark to the signal table"
EXACT = "or set incremental.snapshot.read.points=exact, which writes nothing"


@dataclass(frozen=True)
class Mark:
    """An open window's mark.

    Attributes:
        name: the window's id, of which the marks' ids are made.
        at: when it was written, as text.
    """

    name: str
    at: str


class Marks:
    """Writes marks to the signal table."""

    def __init__(self, options: BinlogOptions) -> None:
        self._name = options.signal_data_collection[0]
        database, _, table = self._name.partition(".")
        self._database, self._table = database, table
        self._sql_name = f"{quote(database)}.{quote(table)}"
        self._deletes = options.incremental_snapshot_watermarking_strategy == "insert_delete"

    def check(self, conn: Connection) -> str:
        """Prove that the table is there; return the name of its first column for SQL.

        Raises:
            SourceStateError: it isn't, or nobody may write on the server.
        """
        what = f"The signal table '{self._name}', which incremental.snapshot.read.points=watermarks needs,"
        rows = run(
            conn,
            "SELECT COLUMN_NAME, @@GLOBAL.read_only FROM information_schema.COLUMNS WHERE ORDINAL_POSITION = 1 "
            f"AND TABLE_SCHEMA = {conn.escape(self._database)} AND TABLE_NAME = {conn.escape(self._table)}",
            "looking for the signal table",
        )
        if not rows:
            raise SourceStateError(f"{what} does not exist.", f"Create it (see the page on signals), {EXACT}.")
        column, read_only = rows[0]
        if int(read_only):
            raise SourceStateError(f"{what} can't be written: the server is read-only.", f"Use the primary, {EXACT}.")
        return quote(str(column))

    def open(self, conn: Connection) -> Mark:
        """Write the mark that opens a window."""
        mark = Mark(str(uuid.uuid4()), _now())
        self._insert(conn, f"{mark.name}-open", WINDOW_OPEN, f'{{"openWindowTimestamp": "{mark.at}"}}')
        return mark

    def close(self, conn: Connection, mark: Mark) -> None:
        """Write the mark that closes a window, or remove the one that opened it."""
        if self._deletes:
            name = conn.escape(f"{mark.name}-open")
            self._write(conn, f"DELETE FROM {self._sql_name} WHERE {self.check(conn)} = {name}")
        else:
            text = f'{{"openWindowTimestamp": "{mark.at}", "closeWindowTimestamp": "{_now()}"}}'
            self._insert(conn, f"{mark.name}-close", WINDOW_CLOSE, text)

    def _insert(self, conn: Connection, name: str, kind: str, data: str) -> None:
        # Whatever they are called, the first three columns are those of a signal.
        values = ", ".join(conn.escape(value) for value in (name, kind, data))
        self._write(conn, f"INSERT INTO {self._sql_name} VALUES ({values})")

    def _write(self, conn: Connection, statement: str) -> None:
        rights = "INSERT, SELECT, DELETE" if self._deletes else "INSERT"
        run(conn, statement, DOING, f"GRANT {rights} ON {self._sql_name} to the account, {EXACT}.")


def _now() -> str:
    """Return the time as Java's ``Instant`` writes it."""
    seconds, nanos = divmod(time.time_ns(), 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanos:09d}Z"
