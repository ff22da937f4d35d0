"""The interface that a connector fills in.

The planner (Spark's source process) talks to a ``Connector``; executors make its ``LogDecoder``, ``ChunkReader`` and
``WindowReader`` of the options.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pyarrow as pa

from floodmark.capture.gaps import AcceptedGaps
from floodmark.capture.log_stream import LogStream
from floodmark.capture.segment import SegmentData

ChunkOutcome = Literal["complete", "unchanged", "nothing"]
"""``complete``: all rows as the read point sees them. ``unchanged``: the read point is gone, so only the rows
that have not changed since. ``nothing``: the table isn't there any more, or has another structure."""


@dataclass(frozen=True)
class TableFailure:
    """A table whose records can't be decoded.

    Attributes:
        table: ``schema.table``.
        oid: the table, as the log numbers it.
        error: why.
    """

    table: str
    oid: int
    error: str


@dataclass(frozen=True)
class DeadLetter:
    """A record of the log that can't be decoded.

    Attributes:
        position: of its change.
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
        """Return the events of the records in ``(after, upto]``, in their order.

        Args:
            data: a segment.
            after: begin after this position.
            upto: end with this position.
            aside: tables to leave out, as the log numbers them.
            only: the tables that are wanted; None: all.
            failed: gets the tables that can't be decoded, which are left out from there on; None: raise.
            xmin: the oldest transaction that the source keeps rows for, if it is asked for.
            dead: gets the records that can't be decoded, which alone are left out; None: their table fails.
        """


class ChunkReader(Protocol):
    """Reads chunks of tables one after the other, in an executor."""

    def read(self, chunk: dict[str, Any]) -> Generator[pa.RecordBatch, None, ChunkOutcome]:
        """Return the chunk's rows as read events, and at the end what became of it."""

    def close(self) -> None:
        """Close the connection that the last chunk left, if any."""


class ReadPoint(Protocol):
    """A view of the tables that stays the same for all readers while it is held.

    Attributes:
        position: everything committed up to it is visible, nothing after it.
        token: what a chunk needs to read from it, as JSON data.
    """

    position: str
    token: dict[str, Any]

    def alive(self) -> bool:
        """Tell whether it can still be read from."""

    def release(self) -> None:
        """Let go of it."""


class Window(ReadPoint, Protocol):
    """A view of the tables whose place in the log lies between two marks.

    Attributes:
        position: of the mark that closes it: everything that the view sees was committed before.
        low: where it begins: the view sees everything that was committed before. Exact once it is settled.
    """

    low: str


