"""Snapshots on request: a file says when, and only recent rows are read.

Use it with::

    snapshot.mode=custom              snapshot.mode.custom.name=on_request
    snapshot.query.mode=custom        snapshot.query.mode.custom.name=recent
    snapshot.locking.mode=custom      snapshot.locking.mode.custom.name=no_writes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from floodmark import SnapshotLock, SnapshotQuery, Snapshotter

REQUEST = "snapshot-please"


class OnRequest(Snapshotter):
    """Takes the first snapshot, and another one whenever ``state.dir`` holds the file ``snapshot-please``."""

    name = "on_request"

    def configure(self, options: Mapping[str, Any]) -> None:
        """Remember where the file is looked for."""
        self.request = Path(options["state.dir"]) / REQUEST

    def should_snapshot_data(self, offset_exists: bool, snapshot_in_progress: bool) -> bool:
        """Take a snapshot that is asked for, and finish one that has begun."""
        return not offset_exists or snapshot_in_progress or self.request.exists()

    def should_stream(self) -> bool:
        """Follow the log."""
        return True

    def snapshot_completed(self) -> None:
        """Take the request as done."""
        self.request.unlink(missing_ok=True)


class Recent(SnapshotQuery):
    """Reads the last thirty days of tables with a column ``created_at``, and leaves archives out."""

    name = "recent"

    def snapshot_query(self, table: str, columns: Sequence[str]) -> str | None:
        """Return the statement for a table; None for an archive."""
        if table.endswith('_archive"'):
            return None
        statement = f"SELECT {', '.join(columns)} FROM {table}"
        if '"created_at"' in columns:
            statement += " WHERE created_at > now() - interval '30 days'"
        return statement


class NoWrites(SnapshotLock):
    """Keeps others from writing while the snapshot is taken."""

    name = "no_writes"

    def table_locking_statement(self, lock_timeout: timedelta, table: str) -> str | None:  # noqa: ARG002
        """Return the lock of a table."""
        return f"LOCK TABLE {table} IN SHARE MODE"
