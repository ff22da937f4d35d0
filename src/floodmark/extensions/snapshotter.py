"""What a snapshot can be told from outside: when it is taken, how tables are read, how they are locked.

The members are those of Debezium's ``io.debezium.snapshot.spi``. Derive from these classes for the defaults,
or just have the members. All of it runs in the driver.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable


class Plugin(Protocol):
    """What all that can be replaced has in common.

    Attributes:
        name: what log lines call it.
    """

    name: str

    def configure(self, options: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Take note of the source's options, by their names; called once. Secrets are left out."""
        return


@runtime_checkable
class Snapshotter(Plugin, Protocol):
    """Decides whether a snapshot is taken and whether the log is streamed."""

    @abstractmethod
    def should_snapshot_data(self, offset_exists: bool, snapshot_in_progress: bool) -> bool:
        """Tell whether the tables' rows are read; asked once a start of the query.

        Args:
            offset_exists: whether the query has a checkpoint.
            snapshot_in_progress: whether a snapshot had begun and was not finished. ``True`` then finishes it;
                ``False`` gives it up.
        """

    def should_snapshot_schema(self, offset_exists: bool, snapshot_in_progress: bool) -> bool:
        """Tell whether the tables' structure is recorded; only asked where there is a schema history."""
        return self.should_snapshot_data(offset_exists, snapshot_in_progress)

    @abstractmethod
    def should_stream(self) -> bool:
        """Tell whether the log is delivered after the snapshot."""

    def should_snapshot_on_schema_error(self) -> bool:
        """Tell whether a lost schema history is rebuilt; only asked where there is one."""
        return False

    def should_snapshot_on_data_error(self) -> bool:
        """Tell whether a new snapshot is taken if the log that the checkpoint needs is gone."""
        return False

    def should_stream_events_starting_from_snapshot(self) -> bool:
        """Tell whether the log before a snapshot may be left out. It never is, so this is not asked."""
        return True

    def snapshot_completed(self) -> None:
        """Take note that a snapshot has ended. After a failure at that moment it is called again."""
        return

    def snapshot_aborted(self) -> None:
        """Take note that a snapshot was given up. A query that stops doesn't give it up."""
        return


@runtime_checkable
class SnapshotQuery(Plugin, Protocol):
    """Decides with which statement a table is read."""

    @abstractmethod
    def snapshot_query(self, table: str, columns: Sequence[str]) -> str | None:
        """Return the ``SELECT`` that reads a table; None to leave its rows out of the snapshot.

        Args:
            table: its name as SQL has it, quoted.
            columns: its captured columns, quoted. The statement must return all of them, by name.
        """


@runtime_checkable
class SnapshotLock(Plugin, Protocol):
    """Decides how tables are locked during a snapshot."""

    @abstractmethod
    def table_locking_statement(self, lock_timeout: timedelta, table: str) -> str | None:
        """Return the statement that locks a table until the snapshot ends; None for no lock.

        Args:
            lock_timeout: ``snapshot.lock.timeout.ms``; the session has it set already.
            table: its name as SQL has it, quoted.
        """