class WindowReader(Protocol):
    """Turns rows that were read in a window into events, in an executor."""

    def read(
        self, chunk: dict[str, Any], rows: Iterable[SegmentData], log: Iterable[tuple[SegmentData, str, str]]
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows that are still right at the end of their window, as read events.

        Args:
            chunk: as the engine described it; ``low`` and ``position`` are the window's.
            rows: what ``Connector.window_rows`` returned for it.
            log: segments that hold the log in the window; of each, what lies in ``(after, upto]``.
        """


class ExecutorSide(Protocol):
    """A connector's module ``executor``: what tasks read with. Importing it must be cheap.

    ``options`` are the connector's own.
    """

    def row_schema(self, options: Any) -> pa.Schema:
        """Return the columns of ``format=rows``; the source is asked."""

    def make_decoder(self, options: Any, make_version: Any) -> LogDecoder:
        """Return what decodes log segments.

        Args:
            options: the source's options.
            make_version: makes the table versions of the output (``floodmark.changes.table_version.VersionMaker``).
        """

    def make_chunk_reader(self, options: Any, make_version: Any) -> ChunkReader:
        """Return what reads chunks of tables."""

    def make_window_reader(self, options: Any, make_version: Any) -> WindowReader:
        """Return what reads the rows of windows."""


class KeyRanges(Protocol):
    """A table at a read point, to be cut by ranges of its key. Keys are texts that only the source compares."""

    def last(self) -> list[str] | None:
        """Return the highest key; None if there is no row that has one."""

    def bounds(
        self, after: Sequence[str] | None, upto: Sequence[str], size: int, count: int
    ) -> list[tuple[list[str], int]]:
        """Return the upper bounds of up to ``count`` ranges of ``size`` rows in ``(after, upto]``, and their rows.

        If there are fewer rows, the last bound is ``upto``.
        """


class Connector(Protocol):
    """The planner's side of a connector. Opened lazily; nothing in it is pickled.

    Attributes:
        tasks_read: whether tasks can read at a read point that this process holds. If not, this process reads the rows
            (``window_rows``), and tasks make them into events (``WindowReader``).
        gaps: changes that were left out because an option accepts that; the planner makes an event of each.
    """

    tasks_read: bool
    gaps: AcceptedGaps

    def identity(self) -> dict[str, str]:
        """Return what identifies the source in a checkpoint; the source is asked, and so has answered."""

    def prepare(
        self,
        snapshot: bool,
        position: str | None,
        bookmark: dict[str, Any] | None = None,
        known: Sequence[str] = (),
    ) -> tuple[str, ReadPoint | None]:
        """Create what capture needs at the source, or prove that the log from ``position`` on is there.

        Args:
            snapshot: whether a read point at the starting position is wanted.
            position: where to go on from; None for a new query.
            bookmark: what ``bookmark`` returned for that position.
            known: the names of the tables that were captured up to there.

        Returns:
            The position to start from, and the read point there.
        """

    def check_planned(self, position: str, bookmark: dict[str, Any] | None) -> None:
        """Prove that the log holds what an earlier process planned and did not commit, or raise.

        Args:
            position: up to which it planned.
            bookmark: what ``bookmark`` returned for that position.

        Raises:
            LogGoneError: the log doesn't reach it, or is another one.
        """

    def bookmark(self, position: str) -> dict[str, Any] | None:
        """Return what is needed besides a position to go on from it, as JSON data; None if nothing is.

        Args:
            position: up to which the log is delivered.
        """

    def prove_complete(self, position: str, ends: bool = False) -> None:
        """Prove now and then that the source has left nothing out of the log, which nothing in the log would tell.

        Args:
            position: up to which the log is delivered.
            ends: whether the query is about to end, so that it must be proven now.

        Raises:
            FloodmarkError: it has.
        """

    def discard_lost_log(self) -> None:
        """Remove what stands for a log that can't be read any more, so that ``prepare`` can make a new one."""

    def read_point(self, begins: bool = False) -> ReadPoint:
        """Open a new read point at the source's current position.

        Args:
            begins: whether a snapshot of all tables begins with it, so that ``announcements`` will be asked.
        """

    def fresh_point(self) -> ReadPoint:
        """Open a new read point at once; its ``position`` is what the log must reach before it can be settled."""

    def settle(self, point: ReadPoint, after: str) -> bool:
        """Fix the exact position of a fresh read point, once the log has been captured up to its present one.

        Args:
            point: from ``fresh_point``, or a closed window, of which the beginning is fixed.
            after: up to here the log has been delivered, so the position must not lie before.

        Returns:
            False if the view has no place in the log: take another read point.
        """

    def open_window(self, after: str) -> Window | None:
        """Mark the beginning of a window in the source's log, and open a view of the tables after it.

        Args:
            after: up to here the log has been delivered.

        Returns:
            None while the tables don't show yet what was delivered: try again later.
        """

    def window_rows(self, window: ReadPoint, chunk: dict[str, Any]) -> Generator[SegmentData, None, ChunkOutcome]:
        """Return the rows of a chunk as the window sees them, raw, in pieces, and at the end what became of it.

        If they are not all taken, the window is of no more use. Several threads may read at a read point that tasks
        can't read at.

        Args:
            window: or a read point that tasks can't read at.
            chunk: as an engine describes it. With ``to_end`` it goes from ``after`` to the table's end. With
                ``in_order`` each piece's header has its ``last`` row's key, if ``key`` isn't None.
        """

    def close_window(self, window: Window) -> None:
        """Let go of the window's view, mark its end in the source's log and set its ``position``."""

    def delivered(self, position: str) -> None:
        """Told after a micro-batch how far the log has been delivered."""

    def current_position(self) -> str:
        """Return the end of the source's log."""

    def snapshot_tables(self) -> list[dict[str, Any]]:
        """Return the tables to snapshot, as JSON data.

        ``name``, ``published`` (the name that its events have), ``oid``, ``logged`` (the number that its events
        have in the log), ``units`` (how much there is to read; ``snapshot.state.UNCOUNTED`` if it is read in the order
        of its key), ``rows`` (an estimate) and ``file`` (changes when the table is rewritten or altered).
        """

    def announcements(self, position: str, token: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the events that come before the rows of a snapshot of all tables, as rows of the output.

        Args:
            position: of the read point.
            token: the read point's.
        """

    def tables(self, sized: bool = False) -> list[dict[str, Any]]:
        """Return all captured tables, described in the same way.

        Args:
            sized: whether ``units`` is wanted, for which a lock on a table may have to be waited for.
        """

    def table_names(self) -> list[str]:
        """Return under which names the changes of all captured tables come: ``published`` of each of ``tables``.

        It is asked again and again while the log is streamed, so with thousands of tables it must be cheap.
        """

    def follow_tables(self, known: Collection[str]) -> frozenset[str]:
        """Let the log hold the changes of all tables that the filters match by now.

        Args:
            known: the published names of the tables that are captured already.

        Returns:
            The published names of new tables that can't be taken over yet: not all of their changes from now on would
            be in the log. Call again later.
        """

    def fingerprints(self, oids: Sequence[int]) -> dict[int, str]:
        """Return ``file`` of tables; those that are gone are left out."""

    def key_of(self, oid: int, surrogate: str | None) -> dict[str, Any] | None:
        """Return what is to be known of a table's key, as JSON data; None if it has none.

        ``nulls`` says whether there may be rows without key.

        Args:
            oid: the table.
            surrogate: a column to use instead.
        """

    def key_ranges(self, point: ReadPoint, oid: int, key: dict[str, Any], condition: str) -> KeyRanges:
        """Return a table as a read point sees it, to be cut by its key.

        Args:
            point: the read point.
            oid: the table.
            key: as ``key_of`` returned it.
            condition: on the rows, as ``row_filter`` returned it; empty: all.
        """

    def row_filter(self, oid: int, condition: str) -> str:
        """Return a signal's condition on the rows of a table as SQL that can do nothing else.

        Args:
            oid: the table.
            condition: as the signal has it.

        Raises:
            ConditionError: it is not one condition, or has what is not allowed.
            SourceStateError: the table is gone.
        """

    def row_query(self, oid: int, statement: str) -> str:
        """Return a blocking signal's statement on a table as SQL that reads its rows and can do nothing else.

        Args:
            oid: the table.
            statement: ``SELECT * FROM <table> WHERE …``, or the condition alone.

        Raises:
            ConditionError: it is neither, or has what is not allowed.
            SourceStateError: the table is gone.
        """

    def cuts(self, point: ReadPoint, oid: int, count: int) -> list[list[str]]:
        """Return keys that cut a table into up to ``count`` ranges of about the same size, in their order.

        Asked only where tasks can't read.

        Args:
            point: the read point.
            oid: the table, whose rows are read in the order of its key.
            count: how many ranges are wanted. There are fewer where that can't be told without reading the table.
        """

    def chunk_units(self) -> int:
        """Return how many units make a chunk."""

    def describe(self, oids: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return what chunks carry of tables, such as their structure; tables that are gone are left out."""

    def oldest_transaction(self) -> int | None:
        """Return the oldest transaction that the source keeps rows for; None if nobody asks for it."""

    def run_aside(self, statement: str) -> None:
        """Run a statement without waiting for it; its errors are logged."""

    def log_stream(self) -> LogStream:
        """Return a new log stream, not yet opened."""

    def lag_bytes(self, position: str) -> int:
        """Return how many bytes of log lie between a position and the end of the source's log."""

    def stop(self) -> None:
        """Release every connection, and what the options say is dropped at the end."""
