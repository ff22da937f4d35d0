"""Read points and windows of a PostgreSQL database, as the planner uses them.

What they are is in ``snapshot.read_point`` and ``snapshot.watermarks``; here they meet the log, from which their
positions follow, and the tables.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from floodmark.capture.segment import SegmentData
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.contract.read_points import ChunkOutcome, KeyRanges
from floodmark.connectors.contract.table_key import TableKey
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.connection import run
from floodmark.connectors.postgres.snapshot.commit_log import CommitLog
from floodmark.connectors.postgres.snapshot.key_ranges import PostgresKeyRanges
from floodmark.connectors.postgres.snapshot.locks import lock_tables, make_lock
from floodmark.connectors.postgres.snapshot.read_point import PostgresReadPoint, create_slot, first_lsn, log_end
from floodmark.connectors.postgres.snapshot.visibility import Visibility
from floodmark.connectors.postgres.snapshot.watermarks import PostgresWatermarks, PostgresWindow
from floodmark.connectors.postgres.source.session import PostgresSession
from floodmark.connectors.postgres.source.tables import PostgresTables
from floodmark.connectors.postgres.wire.messages import OWN_PREFIX
from floodmark.errors import ConnectError, SourceStateError
from floodmark.json_data import Json
from floodmark.logger import get_logger

log = get_logger(__name__)


class PlacedPoint:
    """A ``ReadPoint``: a view of the tables, and what finds its place in the log.

    Args:
        view: the view.
        source: what opened it.
    """

    local = None

    def __init__(self, view: PostgresReadPoint, source: PostgresSnapshots) -> None:
        self._view = view
        self._source = source

    @property
    def position(self) -> str:
        """Its position, exact once it is settled."""
        return self._view.position

    @property
    def token(self) -> dict[str, Json]:
        """What a chunk needs to read from it."""
        return self._view.token

    @property
    def visible(self) -> str:
        """The snapshot, as ``pg_current_snapshot()`` prints it."""
        return self._view.snapshot

    def alive(self) -> bool:
        """Return whether other connections can still import the snapshot."""
        return self._view.alive()

    def settle(self, after: str) -> bool:
        """Find the exact position by the transactions that the log holds."""
        return self._source.settle(self._view, after)

    def key_ranges(self, oid: int, key: TableKey, condition: str) -> KeyRanges:
        """Return a table as the view shows it, to be split by its key."""
        return self._source.key_ranges(self._view, oid, key, condition)

    def release(self) -> None:
        """End the transaction that holds the snapshot."""
        self._view.release()


class PlacedWindow(PlacedPoint):
    """A ``Window`` between two watermarks in the signal table."""

    def __init__(self, view: PostgresWindow, source: PostgresSnapshots, windows: PostgresWindows) -> None:
        super().__init__(view, source)
        self._window = view
        self._windows = windows

    @property
    def low(self) -> str:
        """Where it begins."""
        return self._window.low

    def rows(self, chunk: Chunk) -> Generator[SegmentData, None, ChunkOutcome]:
        """Return the rows of a chunk as the window sees them, in COPY's text format."""
        return self._window.rows(chunk)

    def close(self) -> None:
        """Write the window's second watermark to the signal table."""
        self._windows.close(self._window)


