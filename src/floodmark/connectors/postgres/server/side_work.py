"""Runs statements beside the stream, and reads the slot's oldest transaction."""

from __future__ import annotations

import time

import psycopg
from psycopg.rows import TupleRow

from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import literal
from floodmark.connectors.postgres.server.connection import connect_for_queries, run, run_own

ONE_CURE = "It must be one statement: put several into a function, or into DO."


class PostgresSideSession:
    """A ``SideSession``.

    Args:
        options: the source's options.
    """

    def __init__(self, options: PostgresOptions) -> None:
        self._conn = connect_for_queries(options)
        # Only reads of tables need row_security=off; a heartbeat may write to a table with policies.
        run(self._conn, "SET row_security = on", "the session's row security")

    def usable(self) -> bool:
        """Return whether statements can still be run on it."""
        return not self._conn.closed and not self._conn.broken

    def run(self, statement: str) -> None:
        """Run a statement."""
        run_own(self._conn, statement, "the statement of heartbeat.action.query", ONE_CURE)

    def cancel(self) -> None:
        """End the statement that another thread runs."""
        self._conn.cancel_safe(timeout=1.0)

    def close(self) -> None:
        """Close the connection."""
        self._conn.close()


class OldestTransaction:
    """Reads the slot's oldest transaction, at most every ``xmin.fetch.interval.ms``.

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
        """Whether it is time to read it again."""
        return bool(self._interval_s) and time.monotonic() >= self._next

    def fetch(self, conn: psycopg.Connection[TupleRow]) -> None:
        """Read it from the server."""
        self._next = time.monotonic() + self._interval_s
        rows = run(
            conn,
            f"SELECT catalog_xmin::text FROM pg_replication_slots WHERE slot_name = {literal(self._slot)}",
            "the slot's oldest transaction",
        )
        self._known = int(rows[0][0]) if rows and rows[0][0] is not None else None

    @property
    def known(self) -> int | None:
        """The transaction that was last read; None if there is none."""
        return self._known
