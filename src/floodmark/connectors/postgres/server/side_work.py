"""What is done at the server beside the stream: statements that nobody waits for, and the slot's oldest transaction."""

from __future__ import annotations

import threading
import time

import psycopg
from psycopg.rows import TupleRow

from floodmark.config.postgres import PostgresOptions
from floodmark.connectors.postgres.server.catalog import literal
from floodmark.connectors.postgres.server.connection import connect_for_queries, run
from floodmark.errors import FloodmarkError
from floodmark.log import get_logger

log = get_logger(__name__)


class SideStatements:
    """Runs statements in a thread of its own, on a connection of its own; one at a time.

    Args:
        options: the source's options.
    """

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        self._conn: psycopg.Connection[TupleRow] | None = None
        self._thread: threading.Thread | None = None

    def run(self, statement: str) -> None:
        """Begin to run a statement; leave it out if the one before still runs."""
        if self._thread is not None and self._thread.is_alive():
            log.warning("heartbeat_action_is_slow", statement=statement, next="left out")
            return
        self._thread = threading.Thread(target=self._execute, args=(statement,), name="floodmark-aside", daemon=True)
        self._thread.start()

    def _execute(self, statement: str) -> None:
        try:
            if self._conn is None or self._conn.closed or self._conn.broken:
                self._conn = connect_for_queries(self._options)
            run(self._conn, statement, "the heartbeat's statement")
        except FloodmarkError as exc:
            log.warning("heartbeat_action_failed", statement=statement, error=str(exc))

    def stop(self) -> None:
        """Cancel what runs, and close the connection."""
        if self._conn is not None:
            if self._thread is not None and self._thread.is_alive():
                self._conn.cancel_safe(timeout=1.0)
                self._thread.join(1.0)
            self._conn.close()
            self._conn = None


class OldestTransaction:
    """Knows the slot's oldest transaction, asking for it at most every ``xmin.fetch.interval.ms``.

    Args:
        options: the source's options.
    """

    def __init__(self, options: PostgresOptions) -> None:
        self._slot = options.slot_name
        self._interval_s = options.xmin_fetch_interval_ms / 1000
        self._known: int | None = None
        self._next = 0.0

    @property
    def wanted(self) -> bool:
        """Whether it is time to ask."""
        return bool(self._interval_s) and time.monotonic() >= self._next

    def fetch(self, conn: psycopg.Connection[TupleRow]) -> None:
        """Ask for it."""
        self._next = time.monotonic() + self._interval_s
        rows = run(
            conn,
            f"SELECT catalog_xmin::text FROM pg_replication_slots WHERE slot_name = {literal(self._slot)}",
            "the slot's oldest transaction",
        )
        self._known = int(rows[0][0]) if rows and rows[0][0] is not None else None

    @property
    def known(self) -> int | None:
        """What was last heard."""
        return self._known