class PostgresSnapshots:
    """A ``SnapshotSource``.

    Args:
        options: the source's options.
        session: the connections.
        tables: the captured tables.
        commits: the transactions that capture has received.

    Attributes:
        half_made: server processes that may still be creating the slot, though the connection to them is lost.
    """

    local = False

    def __init__(
        self, options: PostgresOptions, session: PostgresSession, tables: PostgresTables, commits: CommitLog
    ) -> None:
        self._options = options
        self._session = session
        self._tables = tables
        self._commits = commits
        self._lock = make_lock(options)
        self._first_xid: int | None = None
        self.half_made: set[int] = set()
        self.watermarks = (
            PostgresWatermarks(options) if options.incremental_snapshot_read_points == "watermarks" else None
        )

    def check_watermarks(self) -> None:
        """Verify that watermarks can be written, if the options ask for them.

        Raises:
            SourceStateError: they can't be written.
        """
        if self.watermarks is not None:
            self.watermarks.check(self._session.ordinary())

    def open(self, begins: bool = False) -> PlacedPoint:
        """Open a read point at the end of the log; waits for all transactions that are writing."""
        del begins
        self._tables.check_policies()
        return self.locked(self.create_slot(temporary=True)[1])

    def create_slot(self, temporary: bool) -> tuple[int, PostgresReadPoint]:
        """Create a slot; return its consistent point's LSN, and the read point there."""
        if temporary:
            return create_slot(self._options, self._session.continuity, temporary=True)
        return create_slot(self._options, self._session.continuity, False, self.half_made)

    def locked(self, view: PostgresReadPoint) -> PlacedPoint:
        """Lock the snapshot's tables, if the options ask for that, in the transaction that holds a view of them."""
        if self._lock is not None:
            lock_tables(view, self._options, self._lock, [one.stored.quoted for one in self._tables.readings()])
        return PlacedPoint(view, self)

    def open_unsettled(self) -> PlacedPoint:
        """Open a read point without waiting for transactions."""
        view = PostgresReadPoint(self._options)
        self.prove_place(view)
        if not view.flushed:
            self.flush_log()
        return PlacedPoint(view, self)

    def reopen(self, token: dict[str, Json]) -> None:
        """Return None: a view ends with the process that has opened it."""
        del token

    def prove_place(self, view: PostgresReadPoint) -> None:
        """Verify that a view of the tables is one of the server whose log is read."""
        if not self._session.continuity.same_place(view.place or ""):
            view.release()
            raise ConnectError("The connections to PostgreSQL lead to different servers.")

    def shows(self, lsn: int) -> bool:
        """Return whether everything that was committed before an LSN, as far as capture knows, is visible."""
        text = run(self._session.ordinary(), "SELECT pg_current_snapshot()::text", "the running transactions")[0][0]
        return self._commits.first_hidden(Visibility.parse(text), frozenset(), lsn, lsn) == lsn

    def flush_log(self) -> None:
        """Make the server write its log to disk, which it puts off for many seconds while there are no commits."""
        conn = self._session.ordinary()
        try:
            run(conn, "SET synchronous_commit = local", "the session's commits")
            run(conn, f"SELECT pg_logical_emit_message(true, '{OWN_PREFIX}', '')", "flushing the log")
        except SourceStateError as exc:
            log.info("log_is_not_flushed", error=str(exc))

    def settle(self, view: PostgresReadPoint, after: str) -> bool:
        """Find the exact position of a view, once the log has been captured up to its preliminary one."""
        visible = view.visible
        doubtful: frozenset[int] = frozenset()
        if view.waiting is None:
            # Any transaction that was running when this process began may have been committed before capture began.
            if self._first_xid is None:
                row = run(
                    self._session.ordinary(), "SELECT pg_current_xact_id()::text::int8", "a transaction's number"
                )[0]
                self._first_xid = int(row[0])
            if visible.oldest < self._first_xid:
                return False
        else:
            waiting = np.array(sorted(view.waiting), np.int64)
            doubtful = frozenset(visible.full(waiting)[~visible.sees(waiting)].tolist())
        return view.settle(self._commits, doubtful, after)

    def key_ranges(self, view: PostgresReadPoint, oid: int, key: TableKey, condition: str) -> KeyRanges:
        """Return a table as a view shows it, to be split by its key."""
        return PostgresKeyRanges(view, self._tables.sql_name(oid), key, condition)


class PostgresWindows:
    """A ``WindowSource``: windows between watermarks that are written to the signal table.

    Args:
        options: the source's options.
        session: the connections.
        snapshots: places views in the log.
        watermarks: writes the watermarks.
    """

    def __init__(
        self,
        options: PostgresOptions,
        session: PostgresSession,
        snapshots: PostgresSnapshots,
        watermarks: PostgresWatermarks,
    ) -> None:
        self._options = options
        self._session = session
        self._snapshots = snapshots
        self._watermarks = watermarks

    def open(self, after: str) -> PlacedWindow | None:
        """Write a window's first watermark to the signal table, and take a snapshot after it."""
        conn = self._session.ordinary()
        if not self._snapshots.shows(first_lsn(after)):
            return None
        mark = self._watermarks.open(conn)
        window = PostgresWindow(self._options, mark, log_end(conn)[0])
        self._snapshots.prove_place(window)
        return PlacedWindow(window, self._snapshots, self)

    def close(self, window: PostgresWindow) -> None:
        """Release a window's view, and write its second watermark."""
        window.end_view()
        conn = self._session.ordinary()
        self._watermarks.close(conn, window.mark)
        lsn, flushed = log_end(conn)
        window.close(lsn)
        if not flushed:
            self._snapshots.flush_log()
