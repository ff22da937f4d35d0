"""The binlog of a MySQL or MariaDB server, as the planner uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from floodmark.capture.files import open_scratch
from floodmark.capture.gaps import AcceptedGaps, Gap
from floodmark.capture.log_stream import LogStream
from floodmark.capture.spool import TransactionSpool, Undecided
from floodmark.capture.spool_files import SpoolFiles
from floodmark.changes.table_version import EventVersions
from floodmark.connectors.contract.read_points import ReadPoint
from floodmark.connectors.guardrail import guard
from floodmark.connectors.mysql.binlog.xa import branch_name
from floodmark.connectors.mysql.capture.stream import CaptureSettings, MysqlStream
from floodmark.connectors.mysql.continuity.check import ResumePoint, read_mark
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
from floodmark.connectors.mysql.schema.catalog import read_collations, read_schema
from floodmark.connectors.mysql.schema.follower import SchemaFollower
from floodmark.connectors.mysql.server.binlogs import LogEnd, binlogs, end_with_gtids, lag_bytes, log_end
from floodmark.connectors.mysql.server.connection import Connection
from floodmark.connectors.mysql.source.read_points import MysqlSnapshots
from floodmark.connectors.mysql.source.session import MysqlSession
from floodmark.connectors.mysql.source.tables import MysqlTables
from floodmark.errors import LogGoneError, SchemaHistoryError, SourceStateError
from floodmark.json_data import Json, stored_object
from floodmark.logger import get_logger
from floodmark.snapshots.modes import make_snapshotter

log = get_logger(__name__)

SCHEMA_TRIES = 20
BRANCH_CURE = (
    "Ways out: restore the missing binlog files; set event.deserialization.failure.handling.mode=warn, which leaves "
    "its changes out, and read its tables again (execute-snapshot); or start with a new checkpoint."
)


class MysqlLog:
    """A ``LogSource``.

    Args:
        options: the source's options.
        session: the connections.
        tables: the captured tables.
        snapshots: opens the read point at which a new query begins.
        schema: follows the tables' structures along the log.
        gaps: collects the changes that are left out.
    """

    def __init__(
        self,
        options: BinlogOptions,
        session: MysqlSession,
        tables: MysqlTables,
        snapshots: MysqlSnapshots,
        schema: SchemaFollower,
        gaps: AcceptedGaps,
    ) -> None:
        self._options = options
        self._session = session
        self._tables = tables
        self._snapshots = snapshots
        self._schema = schema
        self._gaps = gaps
        self._undecided = UndecidedPlaces()
        self._spool = TransactionSpool(SpoolFiles(options.state_dir, options.owner))

    def create(self, with_read_point: bool) -> tuple[str, ReadPoint | None]:
        """Verify that the server writes the required log, and read the tables' structures at the starting position."""
        conn = self._checked()
        listed = listed_branches(conn, self._options.connector)
        point = self._snapshots.view(begins=True) if with_read_point else None
        schema, end = self._settled_schema(conn) if point is None else (point.schema, point.place)
        start = self._session.position_of(end)
        self._session.places.add(start, self._place_of(end))
        self._schema.begin(start, schema)
        placed = None if point is None else self._snapshots.announced(point)
        self._know_prepared(listed, start)
        return start, placed

    def resume(self, position: str, bookmark: dict[str, Json] | None = None, known: Sequence[str] = ()) -> None:
        """Verify that the server has the log, and restore the tables' structures at the position."""
        del known
        conn = self._checked()
        self._tables.snapshot.statements.checked = True
        self._go_on(conn, position, bookmark)

    def _checked(self) -> Connection:
        conn = self._session.ordinary()
        self._schema.know(self._session.server(), read_collations(conn))
        self._snapshots.check_watermarks()
        if self._options.guardrail_collections_max:
            guard(len(self._tables.names()), self._options)
        return conn

    def check_planned(self, position: str, bookmark: dict[str, Json] | None) -> None:
        """Verify that the log still reaches the end of a micro-batch that an earlier process planned.

        Raises:
            LogGoneError: it doesn't.
            SourceStateError: the batch has changes, and the log now comes from a server with other positions.
        """
        known = None if bookmark is None else ResumePoint.from_json(bookmark)
        try:
            epoch = self._session.prove(position, known)
        except LogGoneError:
            self._begin_another_log(position)
            raise
        if epoch == Position.parse(position).epoch:
            return
        start = self._session.places.at(position)
        if known is not None and start is not None and self._same_transactions(start, known):
            return  # the micro-batch has no changes of the log
        raise SourceStateError(
            "A micro-batch with changes was planned from another server's log, and its end was not recorded: whether "
            "the sink has it isn't known, and this server's log counts its changes otherwise.",
            "Connect to the former server until the micro-batch is committed. If the sink doesn't have it, remove the "
            "newest file of the checkpoint's directory 'offsets': the changes then come from this server.",
        )

    def locate(self, position: str, bookmark: dict[str, Json] | None) -> None:
        """Verify that the server has the log that a query reads, and take over the epoch of positions there."""
        known = None if bookmark is None else ResumePoint.from_json(bookmark)
        self._session.ordinary()
        self._session.epoch = self._session.prove(position, known)

    def bookmark(self, position: str) -> dict[str, Json] | None:
        """Return what is needed besides a position to go on from it; None if the position isn't known.

        That is the server, the transactions before it, the proof of its file, the last history entry there, and where
        the log holds the XA transactions that are prepared there.
        """
        known = self._session.places.to_json(position)
        if known is None:
            return None
        return {**known, "history": self._schema.newest(position), **undecided_json(self._undecided.at(position))}

    def discard_lost(self) -> None:
        """Do nothing: a lost binlog leaves nothing behind."""

    def delivered(self, position: str) -> None:
        """Discard what is stored of earlier positions."""
        self._session.places.forget(position)
        self._undecided.forget(position)
        self._spool.forget(position)
        self._schema.forget(position)

    def end(self) -> str:
        """Return the end of the binlog."""
        conn, server = self._session.ordinary(), self._session.server()
        reached = self._session.reached()
        position = self._session.position_of(log_end(conn, server.flavor, server.version))
        refuse_an_earlier_end(position, reached)
        return position

    def lag_bytes(self, position: str) -> int:
        """Return how many bytes of binlog lie between a position and its end."""
        place = Position.parse(position)
        # Another server's files are numbered differently, so the distance isn't known.
        return lag_bytes(binlogs(self._session.ordinary()), place) if place.epoch == self._session.epoch else 0

    def decode_context(self) -> int | None:
        """Return None: MySQL's source block has no such field."""
        return None

    def open_stream(self) -> LogStream:
        """Return a new stream of the binlog."""
        options = self._options
        self._session.streams = True
        settings = CaptureSettings(
            options.connector,
            options.replica_id,
            options.segment_bytes,
            options.binlog_heartbeat_ms / 1000,
            accepted=self._session.accepted,
            gaps=self._gaps,
        )
        count = None
        if options.provide_transaction_metadata:
            count = BinlogDecoder(options, EventVersions(options)).open_events
        return MysqlStream(
            self._session.logging,
            settings,
            self._schema,
            self._session.places.at,
            SignalRows(options),
            self._session.places.add,
            count,
            self._session.places.reads_from,
            lambda: open_scratch(options.state_dir, options.owner),
            self._spool,
            self._undecided,
            self._search,
        )

    def _place_of(self, end: LogEnd) -> ResumePoint:
        assert self._session.at is not None
        mark = read_mark(self._session.beside, self._options.connector, end.position(self._session.epoch), end.name)
        # On MySQL no GTIDs mean that they are off; on MariaDB the set is just empty.
        gtids = end.gtids if end.gtids or self._session.server().mariadb else None
        return ResumePoint(self._session.at.server, gtids, self._session.at.host, mark)

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
            search = self._branch_search(self._session.beside)
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

    def _go_on(self, conn: Connection, position: str, bookmark: dict[str, Json] | None) -> None:
        known = None if bookmark is None else ResumePoint.from_json(bookmark)
        try:
            start = self._session.proven(position, known)
            undecided = undecided_of(bookmark)
            place = Position.parse(position)
            if undecided is not None and not restored(self._spool, undecided, place, start):
                assert self._session.at is not None
                past = Past(self._options.connector, place, known, undecided, start, self._session.at)
                beginning(conn, past, self._session.accepted)
        except LogGoneError:
            self._begin_another_log(position)
            raise
        self._session.epoch = start.epoch
        if known is not None:
            self._session.places.add(position, known)
        gtids = None if known is None else known.gtids
        self._undecided.add(position, undecided, gtids or "")
        try:
            history = None if bookmark is None else stored_object(bookmark, "A bookmark").optional_text("history")
            self._schema.rewind(position, history)
        except SchemaHistoryError as exc:
            if not make_snapshotter(self._options).should_snapshot_on_schema_error():
                raise
            log.warning("schema_history_is_rebuilt", error=exc.what, position=position)
            self._schema.begin(position, self._settled_schema(conn)[0])

    def _same_transactions(self, one: ResumePoint, other: ResumePoint) -> bool:
        flavor = self._options.connector
        return parse_gtids(flavor, one.gtids or "") == parse_gtids(flavor, other.gtids or "")

    def _begin_another_log(self, position: str) -> None:
        """Start a new epoch, so that a snapshot that replaces a lost log sorts after what was delivered."""
        self._session.places.clear()
        self._undecided.clear()
        self._session.epoch = Position.parse(position).epoch + 1

    def _settled_schema(self, conn: Connection) -> tuple[Schema, LogEnd]:
        """Return the structures of the tables, and an end of the log at which they are in force."""
        server = self._session.server()
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

    def _search(self, key: bytes, before: Position) -> bool:
        """Search the log for an XA transaction that is being committed and whose prepare capture hasn't seen.

        Returns:
            Whether it was found and put into the spool.

        Raises:
            LogGoneError: the log doesn't hold it, and the options don't allow its changes to be left out.
        """
        if self._branch_search(self._session.of_the_log).keep(key, before):
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
        self._gaps.add(Gap(str(before), str(replace(before, event=1)), what, option))
        return False

    def _branch_search(self, connecting: Callable[[], Connection]) -> BranchSearch:
        options = self._options
        scratch = lambda: open_scratch(options.state_dir, options.owner)  # noqa: E731
        return BranchSearch(connecting, options.connector, options.segment_bytes, self._spool, scratch)
