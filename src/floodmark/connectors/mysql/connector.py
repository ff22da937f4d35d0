"""The planner's side of the MySQL and MariaDB connectors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from floodmark.capture.files import open_scratch
from floodmark.capture.gaps import AcceptedGaps, Gap
from floodmark.capture.log_stream import LogStream
from floodmark.capture.spool import TransactionSpool, Undecided
from floodmark.capture.spool_files import SpoolFiles
from floodmark.changes.table_version import EventVersions
from floodmark.codecs.conversions import load_converters
from floodmark.connectors.contract.base import Connector, ReadPoint
from floodmark.connectors.mysql.binlog.xa import branch_name
from floodmark.connectors.mysql.capture.stream import CaptureSettings, MysqlStream
from floodmark.connectors.mysql.checks.server import obstacles
from floodmark.connectors.mysql.continuity.check import Accepted, ResumePoint, Start, probe, read_mark
from floodmark.connectors.mysql.continuity.resume_points import ResumePoints
from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.decode.decoder import BinlogDecoder
from floodmark.connectors.mysql.decode.signal_rows import SignalRows
from floodmark.connectors.mysql.gtid import parse_gtids
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.prepared.rereading import Past, beginning, restored
from floodmark.connectors.mysql.prepared.search import SEE_THEM, UNSEEN, BranchSearch, listed_branches, names_of
from floodmark.connectors.mysql.prepared.undecided import UndecidedPlaces, undecided_json, undecided_of
from floodmark.connectors.mysql.reading.file_marks import refuse_an_earlier_end
from floodmark.connectors.mysql.schema.catalog import read_collations, read_schema, read_server
from floodmark.connectors.mysql.schema.follower import SchemaFollower
from floodmark.connectors.mysql.server.binlogs import LogEnd, binlogs, end_with_gtids, lag_bytes, log_end
from floodmark.connectors.mysql.server.connection import (
    Connection,
    close,
    connect,
    limit_locks,
    limit_statements,
    run,
)
from floodmark.connectors.mysql.server.identity import ServerIdentity, server_identity
from floodmark.connectors.mysql.server.side_session import BinlogSideSession
from floodmark.connectors.mysql.snapshot.announcements import announcements
from floodmark.connectors.mysql.snapshot.definitions import Announced, Definitions
from floodmark.connectors.mysql.snapshot.read_point import MysqlReadPoint
from floodmark.connectors.mysql.snapshot.snapshots import Snapshots
from floodmark.connectors.mysql.structures.session import Server
from floodmark.connectors.side_statements import SideStatements
from floodmark.errors import ConnectError, LogGoneError, SchemaHistoryError, SourceStateError
from floodmark.logger import get_logger
from floodmark.snapshots.modes import make_snapshotter

log = get_logger(__name__)

SCHEMA_TRIES = 20
BRANCH_CURE = (
    "Ways out: restore the missing binlog files; set event.deserialization.failure.handling.mode=warn, which leaves "
    "its changes out, and read its tables again (execute-snapshot); or start with a new checkpoint."
)


class BinlogConnector(Snapshots):
    """A ``Connector``; opens its connection at the first use."""

    tasks_read = False

    def __init__(self, options: BinlogOptions) -> None:
        super().__init__(
            options, self._beside, self._ordinary, self._described, self._position_of, self._reached, self._moved_since
        )
        load_converters(options)
        self._conn: Connection | None = None
        self._known: Server | None = None
        self._at: ServerIdentity | None = None
        self._epoch = 0
        self.gaps = AcceptedGaps()
        self._places = ResumePoints()
        self._undecided = UndecidedPlaces()
        self._spool = TransactionSpool(SpoolFiles(options.state_dir, options.owner))
        self._accepted = Accepted.from_options(options)
        self._schema = SchemaFollower(options, self.gaps)
        self._streams = self._limited = False
        self._background = SideStatements(lambda: BinlogSideSession(options))

    def identity(self) -> dict[str, str]:
        """Return the kind of server; the server itself may change, and ``prepare`` verifies that it has the log."""
        self._ordinary()
        return {"connector": self._options.connector}

    def prepare(
        self,
        snapshot: bool,
        position: str | None,
        bookmark: dict[str, Any] | None = None,
        known: Sequence[str] = (),
    ) -> tuple[str, ReadPoint | None]:
        """Verify that the server writes the required log, and load the tables' structures at the starting position."""
        del known
        conn = self._ordinary()
        self._schema.know(self._described(), read_collations(conn))
        self.check()
        if position is not None:
            self._tables.begun = True
            self._go_on(conn, position, bookmark)
            return position, None
        listed = listed_branches(conn, self._options.connector)
        point = super().read_point(begins=True) if snapshot else None
        schema, end = self._settled_schema(conn) if point is None else (point.schema, point.place)
        start = self._position_of(end)
        self._places.add(start, self._place_of(end))
        self._schema.begin(start, schema)
        if point is not None:
            self._keep_announced(point)
        self._know_prepared(listed, start)
        return start, point

    def _place_of(self, end: LogEnd) -> ResumePoint:
        assert self._at is not None
        mark = read_mark(self._beside, self._options.connector, end.position(self._epoch), end.name)
        # On MySQL no GTIDs mean that they are off; on MariaDB the set is just empty.
        gtids = end.gtids if end.gtids or self._described().mariadb else None
        return ResumePoint(self._at.server, gtids, self._at.host, mark)

    def read_point(self, begins: bool = False) -> MysqlReadPoint:
        """Open a read point at the end of the log; store its announcements if a snapshot begins with it."""
        point = super().read_point(begins)
        self._keep_announced(point)
        return point

    def _keep_announced(self, point: MysqlReadPoint) -> None:
        if point.announced is not None:
            self._schema.announce(point.position, point.announced.to_lines())
            point.announced = None

    def _know_prepared(self, listed: list[bytes] | None, start: str) -> None:
        """Find where to read the log from to see the XA transactions that are undecided at the start.

        Args:
            listed: the transactions that were prepared before the start; None if the account may not list them. One
                that is not found here is searched for when it is committed, if the server still has that part of the
                log then.
            start: position from which changes are delivered.
        """
        if listed is None:
            log.warning("prepared_transactions_are_unknown", position=start, reason=UNSEEN, next=SEE_THEM)
        undecided = None
        if listed:
            search = self._branch_search(self._beside)
            places = search.places(listed, Position.parse(start))
            missing = set(listed) - places.keys()
            if missing:
                log.warning("prepared_transactions_are_not_in_the_log", transactions=names_of(missing))
            begun = {key: place for key, place in places.items() if place is not None}
            if begun:
                key, oldest = min(begun.items(), key=lambda one: one[1])
                # On another server the position is found by the transactions before it.
                undecided = Undecided(str(oldest), search.gtids_before(oldest), oldest=branch_name(key))
        self._undecided.add(start, undecided)

    def _position_of(self, place: LogEnd) -> str:
        return str(place.position(self._epoch))

    def _reached(self) -> str:
        """Return a position that the log has reached; empty if none is known in the connection's epoch."""
        newest = self._places.newest()
        return "" if newest is None or Position.parse(newest[0]).epoch != self._epoch else newest[0]

    def _moved_since(self, position: str) -> bool:
        """Return whether the log has moved to another server, where what lay before a position may come after it."""
        newest = self._places.newest()
        return newest is not None and Position.parse(newest[0]).epoch > Position.parse(position).epoch

    def bookmark(self, position: str) -> dict[str, Any] | None:
        """Return what is needed besides a position to go on from it; None if the position isn't known.

        That is the server, the transactions before it, the proof of its file, the last history entry there, and where
        the log holds the XA transactions that are prepared there.
        """
        known = self._places.to_json(position)
        if known is None:
            return None
        return {**known, "history": self._schema.newest(position), **undecided_json(self._undecided.at(position))}

    def prove_complete(self, position: str, ends: bool = False) -> None:
        """Do nothing: each new connection checks what the server leaves out of its binlog."""
        del position, ends

    def _go_on(self, conn: Connection, position: str, bookmark: dict[str, Any] | None) -> None:
        known = None if bookmark is None else ResumePoint.from_json(bookmark)
        try:
            start = self._proven(position, known)
            undecided = undecided_of(bookmark)
            place = Position.parse(position)
            if undecided is not None and not restored(self._spool, undecided, place, start):
                assert self._at is not None
                past = Past(self._options.connector, place, known, undecided, start, self._at)
                beginning(conn, past, self._accepted)
        except LogGoneError:
            self._begin_another_log(position)
            raise
        self._epoch = start.epoch
        if known is not None:
            self._places.add(position, known)
        gtids = None if known is None else known.gtids
        self._undecided.add(position, undecided, gtids or "")
        try:
            self._schema.rewind(position, None if bookmark is None else bookmark.get("history"))
        except SchemaHistoryError as exc:
            if not make_snapshotter(self._options).should_snapshot_on_schema_error():
                raise
            log.warning("schema_history_is_rebuilt", error=exc.what, position=position)
            self._schema.begin(position, self._settled_schema(conn)[0])

    def check_planned(self, position: str, bookmark: dict[str, Any] | None) -> None:
        """Verify that the log still reaches the end of a micro-batch that an earlier process planned.

        Raises:
            LogGoneError: it doesn't.
            SourceStateError: the batch has changes, and the log now comes from a server with other positions.
        """
        known = None if bookmark is None else ResumePoint.from_json(bookmark)
        try:
            epoch = self._prove(position, known)
        except LogGoneError:
            self._begin_another_log(position)
            raise
        if epoch == Position.parse(position).epoch:
            return
        start = self._places.at(position)
        if known is not None and start is not None and self._same_transactions(start, known):
            return  # the micro-batch has no changes of the log
        raise SourceStateError(
            "A micro-batch with changes was planned from another server's log, and its end was not recorded: whether "
            "the sink has it isn't known, and this server's log counts its changes otherwise.",
            "Connect to the former server until the micro-batch is committed. If the sink doesn't have it, remove the "
            "newest file of the checkpoint's directory 'offsets': the changes then come from this server.",
        )

    def _same_transactions(self, one: ResumePoint, other: ResumePoint) -> bool:
        flavor = self._options.connector
        return parse_gtids(flavor, one.gtids or "") == parse_gtids(flavor, other.gtids or "")

    def _begin_another_log(self, position: str) -> None:
        """Start a new epoch, so that a snapshot that replaces a lost log sorts after what was delivered."""
        self._places.clear()
        self._undecided.clear()
        self._epoch = Position.parse(position).epoch + 1

    def _prove(self, position: str, known: ResumePoint | None) -> int:
        """Verify that the server has the log that a position belongs to; return the epoch of positions there."""
        return self._proven(position, known).epoch

    def _proven(self, position: str, known: ResumePoint | None) -> Start:
        """Verify that the server has the log that a position belongs to; return where a stream would begin."""
        options = self._options
        start = probe(self._beside, options.connector, Position.parse(position), known, self._accepted)
        if start.gap is not None:
            self.gaps.add(start.gap)
        return start

    def _settled_schema(self, conn: Connection) -> tuple[Schema, LogEnd]:
        """Return the structures of the tables, and an end of the log at which they are in force."""
        server = self._described()
        before = read_schema(conn, server)
        for _ in range(SCHEMA_TRIES):
            end = end_with_gtids(conn, server.flavor, server.version)
            after = read_schema(conn, server)
            if after == before:
                return after, end
            before = after
        raise SourceStateError(
            "The structures of the tables change all the time, so they cannot be read.", "Try again when they rest."
        )

    def delivered(self, position: str) -> None:
        """Discard what is stored of earlier positions."""
        self._places.forget(position)
        self._undecided.forget(position)
        self._spool.forget(position)
        self._schema.forget(position)

    def current_position(self) -> str:
        """Return the end of the binlog."""
        conn, server = self._ordinary(), self._described()
        reached = self._reached()
        position = self._position_of(log_end(conn, server.flavor, server.version))
        refuse_an_earlier_end(position, reached)
        return position

    def lag_bytes(self, position: str) -> int:
        """Return how many bytes of binlog lie between a position and its end."""
        place = Position.parse(position)
        # Another server's files are numbered differently, so the distance isn't known.
        return lag_bytes(binlogs(self._ordinary()), place) if place.epoch == self._epoch else 0

    def announcements(self, position: str, token: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the schema change events that a snapshot begins with."""
        if not self._options.include_schema_changes:
            return []
        lines = self._schema.announced(position)
        if lines is None:
            # The schema history was rebuilt, or an earlier version planned it: announce the present structures.
            log.warning("tables_are_announced_as_they_are_now", position=position)
            definitions, schema = Definitions(self._options), self._schema.schema
            definitions.read(self._ordinary(), schema)
            announced = definitions.announced(self._ordinary(), schema)
        else:
            announced = Announced.from_lines(lines)
        return announcements(self._options, announced, position, token)

    def follow_tables(self, known: Collection[str]) -> frozenset[str]:
        """Return no tables: the binlog holds all of them."""
        del known
        return frozenset()

    def oldest_transaction(self) -> int | None:
        """Return None: MySQL's source block has no such field."""
        return None

    def execute_in_background(self, statement: str) -> None:
        """Run a statement without waiting for it."""
        self._background.run(statement)

    def log_stream(self) -> LogStream:
        """Return a new stream of the binlog."""
        options = self._options
        self._streams = True
        settings = CaptureSettings(
            options.connector,
            options.replica_id,
            options.segment_bytes,
            options.binlog_heartbeat_ms / 1000,
            accepted=self._accepted,
            gaps=self.gaps,
        )
        count = None
        if options.provide_transaction_metadata:
            count = BinlogDecoder(options, EventVersions(options)).open_events
        return MysqlStream(
            self._logging,
            settings,
            self._schema,
            self._places.at,
            SignalRows(options),
            self._places.add,
            count,
            self._places.reads_from,
            lambda: open_scratch(options.state_dir, options.owner),
            self._spool,
            self._undecided,
            self._search,
        )

    def _search(self, key: bytes, before: Position) -> bool:
        """Search the log for an XA transaction that is being committed and whose prepare capture hasn't seen.

        Returns:
            Whether it was found and put into the spool.

        Raises:
            LogGoneError: the log doesn't hold it, and the options don't allow its changes to be left out.
        """
        if self._branch_search(self._of_the_log).keep(key, before):
            return True
        mode = self._options.event_deserialization_failure_handling_mode
        what = (
            f"The XA transaction {branch_name(key)} is committed at {before}, but the server's log doesn't hold its "
            "changes: it was prepared before the oldest binlog file, or with sql_log_bin=0."
        )
        if mode == "fail":
            raise LogGoneError(what, BRANCH_CURE)
        if mode == "warn":
            log.warning("prepared_transaction_is_left_out", transaction=branch_name(key), position=str(before))
        option = f"event.deserialization.failure.handling.mode={mode}"
        self.gaps.add(Gap(str(before), str(replace(before, event=1)), what, option))
        return False

    def _branch_search(self, connecting: Callable[[], Connection]) -> BranchSearch:
        options = self._options
        scratch = lambda: open_scratch(options.state_dir, options.owner)  # noqa: E731
        return BranchSearch(connecting, options.connector, options.segment_bytes, self._spool, scratch)

    def discard_lost_log(self) -> None:
        """Do nothing: a lost binlog leaves nothing behind."""

    def stop(self) -> None:
        """Close the connections."""
        self._background.stop()
        if self._conn is not None:
            close(self._conn)
            self._conn = None

    def _described(self) -> Server:
        if self._known is None:
            self._known = read_server(self._ordinary())
        return self._known

    def _logging(self) -> Connection:
        """Open a connection to the server after checking that it logs everything that is needed."""
        conn = connect(self._options)
        try:
            for finding in obstacles(conn, read_server(conn), self._options):
                raise SourceStateError(finding.finding, finding.fix)
        except BaseException:
            close(conn)
            raise
        return conn

    def _beside(self) -> Connection:
        """Open another connection to the server that the ordinary one leads to."""
        return self._connection_to(self._at)

    def _of_the_log(self) -> Connection:
        """Open a connection to the server that capture reads the log from."""
        return self._connection_to(self._places.reader[1])

    def _connection_to(self, server: ServerIdentity | None) -> Connection:
        conn = connect(self._options)
        try:
            at = server_identity(conn, self._options.connector)
            if at != server:
                raise ConnectError(f"The address leads to another server by now: {at.host} ({at.server}).")
        except BaseException:
            close(conn)
            raise
        return conn

    def _ordinary(self) -> Connection:
        """Return the ordinary connection; replace it if it is lost or leads to a server that capture has left.

        Raises:
            ConnectError: it leads to another server than the one that the log comes from.
            FloodmarkError: that server's log is not the one that was read.
        """
        captured, reader = self._places.reader
        if self._conn is not None:
            try:
                run(self._conn, "SELECT 1", "looking whether the connection is alive")
                self._agree(reader)
            except ConnectError:
                close(self._conn)
                self._conn = None
        if self._conn is None:
            conn = self._logging()
            try:
                at, before = server_identity(conn, self._options.connector), self._at
                self._at = at
                self._agree(reader)
                if at != before:
                    self._known = None
                    if reader is None:
                        self._take_up(captured)
                limit_statements(conn, self._options.connector, self._options.query_timeout_ms)
            except BaseException:
                self._at = None
                close(conn)
                raise
            self._conn = conn
            self._limited = False
        if self._streams and not self._limited:
            limit_ms = self._options.snapshot_statement_timeout_ms
            limit_ms = min(self._options.query_timeout_ms or limit_ms, limit_ms)
            limit_statements(self._conn, self._options.connector, limit_ms)
            if self._options.connector == "mysql":
                # Its limit is for SELECT only.
                limit_locks(self._conn, limit_ms // 2)
            self._limited = True
        return self._conn

    def _agree(self, reader: ServerIdentity | None) -> None:
        """Verify that the connection leads to the server that the log comes from, and take over its epoch.

        Raises:
            ConnectError: it leads to another server.
        """
        if reader is None:
            return
        if reader != self._at:
            raise ConnectError(f"The log comes from another server now: {reader.host} ({reader.server}).")
        newest = self._places.newest()
        if newest is not None:
            self._epoch = Position.parse(newest[0]).epoch

    def _take_up(self, captured: bool) -> None:
        """Verify that a server that is new to this process, and that capture doesn't read from, has the known log."""
        newest = self._places.newest()
        if newest is None:
            return
        position, known = newest
        place = Position.parse(position)
        # File 0: capture had just moved to another server, and no position of its log is known yet.
        epoch = self._prove(position, known) if place.file else None
        if captured and epoch != place.epoch:
            # Going on here would mean waiting for a position that the log may never reach.
            raise ConnectError("The address leads to another server, and the log doesn't come from there yet.")
        assert epoch is not None
        self._epoch = epoch


def make_connector(options: BinlogOptions) -> Connector:
    """Return the connector of a source."""
    return BinlogConnector(options)
