"""The interfaces that control snapshots: when they are taken, and how tables are read and locked.

The members are those of Debezium's ``io.debezium.snapshot.spi``. Derive from these classes for the defaults,
or just have the members. They are called in the driver.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable


class Plugin(Protocol):
    """The common base of these interfaces.

    Attributes:
        name: its name in log lines.
    """

    name: str

    def configure(self, options: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Receive the source's options by their names, without secrets; called once."""
        return


@runtime_checkable
class Snapshotter(Plugin, Protocol):
    """Decides whether a snapshot is taken and whether the log is streamed."""

    @abstractmethod
    def should_snapshot_data(self, offset_exists: bool, snapshot_in_progress: bool) -> bool:
        """Return whether the tables' rows are read; called once for each start of the query.

        Args:
            offset_exists: whether the query has a checkpoint.
            snapshot_in_progress: whether a snapshot was begun and not finished. Returning ``True`` then continues it,
                ``False`` abandons it.
        """

    def should_snapshot_schema(self, offset_exists: bool, snapshot_in_progress: bool) -> bool:
        """As in Debezium; not called, since the structures are recorded at every start that needs them."""
        return self.should_snapshot_data(offset_exists, snapshot_in_progress)

    @abstractmethod
    def should_stream(self) -> bool:
        """Return whether the log is delivered after the snapshot."""

    def should_snapshot_on_schema_error(self) -> bool:
        """Return whether a lost schema history is rebuilt; called only where there is one."""
        return False

    def should_snapshot_on_data_error(self) -> bool:
        """Return whether a new snapshot is taken if the log that the checkpoint needs is gone."""
        return False

    def should_stream_events_starting_from_snapshot(self) -> bool:
        """Return whether the log before a snapshot may be left out; not called, since it never is."""
        return True

    def snapshot_completed(self) -> None:
        """Handle the end of a snapshot. After a failure at that moment it is called again."""
        return

    def snapshot_aborted(self) -> None:
        """Handle an abandoned snapshot. A query that stops doesn't abandon it."""
        return


@runtime_checkable
class SnapshotQuery(Plugin, Protocol):
    """Decides which statement a table is read with."""

    @abstractmethod
    def snapshot_query(self, table: str, columns: Sequence[str]) -> str | None:
        """Return the ``SELECT`` that reads a table; None to leave its rows out of the snapshot.

        Args:
            table: its name in SQL, quoted.
            columns: its captured columns, quoted. The statement must return all of them, by name.
        """


@runtime_checkable
class SnapshotLock(Plugin, Protocol):
    """Decides how tables are locked during a snapshot."""

    @abstractmethod
    def table_locking_statement(self, lock_timeout: timedelta, table: str) -> str | None:
        """Return the statement that locks a table until the snapshot ends; None for no lock.

        Args:
            lock_timeout: ``snapshot.lock.timeout.ms``; it is already set in the session.
            table: its name in SQL, quoted.
        """
