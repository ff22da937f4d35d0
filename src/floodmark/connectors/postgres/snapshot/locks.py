"""Locks the tables of a snapshot, by ``snapshot.locking.mode``.

The locks belong to the transaction that holds the read point, so they end with it. A statement that waits for
such a lock blocks later readers of the table too, including the snapshot's own tasks: so with locks, nothing in a
snapshot waits longer than ``snapshot.lock.timeout.ms`` (``server.connection.limit_waits``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.connection import LOCK_CURE
from floodmark.connectors.postgres.snapshot.read_point import PostgresReadPoint
from floodmark.extensions.snapshotter import SnapshotLock
from floodmark.snapshots.modes import make_custom_lock


class SharedLock(SnapshotLock):
    """``snapshot.locking.mode=shared``: rows may change, the table may not."""

    name = "shared"

    def configure(self, options: Mapping[str, Any]) -> None:
        """Do nothing."""

    def table_locking_statement(self, lock_timeout: timedelta, table: str) -> str:  # noqa: ARG002
        """Return the statement for the same lock that reading takes."""
        return f"LOCK TABLE {table} IN ACCESS SHARE MODE"


def make_lock(options: PostgresOptions) -> SnapshotLock | None:
    """Return the lock that ``snapshot.locking.mode`` names; None for no lock."""
    if options.snapshot_locking_mode == "none":
        return None
    return SharedLock() if options.snapshot_locking_mode == "shared" else make_custom_lock(options)


def lock_tables(point: PostgresReadPoint, options: PostgresOptions, lock: SnapshotLock, tables: Iterable[str]) -> None:
    """Lock tables until the read point is released.

    Args:
        tables: their quoted names.

    Raises:
        SourceStateError: a lock was not granted in time, or the statement is wrong; the read point is released.
    """
    timeout = timedelta(milliseconds=options.snapshot_lock_timeout_ms)
    try:
        point.query(f"SET LOCAL lock_timeout = {options.snapshot_lock_timeout_ms}", "setting the lock timeout")
        for table in tables:
            statement = lock.table_locking_statement(timeout, table)
            if statement is not None:
                point.query(statement, f"the lock on {table}", LOCK_CURE)
    except BaseException:
        point.release()
        raise
