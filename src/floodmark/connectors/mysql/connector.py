"""The planner's side of the MySQL and MariaDB connectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from floodmark.capture.log_stream import LogStream
from floodmark.config.mysql import BinlogOptions
from floodmark.connectors.base import Connector, ReadPoint
from floodmark.connectors.mysql.gtid import MariadbGtids, MysqlGtids, Taken, parse_gtids, source_filter
from floodmark.connectors.mysql.log.decode import BinlogDecoder
from floodmark.connectors.mysql.log.places import Places
from floodmark.connectors.mysql.log.signal_rows import SignalRows
from floodmark.connectors.mysql.log.start import KnownPlace, find_start, server_identity
from floodmark.connectors.mysql.log.stream import CaptureSettings, MysqlStream
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.schema.catalog import read_collations, read_schema, read_server
from floodmark.connectors.mysql.schema.follower import SchemaFollower
from floodmark.connectors.mysql.schema.schema import Schema
from floodmark.connectors.mysql.schema.session import Server
from floodmark.connectors.mysql.server.binlogs import LogEnd, binlogs, lag_bytes, log_end
from floodmark.connectors.mysql.server.connection import Connection, close, connect, limit_statements, run
from floodmark.connectors.mysql.server.preflight import obstacles
from floodmark.connectors.mysql.server.side_session import BinlogSideSession
from floodmark.connectors.mysql.snapshot.announcements import announcements
from floodmark.connectors.mysql.snapshot.snapshots import Snapshots
from floodmark.connectors.side_statements import SideStatements
from floodmark.errors import CheckpointError, ConnectError, SchemaHistoryError, SourceStateError
from floodmark.log import get_logger
from floodmark.rows.conversions import load_converters
from floodmark.rows.table_version import EventVersions
from floodmark.snapshot.modes import make_snapshotter

log = get_logger(__name__)

SCHEMA_TRIES = 20


class BinlogConnector(Snapshots):
    """A ``Connector``; opens its connection at the first use."""

    tasks_read = False

    def __init__(self, options: BinlogOptions) -> None:
        super().__init__(options, lambda: connect(options), self._ordinary, self._described, self._position_of)
        load_converters(options)
        self._conn: Connection | None = None
        self._known: Server | None = None
        self._at = ""
        self._left = ""
        self._places = Places()
        self._taken = source_filter(options)
        self._schema = SchemaFollower(options)
        self._aside = SideStatements(lambda: BinlogSideSession(options))

    def identity(self) -> dict[str, str]:
        """Return the kind of the server; which one it is may change, and ``prepare`` proves that it may go on there."""
        return {"connector": self._options.connector}

    def prepare(
        self, snapshot: bool, position: str | None, bookmark: dict[str, Any] | None = None
    ) -> tuple[str, ReadPoint | None]:
        """Prove that the server writes the log that is needed, and know the tables at the place to start from."""
        conn = self._ordinary()
        self._schema.know(self._described(), read_collations(conn))
        for finding in obstacles(conn, self._described(), self._options):
            raise SourceStateError(finding.finding, finding.fix)
        self.check()
        if position is not None:
            self._go_on(conn, position, bookmark)
            return position, None
        point = self.read_point() if snapshot else None
        schema, end = self._settled_schema(conn) if point is None else (point.schema, point.place)
        start = self._position_of(end)
        self._places.add(start, KnownPlace(server_identity(conn, self._options.connector), end.gtids))
        self._schema.begin(start, schema)
        return start, point

    def _position_of(self, place: LogEnd) -> str:
        return str(place.position(self._epoch))

    @property
    def _epoch(self) -> int:
        """The epoch of positions on the server that the connection leads to."""
        newest = self._places.newest()
        if newest is None:
            return 0
        position, place = newest
        return Position.parse(position).epoch + (place.server != self._at)

    def bookmark(self, position: str) -> dict[str, Any] | None:
        """Return the server and the transactions before a position."""
        return self._places.to_json(position)

    def _go_on(self, conn: Connection, position: str, bookmark: dict[str, Any] | None) -> None:
        place = Position.parse(position)
        known = None if bookmark is None else KnownPlace(bookmark["server"], bookmark["gtids"])
        flavor = self._options.connector
        if known is not None:
            server = server_identity(conn, flavor)
            if self._options.gtid_ignore_on_recovery:
                known = replace(known, server=server)
            self._places.add(position, known)
            moved = known.server != server and bool(known.gtids)
            executed = log_end(conn, flavor, self._described().version).gtids if moved else ""
            if moved and not _holds(flavor, executed, known.gtids, self._taken):
                raise CheckpointError(
                    "This server lacks transactions that the query has delivered: it is another source, or a "
                    "replica that was promoted before it had received everything.",
                    "Connect to a server that has them, or start with a new checkpoint and write to a new target.",
                )
        find_start(conn, flavor, place, known, self._taken)
        try:
            self._schema.rewind(position)
        except SchemaHistoryError as exc:
            if not make_snapshotter(self._options).should_snapshot_on_schema_error():
                raise
            log.warning("schema_history_is_rebuilt", error=exc.what, position=position)
            self._schema.begin(position, self._settled_schema(conn)[0])

    def _settled_schema(self, conn: Connection) -> tuple[Schema, LogEnd]:
        """Return the structures of the tables, and a place in the log where they are so."""
        server = self._described()
        before = read_schema(conn, server)
        for _ in range(SCHEMA_TRIES):
            end = log_end(conn, server.flavor, server.version)
            after = read_schema(conn, server)
            if after == before:
                return after, end
            before = after
        raise SourceStateError(
            "The structures of the tables change all the time, so they cannot be read.", "Try again when they rest."
        )

    def delivered(self, position: str) -> None:
        """Forget what lies before."""
        self._places.forget(position)
        self._schema.forget(position)

    def current_position(self) -> str:
        """Return the end of the binlog."""
        server = self._described()
        end = log_end(self._ordinary(), server.flavor, server.version)
        return self._position_of(end)

    def lag_bytes(self, position: str) -> int:
        """Return how many bytes of binlog lie between a position and its end."""
        return lag_bytes(binlogs(self._ordinary()), Position.parse(position))

    def announcements(self, position: str, token: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what the schema change topic tells when a snapshot begins."""
        return announcements(self._ordinary(), self._options, self._schema.schema, position, token)

    def follow_tables(self) -> None:
        """Do nothing: the binlog holds all tables."""

    def oldest_transaction(self) -> int | None:
        """Return nothing: there is no such thing in MySQL's source block."""
        return None

    def run_aside(self, statement: str) -> None:
        """Run a statement without waiting for it."""
        self._aside.run(statement)

    def log_stream(self) -> LogStream:
        """Return a new stream of the binlog."""
        options = self._options
        settings = CaptureSettings(
            options.connector,
            options.replica_id,
            options.segment_bytes,
            options.binlog_heartbeat_ms / 1000,
            taken=self._taken,
        )
        count = None
        if options.provide_transaction_metadata:
            count = BinlogDecoder(options, EventVersions(options)).open_events
        return MysqlStream(
            lambda: connect(options),
            settings,
            self._schema,
            self._places.at,
            SignalRows(options),
            self._places.add,
            count,
        )

    def discard_lost_log(self) -> None:
        """Do nothing: a lost binlog leaves nothing behind."""

    def stop(self) -> None:
        """Close the connections."""
        self._aside.stop()
        if self._conn is not None:
            close(self._conn)
            self._conn = None

    def _described(self) -> Server:
        if self._known is None:
            self._known = read_server(self._ordinary())
        return self._known

    def _ordinary(self) -> Connection:
        """Return the connection for questions; a lost one, or one to a server that capture has left, is opened anew."""
        newest = self._places.newest()
        captured = "" if newest is None else newest[1].server
        if self._conn is not None:
            try:
                run(self._conn, "SELECT 1", "looking whether the connection is alive")
                if captured not in (self._at, self._left):
                    raise ConnectError("The log comes from another server now.")
            except ConnectError:
                close(self._conn)
                self._conn = None
        if self._conn is None:
            self._conn = connect(self._options)
            limit_statements(self._conn, self._options.connector, self._options.query_timeout_ms)
            at = server_identity(self._conn, self._options.connector)
            if at != self._at:
                self._known = None
            self._at, self._left = at, captured
        return self._conn


def _holds(flavor: str, executed: str, known: str, taken: Taken | None) -> bool:
    """Tell whether all transactions that are known, and count, have been executed."""
    ours, theirs = parse_gtids(flavor, known), parse_gtids(flavor, executed)
    if taken is not None:
        ours = ours.filtered(taken)
    if isinstance(ours, MysqlGtids) and isinstance(theirs, MysqlGtids):
        return ours <= theirs
    assert isinstance(ours, MariadbGtids)
    assert isinstance(theirs, MariadbGtids)
    return ours <= theirs


def make_connector(options: BinlogOptions) -> Connector:
    """Return the planner's side of a source."""
    return BinlogConnector(options)
