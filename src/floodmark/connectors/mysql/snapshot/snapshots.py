"""The methods of the connector that the snapshot engines call."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from floodmark.capture.segment import SegmentData
from floodmark.connectors.contract.base import ChunkOutcome, ReadPoint, Window
from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.chunk import Chunk, DescribedTable
from floodmark.connectors.contract.table_key import TableKey
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.server.binlogs import LogEnd
from floodmark.connectors.mysql.server.connection import Connection
from floodmark.connectors.mysql.snapshot.definitions import Definitions
from floodmark.connectors.mysql.snapshot.key_ranges import MysqlKeyRanges, key_of
from floodmark.connectors.mysql.snapshot.read_point import MysqlReadPoint
from floodmark.connectors.mysql.snapshot.read_points import ReadPoints
from floodmark.connectors.mysql.snapshot.row_filters import row_filter, row_query
from floodmark.connectors.mysql.snapshot.rows import chunk_rows
from floodmark.connectors.mysql.snapshot.tables import SnapshotTables
from floodmark.connectors.mysql.snapshot.watermarks import MysqlMarks
from floodmark.connectors.mysql.structures.session import Server
from floodmark.connectors.mysql.structures.table import table_name
from floodmark.snapshots.initial.read_ahead import reading_threads
from floodmark.snapshots.modes import make_query

UNITS = 1


class Snapshots:
    """The part of the ``Connector`` that serves snapshots.

    Args:
        options: the source's options.
        connect: opens a connection to the same server as the connector's own.
        ordinary: returns the connector's own connection.
        server: returns the properties of the server.
        position_of: converts a place in the log to a position.
        reached: returns a position that the log has reached.
        moved: returns whether the log has gone on at another server since a position.
    """

    def __init__(
        self,
        options: BinlogOptions,
        connect: Callable[[], Connection],
        ordinary: Callable[[], Connection],
        server: Callable[[], Server],
        position_of: Callable[[LogEnd], str],
        reached: Callable[[], str],
        moved: Callable[[str], bool],
    ) -> None:
        self._options = options
        self._connect = connect
        self._ordinary = ordinary
        self._server = server
        self._position_of = position_of
        self._reached = reached
        self._moved = moved
        self._tables = SnapshotTables(options, make_query(options), ordinary, server)
        self._marks = MysqlMarks(options) if options.incremental_snapshot_read_points == "watermarks" else None

    def check(self) -> None:
        """Verify that watermarks can be written, if the options ask for them.

        Raises:
            SourceStateError: they can't be written.
        """
        if self._marks is not None:
            self._marks.check(self._ordinary())

    def read_point(self, begins: bool = False) -> MysqlReadPoint:
        """Open a read point at the end of the log."""
        told = begins and self._options.include_schema_changes and self._options.format == "events"
        definitions = Definitions(self._options) if told else None
        point = self._points().open(reading_threads(self._options), definitions=definitions)
        self._tables.forget()
        assert point is not None
        return point

    def fresh_point(self) -> ReadPoint:
        """Open a read point at once; it is settled already."""
        return self.read_point()

    def settle(self, point: ReadPoint, after: str) -> bool:
        """Return whether the log is delivered no further than the point's beginning, and is still the same server's."""
        assert isinstance(point, MysqlReadPoint)
        return point.low >= after and not self._moved(point.position)

    def open_window(self, after: str) -> Window | None:
        """Open a view of the tables at an exact place of the log if there is one at once, else in a window."""
        self._tables.forget()
        del after  # What was delivered was in the log before, and so is before all that is read here.
        if self._marks is not None:
            conn = self._ordinary()
            points = self._points()
            low = points.end_of_log(conn)
            mark = self._marks.open(conn)
            # The log's order is that in which transactions are committed, so all before the watermark is visible.
            window = points.open_view()
            window.low, window.mark = self._position_of(low), mark
            return window
        return self._points().open(1, may_lock=False) or self._points().open_window()

    def window_rows(self, window: ReadPoint, chunk: Chunk) -> Generator[SegmentData, None, ChunkOutcome]:
        """Return the rows of a chunk as a view shows them, as text of MySQL's protocol."""
        assert isinstance(window, MysqlReadPoint)
        return chunk_rows(window, chunk, self._options.snapshot_chunk_bytes, self._tables.find)

    def close_window(self, window: Window) -> None:
        """Release a window's view; with watermarks, mark its end in the signal table."""
        assert isinstance(window, MysqlReadPoint)
        window.end_view()
        if self._marks is not None and window.mark is not None:
            conn = self._ordinary()
            self._marks.close(conn, window.mark)
            end = self._points().end_of_log(conn)
            window.close_at(end, self._position_of(end))

    def snapshot_tables(self) -> list[CapturedTable]:
        """Return the tables to snapshot."""
        return self._tables.to_snapshot()

    def tables(self, sized: bool = False) -> list[CapturedTable]:
        """Return all captured tables."""
        del sized
        return self._tables.described()

    def table_names(self) -> list[str]:
        """Return the names of all captured tables."""
        return self._tables.names()

    def fingerprints(self, oids: Sequence[int]) -> dict[int, str]:
        """Return the fingerprints of tables, which change when they are altered; those that are gone are left out."""
        return {number: found.file for number, found in self._tables.now(oids).items()}

    def key_of(self, oid: int, surrogate: str | None) -> TableKey | None:
        """Return the key that a table is cut by; None if it has none."""
        found = self._tables.now([oid]).get(oid)
        key = None if found is None else key_of(found.table, surrogate)
        # A row with a null in one of several columns is in no range.
        return None if key is None or (key.nulls and len(key.columns) > 1) else key

    def key_ranges(self, point: ReadPoint, oid: int, key: TableKey, condition: str) -> MysqlKeyRanges:
        """Return what cuts a table, as a view shows it, into ranges of its key."""
        assert isinstance(point, MysqlReadPoint)
        return MysqlKeyRanges(point.query, table_name(self._tables.one(oid)), key, condition)

    def row_filter(self, oid: int, condition: str) -> str:
        """Return a signal's condition on the rows of a table as SQL that can do nothing else."""
        return row_filter(self._tables.one(oid), condition, self._options)

    def row_query(self, oid: int, statement: str) -> str:
        """Return a blocking signal's statement on a table as SQL that reads its rows and can do nothing else."""
        return row_query(self._tables.one(oid), statement, self._options)

    def cuts(self, point: ReadPoint, oid: int, count: int) -> list[list[str]]:
        """Return keys that cut a table into ranges."""
        key = self.key_of(oid, None)
        return [] if key is None else self.key_ranges(point, oid, key, "").cuts(count)

    def chunk_units(self) -> int:
        """Return how many units make a chunk."""
        return UNITS

    def describe(self, oids: Sequence[int]) -> dict[int, DescribedTable]:
        """Return tables as chunks name them; those that are gone are left out."""
        return self._tables.to_read(oids)

    def _points(self) -> ReadPoints:
        # Verifies first that the server is still the one that the log comes from.
        self._ordinary()
        return ReadPoints(
            self._connect,
            self._server(),
            self._position_of,
            self._options.snapshot_locking_mode,
            self._options.snapshot_lock_timeout_ms // 1000,
            self._reached(),
            self._moved,
            self._options.snapshot_statement_timeout_ms,
        )
