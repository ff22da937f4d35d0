"""A read point: a view of the tables at an exact position of the log.

A view belongs to the connection that opened it, so a read point holds several connections whose views are the same.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from floodmark.connectors.mysql.ddl.schema import Schema, TableId
from floodmark.connectors.mysql.server.binlogs import LogEnd
from floodmark.connectors.mysql.server.connection import Connection, close, run
from floodmark.connectors.mysql.snapshot.definitions import Announced
from floodmark.connectors.mysql.snapshot.token import ReadPointToken
from floodmark.connectors.mysql.structures.table import Table
from floodmark.errors import ConnectError, FloodmarkError
from floodmark.json_data import Json
from floodmark.snapshots.incremental.watermarks import Mark

DOING = "opening a view of the tables"


class MysqlReadPoint:
    """A ``ReadPoint`` and a ``Window``.

    Args:
        views: connections whose views show the same.
        lock: the connection that holds a lock as long as the read point is held, if any.
        schema: the structures of all tables, as the views show them; None if they weren't read, as for a window.
        place: the views' place in the log, or that of a window's end.
        position: the same as a position.
        low: position at which a window begins; None: ``position``.
        announced: what is announced of the tables, if anything.
        moved: returns whether the log has moved to another server since a position: the views have no place there.
        brief: adds a time limit to a query, since the stream waits for it.

    Attributes:
        mark: the watermark in the signal table that opened the window, if any.
    """

    def __init__(
        self,
        views: list[Connection],
        lock: Connection | None,
        schema: Schema | None,
        place: LogEnd,
        position: str,
        low: str | None = None,
        announced: Announced | None = None,
        moved: Callable[[str], bool] = lambda _: False,
        brief: Callable[[str], str] = str,
    ) -> None:
        self.position = position
        self.low = position if low is None else low
        self._moved = moved
        self._schema = schema
        self._brief = brief
        self.place = place
        self.announced = announced
        self.mark: Mark | None = None
        self._closed = False
        # In whole seconds, as in Debezium.
        micros = int(time.time()) * 1_000_000
        self._token = ReadPointToken(uuid.uuid4().hex, place.name, place.offset, micros, place.gtids)
        self._views = views
        self._lock = lock
        self._lost = False
        self._idle: queue.SimpleQueue[Connection | None] = queue.SimpleQueue()
        for view in views:
            self._idle.put(view)

    @property
    def schema(self) -> Schema:
        """The structures of all tables, as the views show them."""
        assert self._schema is not None
        return self._schema

    @property
    def token(self) -> dict[str, Json]:
        """What tasks need to know of it: a ``ReadPointToken`` as JSON data."""
        return self._token.to_json()

    def table(self, at: TableId, find_table: Callable[[TableId], Table | None]) -> Table | None:
        """Return a table as the views show it.

        Args:
            at: its name.
            find_table: returns the table as it is now; a view that was opened before doesn't show one that was
                altered since.
        """
        return find_table(at) if self._schema is None else self._schema.tables.get(at)

    def end_view(self) -> None:
        """Release the view after everything needed has been read from it; it still counts as alive."""
        self.release()
        self._closed = True

    def close_at(self, place: LogEnd, position: str) -> None:
        """Set where a window ends."""
        self.place, self.position = place, position
        self._token = replace(self._token, file=place.name, offset=place.offset)

    @contextmanager
    def view(self) -> Iterator[Connection]:
        """Lend a connection that sees the view, waiting until one is free.

        Afterwards it holds no locks of tables, which would block statements that alter them; on MariaDB only if the
        account has BINLOG ADMIN.

        Raises:
            ConnectError: the read point has been released, or is lost.
        """
        conn = self._idle.get()
        if conn is None or self._lost:
            # Let the next thread that waits fail, too.
            self._idle.put(None)
            raise ConnectError("The view of the tables is lost.")
        try:
            # Rolling back to a savepoint releases the locks of tables, but keeps the view.
            run(conn, "SAVEPOINT floodmark", DOING)
            try:
                yield conn
            finally:
                if conn.open:
                    run(conn, "ROLLBACK TO SAVEPOINT floodmark", DOING)
        finally:
            if conn.open:
                self._idle.put(conn)
            else:
                self._lost = True
                self._idle.put(None)

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query that sees the view."""
        with self.view() as conn:
            return run(conn, self._brief(statement), "looking for the bounds of a table's chunks")

    def alive(self) -> bool:
        """Return whether it can still be read from, as far as is known without waiting for its readers."""
        if self._closed:
            return True
        if self._lost or self._moved(self.position) or not all(view.open for view in self._views):
            return False
        with contextlib.suppress(queue.Empty):
            conn = self._idle.get_nowait()
            try:
                if conn is not None:
                    run(conn, "SELECT 1", "checking a view of the tables")
            except FloodmarkError:
                self._lost = True
            finally:
                self._idle.put(conn)
        return not self._lost

    def release(self) -> None:
        """Close the connections; threads that read get a ``ConnectError``."""
        self._lost = True
        for conn in (*self._views, *([self._lock] if self._lock is not None else [])):
            with contextlib.suppress(OSError, AttributeError):
                # Closing alone would not wake a thread that waits for the socket.
                conn._sock.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]
            close(conn)
        self._idle.put(None)
