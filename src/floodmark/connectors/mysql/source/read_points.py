"""Read points and windows of a MySQL or MariaDB server, as the planner uses them.

How views are opened and placed in the log is in ``snapshot.read_points``; here they meet the tables.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from floodmark.capture.segment import SegmentData
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.contract.read_points import ChunkOutcome
from floodmark.connectors.contract.table_key import TableKey
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.schema.follower import SchemaFollower
from floodmark.connectors.mysql.snapshot.announcements import announcements
from floodmark.connectors.mysql.snapshot.definitions import Announced, Definitions
from floodmark.connectors.mysql.snapshot.key_ranges import MysqlKeyRanges
from floodmark.connectors.mysql.snapshot.read_point import MysqlReadPoint
from floodmark.connectors.mysql.snapshot.read_points import ReadPoints
from floodmark.connectors.mysql.snapshot.rows import chunk_rows
from floodmark.connectors.mysql.snapshot.watermarks import MysqlWatermarks
from floodmark.connectors.mysql.source.session import MysqlSession
from floodmark.connectors.mysql.source.tables import MysqlTables
from floodmark.events.columns import EventRow
from floodmark.json_data import Json
from floodmark.logger import get_logger
from floodmark.snapshots.initial.read_ahead import reading_threads

log = get_logger(__name__)


class PlacedPoint:
    """A ``ReadPoint`` that reads its rows in this process, and so ``LocalRows``.

    Args:
        view: the view of the tables.
        source: what opened it.
    """

    def __init__(self, view: MysqlReadPoint, source: MysqlSnapshots) -> None:
        self._view = view
        self._source = source

    @property
    def local(self) -> PlacedPoint:
        """Reads its rows: a view belongs to the connection that opened it."""
        return self

    @property
    def position(self) -> str:
        """Its position."""
        return self._view.position

    @property
    def token(self) -> dict[str, Json]:
        """What identifies it."""
        return self._view.token

    @property
    def visible(self) -> str:
        """The GTIDs that it sees; empty if it isn't known by them."""
        return self._view.place.gtids

    def alive(self) -> bool:
        """Return whether it can still be read from."""
        return self._view.alive()

    def settle(self, after: str) -> bool:
        """Return whether the log is delivered no further than its beginning, and is still the same server's."""
        return self._view.low >= after and not self._source.moved_since(self._view.position)

    def key_ranges(self, oid: int, key: TableKey, condition: str) -> MysqlKeyRanges:
        """Return a table as the view shows it, to be split by its key."""
        return self._source.key_ranges(self._view, oid, key, condition)

    def rows(self, chunk: Chunk) -> Generator[SegmentData, None, ChunkOutcome]:
        """Return the rows of a chunk as the view shows them, as text of MySQL's protocol."""
        return self._source.rows(self._view, chunk)

    def split(self, oid: int, count: int) -> list[list[str]]:
        """Return keys that split a table into ranges."""
        return self._source.split(self._view, oid, count)

    def release(self) -> None:
        """Close its connections; threads that read get a ``ConnectError``."""
        self._view.release()


class PlacedWindow(PlacedPoint):
    """A ``Window``, or an exact read point that is used as one."""

    @property
    def low(self) -> str:
        """Where it begins."""
        return self._view.low

    def close(self) -> None:
        """Release the view; with watermarks, mark its end in the signal table."""
        self._source.close_window(self._view)


