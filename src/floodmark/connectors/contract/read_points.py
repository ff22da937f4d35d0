"""Read points: views of the tables whose place in the log is known, and what opens them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Literal, Protocol

from floodmark.capture.segment import SegmentData
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.contract.table_key import TableKey
from floodmark.events.columns import EventRow
from floodmark.json_data import Json

ChunkOutcome = Literal["complete", "unchanged", "nothing"]
"""``complete``: all rows as the read point sees them. ``unchanged``: the read point is gone, so only the rows
that have not changed since. ``nothing``: the table isn't there any more, or has another structure."""


class KeyRanges(Protocol):
    """A table at a read point, to be split by ranges of its key. Keys are texts that only the source compares."""

    def last(self) -> list[str] | None:
        """Return the highest key; None if no row has one."""

    def bounds(
        self, after: Sequence[str] | None, upto: Sequence[str], size: int, count: int
    ) -> list[tuple[list[str], int]]:
        """Return the upper bounds of up to ``count`` ranges of ``size`` rows in ``(after, upto]``, and their sizes.

        If there are fewer rows, the last bound is ``upto``.
        """


class LocalRows(Protocol):
    """Reads tables at a read point in the process that opened it. Several of its threads may read at a time."""

    def rows(self, chunk: Chunk) -> Generator[SegmentData, None, ChunkOutcome]:
        """Yield the raw rows of a chunk in pieces, and return the chunk's outcome.

        If they are not all read, the read point can't be used any more.

        Args:
            chunk: with ``in_order`` each piece's header has the key of its ``last`` row.
        """

    def split(self, oid: int, count: int) -> list[list[str]]:
        """Return keys that split a table into up to ``count`` ranges of about the same size, in their order.

        Args:
            oid: the table, whose rows are read in the order of its key.
            count: how many ranges are wanted. There are fewer where the sizes aren't known without reading the table.
        """


class ReadPoint(Protocol):
    """A view of the tables that is the same for all readers and does not change while it is held."""

    @property
    def position(self) -> str:
        """Everything committed up to it is visible, nothing after it. Of an unsettled one: what the log must reach."""

    @property
    def token(self) -> dict[str, Json]:
        """What a chunk needs to read from it, as JSON data that only the connector reads."""

    @property
    def visible(self) -> str:
        """What it sees, in the source's notation."""

    @property
    def local(self) -> LocalRows | None:
        """Reads the tables in this process; None if tasks read them, with the token."""

    def alive(self) -> bool:
        """Return whether it can still be read from."""

    def settle(self, after: str) -> bool:
        """Find the exact position, once the log has been captured up to the present one.

        Args:
            after: the log has been delivered up to here, so the position must not lie before.

        Returns:
            False if the view has no position in the log, so that another read point is needed.
        """

    def key_ranges(self, oid: int, key: TableKey, condition: str) -> KeyRanges:
        """Return a table as the view shows it, to be split by its key.

        Args:
            oid: the table.
            key: as ``TableCatalog.key_of`` returned it.
            condition: on the rows, as ``TableCatalog.row_filter`` returned it; empty: all.
        """

    def release(self) -> None:
        """Release it."""


class Window(ReadPoint, Protocol):
    """A view of the tables whose position in the log lies between two others; only this process can read it.

    When it has been closed, ``position`` is where the window ends: everything that the view sees was committed before.
    """

    @property
    def low(self) -> str:
        """Where the window begins: the view sees everything that was committed before. Exact once it is settled."""

    def rows(self, chunk: Chunk) -> Generator[SegmentData, None, ChunkOutcome]:
        """Yield the raw rows of a chunk in pieces, and return the chunk's outcome; see ``LocalRows.rows``."""

    def close(self) -> None:
        """Release the view, mark its end in the source's log if needed, and set ``position``."""


class WindowSource(Protocol):
    """Opens windows."""

    def open(self, after: str) -> Window | None:
        """Find or mark the beginning of a window in the source's log, and open a view of the tables after that.

        Args:
            after: the log has been delivered up to here.

        Returns:
            The window; None while the tables don't show yet what was delivered: try again later.
        """


class SnapshotSource(Protocol):
    """Opens read points."""

    @property
    def local(self) -> bool:
        """Whether its read points can only be read in this process, so that all have ``local``."""

    def open(self, begins: bool = False) -> ReadPoint:
        """Open a read point at the source's current position.

        Args:
            begins: whether a snapshot of all tables begins with it, whose structures are then announced
                (``SchemaAnnouncements``).
        """

    def open_unsettled(self) -> ReadPoint:
        """Open a read point at once; the log must reach its ``position`` before it can be settled."""

    def reopen(self, token: dict[str, Json]) -> ReadPoint | None:
        """Return a read point that another process has opened; None if those end with their process.

        Args:
            token: the read point's.
        """


class SchemaAnnouncements(Protocol):
    """Makes the events with the table structures that a snapshot begins with, for databases that log DDL statements."""

    def schema_events(self, position: str, token: Mapping[str, Json]) -> list[EventRow]:
        """Return the events that come before the rows of a snapshot of all tables, as rows of the output.

        Columns that are null may be left out.

        Args:
            position: the read point's position.
            token: the read point's token.
        """
