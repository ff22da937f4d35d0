"""The planner's side of a connector: a source with its log, its tables and their snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from floodmark.capture.gaps import AcceptedGaps
from floodmark.capture.log_stream import LogStream
from floodmark.connectors.contract.read_points import ReadPoint, SchemaAnnouncements, SnapshotSource, WindowSource
from floodmark.connectors.contract.tables import TableCatalog
from floodmark.json_data import Json


class LogSource(Protocol):
    """The log of a source."""

    def create(self, with_read_point: bool) -> tuple[str, ReadPoint | None]:
        """Create what capture of a new query needs at the source.

        Args:
            with_read_point: whether a read point at the starting position is wanted.

        Returns:
            The position to start from, and the read point there.
        """

    def resume(self, position: str, bookmark: dict[str, Json] | None = None, known: Sequence[str] = ()) -> None:
        """Verify that the source still has the log from a position on.

        Args:
            position: where to continue.
            bookmark: what ``bookmark`` returned for that position.
            known: the names of the tables that were captured up to there.

        Raises:
            LogGoneError: it hasn't.
        """

    def check_planned(self, position: str, bookmark: dict[str, Json] | None) -> None:
        """Verify that the log holds what an earlier process planned and did not commit.

        Args:
            position: up to which it planned.
            bookmark: what ``bookmark`` returned for that position.

        Raises:
            LogGoneError: the log doesn't reach the position, or is another one.
            SourceStateError: the log is another server's by now, with other positions.
        """

    def locate(self, position: str, bookmark: dict[str, Json] | None) -> None:
        """Verify that this is the log of a query that runs beside this process, and count positions as it does.

        Nothing is changed at the source.

        Args:
            position: up to which the query has delivered the log.
            bookmark: what ``bookmark`` returned for that position.

        Raises:
            LogGoneError: it is another log.
        """

    def bookmark(self, position: str) -> dict[str, Json] | None:
        """Return what is needed besides a position to continue from it, as JSON data; None if nothing is.

        Args:
            position: up to which the log is delivered.
        """

    def discard_lost(self) -> None:
        """Remove what the source keeps for a log that can't be read any more; ``create`` can then create it again."""

    def delivered(self, position: str) -> None:
        """Record that the log was delivered up to a position; called after a micro-batch."""

    def end(self) -> str:
        """Return the position of the log's end."""

    def lag_bytes(self, position: str) -> int:
        """Return how many bytes of log lie between a position and the end."""

    def decode_context(self) -> int | None:
        """Return what the decoder of the next micro-batch needs besides the log, which only it can read; None: nothing.

        Offsets store it.
        """

    def open_stream(self) -> LogStream:
        """Return a new log stream, not yet opened."""


class CompletenessCheck(Protocol):
    """Detects what a source leaves out of its log."""

    def prove_complete(self, position: str, ends: bool = False) -> None:
        """Verify from time to time that the source has left nothing out of the log, which the log itself doesn't show.

        Args:
            position: up to which the log is delivered.
            ends: whether the query is about to end, so that this must be verified now.

        Raises:
            FloodmarkError: the source has left something out.
        """


class Source(Protocol):
    """A source of changes. Opened lazily; nothing in it is pickled."""

    @property
    def log(self) -> LogSource:
        """Its log."""

    @property
    def tables(self) -> TableCatalog:
        """Its captured tables."""

    @property
    def snapshots(self) -> SnapshotSource:
        """Opens read points."""

    @property
    def windows(self) -> WindowSource | None:
        """Opens windows for incremental snapshots; None: they read at read points, as the options ask."""

    @property
    def announcements(self) -> SchemaAnnouncements | None:
        """Makes the schema change events that a snapshot begins with; None: its log has no statements to repeat."""

    @property
    def completeness(self) -> CompletenessCheck | None:
        """Detects what is left out of the log; None: the log holds every change, or shows what it lacks."""

    @property
    def gaps(self) -> AcceptedGaps:
        """Changes that were left out because an option accepts that; the planner makes an event of each."""

    def identity(self) -> dict[str, str]:
        """Return what identifies the source in a checkpoint; it fails if the source can't be reached."""

    def execute_in_background(self, statement: str) -> None:
        """Run a statement without waiting for it; its errors are logged."""

    def close(self) -> None:
        """Close all connections, and drop at the source what the options require."""