class MysqlSnapshots:
    """A ``SnapshotSource``.

    Args:
        options: the source's options.
        session: the connections.
        tables: the captured tables.
        schema: follows the tables' structures along the log, and stores what a snapshot announces.
    """

    local = True

    def __init__(
        self, options: BinlogOptions, session: MysqlSession, tables: MysqlTables, schema: SchemaFollower
    ) -> None:
        self._options = options
        self._session = session
        self._tables = tables
        self._schema = schema
        self._watermarks = (
            MysqlWatermarks(options) if options.incremental_snapshot_read_points == "watermarks" else None
        )

    def check_watermarks(self) -> None:
        """Verify that watermarks can be written, if the options ask for them.

        Raises:
            SourceStateError: they can't be written.
        """
        if self._watermarks is not None:
            self._watermarks.check(self._session.ordinary())

    def open(self, begins: bool = False) -> PlacedPoint:
        """Open a read point at the end of the log; store its announcements if a snapshot begins with it."""
        return self.announced(self.view(begins))

    def open_unsettled(self) -> PlacedPoint:
        """Open a read point; it is settled already."""
        return self.open()

    def reopen(self, token: dict[str, Json]) -> None:
        """Return None: a view ends with the process that has opened it."""
        del token

    def view(self, begins: bool) -> MysqlReadPoint:
        """Open a view of the tables at the end of the log.

        Args:
            begins: whether a snapshot of all tables begins with it, so that their structures are read with it.
        """
        announces = begins and self._options.include_schema_changes and self._options.format == "events"
        definitions = Definitions(self._options) if announces else None
        view = self._points().open(reading_threads(self._options), definitions=definitions)
        self._tables.snapshot.forget()
        assert view is not None
        return view

    def announced(self, view: MysqlReadPoint) -> PlacedPoint:
        """Return the read point of a view, with its announcements stored, if there are any."""
        if view.announced is not None:
            self._schema.announce(view.position, view.announced.to_lines())
            view.announced = None
        return PlacedPoint(view, self)

    def schema_events(self, position: str, token: Mapping[str, Json]) -> list[EventRow]:
        """Return the schema change events that a snapshot begins with."""
        if not self._options.include_schema_changes:
            return []
        lines = self._schema.announced(position)
        if lines is None:
            # The schema history was rebuilt, or an earlier version planned it: announce the present structures.
            log.warning("tables_are_announced_as_they_are_now", position=position)
            definitions, schema = Definitions(self._options), self._schema.schema
            definitions.read(self._session.ordinary(), schema)
            announced = definitions.announced(self._session.ordinary(), schema)
        else:
            announced = Announced.from_lines(lines)
        return announcements(self._options, announced, position, token)

    def moved_since(self, position: str) -> bool:
        """Return whether the log has moved to another server since a position."""
        return self._session.moved_since(position)

    def key_ranges(self, view: MysqlReadPoint, oid: int, key: TableKey, condition: str) -> MysqlKeyRanges:
        """Return a table as a view shows it, to be split by its key."""
        return MysqlKeyRanges(view.query, self._tables.sql_name(oid), key, condition)

    def rows(self, view: MysqlReadPoint, chunk: Chunk) -> Generator[SegmentData, None, ChunkOutcome]:
        """Return the rows of a chunk as a view shows them."""
        return chunk_rows(view, chunk, self._options.snapshot_chunk_bytes, self._tables.snapshot.find)

    def split(self, view: MysqlReadPoint, oid: int, count: int) -> list[list[str]]:
        """Return keys that split a table, as a view shows it, into ranges."""
        key = self._tables.key_of(oid, None)
        return [] if key is None else self.key_ranges(view, oid, key, "").cuts(count)

    def open_window(self) -> PlacedWindow:
        """Open a view of the tables at an exact place of the log if there is one at once, else in a window."""
        self._tables.snapshot.forget()
        if self._watermarks is not None:
            conn = self._session.ordinary()
            points = self._points()
            low = points.end_of_log(conn)
            mark = self._watermarks.open(conn)
            # The log's order is that in which transactions are committed, so all before the watermark is visible.
            view = points.open_view()
            view.low, view.mark = self._session.position_of(low), mark
            return PlacedWindow(view, self)
        return PlacedWindow(self._points().open(1, may_lock=False) or self._points().open_window(), self)

    def close_window(self, view: MysqlReadPoint) -> None:
        """Release a window's view; with watermarks, mark its end in the signal table."""
        view.end_view()
        if self._watermarks is not None and view.mark is not None:
            conn = self._session.ordinary()
            self._watermarks.close(conn, view.mark)
            end = self._points().end_of_log(conn)
            view.close_at(end, self._session.position_of(end))

    def _points(self) -> ReadPoints:
        # Verifies first that the server is still the one that the log comes from.
        self._session.ordinary()
        return ReadPoints(
            self._session.beside,
            self._session.server(),
            self._session.position_of,
            self._options.snapshot_locking_mode,
            self._options.snapshot_lock_timeout_ms // 1000,
            self._session.reached(),
            self._session.moved_since,
            self._options.snapshot_statement_timeout_ms,
        )


class MysqlWindows:
    """A ``WindowSource``.

    Args:
        snapshots: opens the views.
    """

    def __init__(self, snapshots: MysqlSnapshots) -> None:
        self._snapshots = snapshots

    def open(self, after: str) -> PlacedWindow:
        """Open a window; what was delivered was in the log before, and so is before all that is read in it."""
        del after
        return self._snapshots.open_window()
