"""The protocols that a connector implements.

The planner (in Spark's source process) uses a ``Connector``; executors create its ``LogDecoder``, ``ChunkReader`` and
``WindowReader`` from the options.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pyarrow as pa

from floodmark.capture.gaps import AcceptedGaps
from floodmark.capture.log_stream import LogStream
from floodmark.capture.segment import SegmentData
from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.chunk import Chunk, DescribedTable
from floodmark.connectors.contract.table_key import TableKey

ChunkOutcome = Literal["complete", "unchanged", "nothing"]
"""``complete``: all rows as the read point sees them. ``unchanged``: the read point is gone, so only the rows
that have not changed since. ``nothing``: the table isn't there any more, or has another structure."""


@dataclass(frozen=True)
class TableFailure:
    """A table whose records can't be decoded.

    Attributes:
        table: ``schema.table``.
        oid: the number that identifies the table.
        error: why.
    """

    table: str
    oid: int
    error: str


@dataclass(frozen=True)
class DeadLetter:
    """A record of the log that can't be decoded.

    Attributes:
        position: the position of its change.
        table: ``schema.table``.
        operation: c, u or d.
        error: why.
        record: its bytes.
    """

    position: str
    table: str
    operation: str
    error: str
    record: bytes


class LogDecoder(Protocol):
    """Turns segments into events, in an executor."""

    def decode(
        self,
        data: SegmentData,
        after: str,
        upto: str,
        aside: Collection[int] = (),
        only: Collection[int] | None = None,
        failed: list[TableFailure] | None = None,
        xmin: int | None = None,
        dead: list[DeadLetter] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Return the events of the records in ``(after, upto]``, in the log's order.

        Args:
            data: a segment.
            after: begin after this position.
            upto: end with this position.
            aside: numbers of the tables to exclude.
            only: the tables that are wanted; None: all.
            failed: receives the tables that can't be decoded, which are excluded from there on; None: raise.
            xmin: the oldest transaction that the source keeps rows for, if events include it.
            dead: receives the records that can't be decoded; only these are left out then. None: their table fails.
        """


class ChunkReader(Protocol):
    """Reads chunks of tables one after the other, in an executor."""

    def read(self, chunk: Chunk) -> Generator[pa.RecordBatch, None, ChunkOutcome]:
        """Yield a chunk's rows as read events, and return its outcome."""

    def close(self) -> None:
        """Close the connection that the last chunk left, if any."""


class ReadPoint(Protocol):
    """A view of the tables that is the same for all readers and does not change while it is held.

    Attributes:
        position: everything committed up to it is visible, nothing after it.
        token: what a chunk needs to read from it, as JSON data.
    """

    position: str
    token: dict[str, Any]

    def alive(self) -> bool:
        """Return whether it can still be read from."""

    def release(self) -> None:
        """Release it."""


class Window(ReadPoint, Protocol):
    """A view of the tables whose position in the log lies between two others.

    Attributes:
        position: where the window ends: everything that the view sees was committed before.
        low: where the window begins: the view sees everything that was committed before. Exact once it is settled.
    """

    low: str


class WindowReader(Protocol):
    """Turns rows that were read in a window into events, in an executor."""

    def read(
        self, chunk: Chunk, rows: Iterable[SegmentData], log: Iterable[tuple[SegmentData, str, str]]
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows that have not changed up to the end of their window, as read events.

        Args:
            chunk: its ``low`` and ``position`` are the window's.
            rows: what ``Connector.window_rows`` returned for it.
            log: segments that hold the log in the window; of each, what lies in ``(after, upto]``.
        """


class ExecutorSide(Protocol):
    """A connector's module ``executor``, which makes the readers of tasks; importing it must be cheap.

    ``options`` are the connector's own.
    """

    def row_schema(self, options: Any) -> pa.Schema:
        """Return the columns of ``format=rows``, which are read from the source."""

    def make_decoder(self, options: Any, make_version: Any) -> LogDecoder:
        """Return a decoder of log segments.

        Args:
            options: the source's options.
            make_version: makes the table versions of the output (``floodmark.changes.table_version.VersionMaker``).
        """

    def make_chunk_reader(self, options: Any, make_version: Any) -> ChunkReader:
        """Return a reader of chunks of tables."""

    def make_window_reader(self, options: Any, make_version: Any) -> WindowReader:
        """Return a reader of the rows of windows."""


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


class Connector(Protocol):
    """The planner's side of a connector. Opened lazily; nothing in it is pickled.

    Attributes:
        tasks_read: whether tasks can read at a read point that this process holds. If not, this process reads the rows
            (``window_rows``), and tasks turn them into events (``WindowReader``).
        gaps: changes that were left out because an option accepts that; the planner makes an event of each.
    """

    tasks_read: bool
    gaps: AcceptedGaps

    def identity(self) -> dict[str, str]:
        """Return what identifies the source in a checkpoint; it fails if the source can't be reached."""

    def prepare(
        self,
        snapshot: bool,
        position: str | None,
        bookmark: dict[str, Any] | None = None,
        known: Sequence[str] = (),
    ) -> tuple[str, ReadPoint | None]:
        """Create what capture needs at the source, or verify that the source still has the log from ``position`` on.

        Args:
            snapshot: whether a read point at the starting position is wanted.
            position: where to continue; None for a new query.
            bookmark: what ``bookmark`` returned for that position.
            known: the names of the tables that were captured up to there.

        Returns:
            The position to start from, and the read point there.
        """

    def check_planned(self, position: str, bookmark: dict[str, Any] | None) -> None:
        """Verify that the log holds what an earlier process planned and did not commit.

        Args:
            position: up to which it planned.
            bookmark: what ``bookmark`` returned for that position.

        Raises:
            LogGoneError: the log doesn't reach the position, or is another one.
            SourceStateError: the log is another server's by now, with other positions.
        """

    def bookmark(self, position: str) -> dict[str, Any] | None:
        """Return what is needed besides a position to continue from it, as JSON data; None if nothing is.

        Args:
            position: up to which the log is delivered.
        """

    def prove_complete(self, position: str, ends: bool = False) -> None:
        """Verify from time to time that the source has left nothing out of the log, which the log itself doesn't show.

        Args:
            position: up to which the log is delivered.
            ends: whether the query is about to end, so that this must be verified now.

        Raises:
            FloodmarkError: the source has left something out.
        """

    def discard_lost_log(self) -> None:
        """Remove what the source keeps for a log that can't be read any more; ``prepare`` can then create it again."""

    def read_point(self, begins: bool = False) -> ReadPoint:
        """Open a new read point at the source's current position.

        Args:
            begins: whether a snapshot of all tables begins with it, so that ``announcements`` will be called.
        """

    def fresh_point(self) -> ReadPoint:
        """Open a new read point at once; the log must reach its ``position`` before it can be settled."""

    def settle(self, point: ReadPoint, after: str) -> bool:
        """Find the exact position of a fresh read point, once the log has been captured up to its present one.

        Args:
            point: from ``fresh_point``, or a closed window, whose beginning is found.
            after: the log has been delivered up to here, so the position must not lie before.

        Returns:
            False if the view has no position in the log, so that another read point is needed.
        """

    def open_window(self, after: str) -> Window | None:
        """Open a window: find or mark its beginning in the source's log, and open a view of the tables after that.

        Args:
            after: the log has been delivered up to here.

        Returns:
            The window; None while the tables don't show yet what was delivered: try again later.
        """

    def window_rows(self, window: ReadPoint, chunk: Chunk) -> Generator[SegmentData, None, ChunkOutcome]:
        """Yield the raw rows of a chunk as the window sees them, in pieces, and return the chunk's outcome.

        If they are not all read, the window can't be used any more. Several threads may read at a read point that tasks
        can't read at.

        Args:
            window: the window, or a read point that tasks can't read at.
            chunk: with ``in_order`` each piece's header has the key of its ``last`` row.
        """

    def close_window(self, window: Window) -> None:
        """Release the window's view, mark its end in the source's log if needed, and set its ``position``."""

    def delivered(self, position: str) -> None:
        """Record that the log was delivered up to a position; called after a micro-batch."""

    def current_position(self) -> str:
        """Return the end of the source's log."""

    def snapshot_tables(self) -> list[CapturedTable]:
        """Return the tables to snapshot, in the order in which they are read."""

    def announcements(self, position: str, token: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the events that come before the rows of a snapshot of all tables, as rows of the output.

        Args:
            position: the read point's position.
            token: the read point's token.
        """

    def tables(self, sized: bool = False) -> list[CapturedTable]:
        """Return all captured tables.

        Args:
            sized: whether ``units`` is needed, which may have to wait for a lock on a table.
        """

    def table_names(self) -> list[str]:
        """Return the names that all captured tables have in events: ``published`` of each of ``tables``.

        It is called repeatedly while the log is streamed, so it must be cheap with thousands of tables.
        """

    def follow_tables(self, known: Collection[str]) -> frozenset[str]:
        """Make the log include the changes of all tables that the filters match by now.

        Args:
            known: the published names of the tables that are captured already.

        Returns:
            The published names of new tables that can't be captured yet, since the log would not have all of their
            changes from now on. Call again later.
        """

    def fingerprints(self, oids: Sequence[int]) -> dict[int, str]:
        """Return the ``file`` of tables; those that are gone are left out."""

    def key_of(self, oid: int, surrogate: str | None) -> TableKey | None:
        """Return the key that a table is cut by; None if it has none.

        Args:
            oid: the table.
            surrogate: a column to use instead.
        """

    def key_ranges(self, point: ReadPoint, oid: int, key: TableKey, condition: str) -> KeyRanges:
        """Return a table as a read point sees it, to be split by its key.

        Args:
            point: the read point.
            oid: the table.
            key: as ``key_of`` returned it.
            condition: on the rows, as ``row_filter`` returned it; empty: all.
        """

    def row_filter(self, oid: int, condition: str) -> str:
        """Translate a signal's condition on the rows of a table to SQL that can do nothing else.

        Args:
            oid: the table.
            condition: the signal's text.

        Raises:
            ConditionError: the text is not one condition, or has something that is not allowed.
            SourceStateError: the table is gone.
        """

    def row_query(self, oid: int, statement: str) -> str:
        """Translate a blocking signal's statement on a table to SQL that reads its rows and can do nothing else.

        Args:
            oid: the table.
            statement: ``SELECT * FROM <table> WHERE …``, or the condition alone.

        Raises:
            ConditionError: the text is neither, or has something that is not allowed.
            SourceStateError: the table is gone.
        """

    def cuts(self, point: ReadPoint, oid: int, count: int) -> list[list[str]]:
        """Return keys that split a table into up to ``count`` ranges of about the same size, in their order.

        Called only where tasks can't read.

        Args:
            point: the read point.
            oid: the table, whose rows are read in the order of its key.
            count: how many ranges are wanted. There are fewer where the sizes aren't known without reading the table.
        """

    def chunk_units(self) -> int:
        """Return how many units make a chunk."""

    def describe(self, oids: Sequence[int]) -> dict[int, DescribedTable]:
        """Return tables as chunks name them; those that are gone are left out."""

    def oldest_transaction(self) -> int | None:
        """Return the oldest transaction that the source keeps rows for; None if events don't include it."""

    def execute_in_background(self, statement: str) -> None:
        """Run a statement without waiting for it; its errors are logged."""

    def log_stream(self) -> LogStream:
        """Return a new log stream, not yet opened."""

    def lag_bytes(self, position: str) -> int:
        """Return how many bytes of log lie between a position and the end of the source's log."""

    def stop(self) -> None:
        """Close all connections, and drop at the source what the options require."""
