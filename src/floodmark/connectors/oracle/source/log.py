"""The log of an Oracle database, as the planner uses it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from floodmark.capture.gaps import AcceptedGaps
from floodmark.capture.log_stream import LogStream
from floodmark.capture.places import Places
from floodmark.capture.spool_files import SpoolFiles
from floodmark.connectors.contract.read_points import ReadPoint
from floodmark.connectors.guardrail import guard
from floodmark.connectors.oracle.capture.dictionaries import Dictionaries
from floodmark.connectors.oracle.capture.stream import CaptureState, OracleStream
from floodmark.connectors.oracle.capture.window import Trouble
from floodmark.connectors.oracle.checks.obstacles import mining_rights, undecided, unlogged_columns
from floodmark.connectors.oracle.continuity.check import prove, prove_kept
from floodmark.connectors.oracle.continuity.resume_point import LOGMINER, ResumePoint
from floodmark.connectors.oracle.mining.available_logs import archive_destinations
from floodmark.connectors.oracle.mining.dictionary import REDO_LOGS
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import Position, behind
from floodmark.connectors.oracle.replicator.continuity import asked, newest_confirmed, prove_replicated
from floodmark.connectors.oracle.replicator.first_message import FirstMessage
from floodmark.connectors.oracle.replicator.stream import ReplicatorStream
from floodmark.connectors.oracle.schema.follower import SchemaFollower
from floodmark.connectors.oracle.server.catalog import StoredTable, read_tables
from floodmark.connectors.oracle.server.connection import Connection, at_primary, close, connection
from floodmark.connectors.oracle.server.database import (
    current_scn,
    oldest_open_transaction,
    read_database,
)
from floodmark.connectors.oracle.source.read_points import OracleSnapshots
from floodmark.connectors.oracle.source.session import OracleSession
from floodmark.connectors.oracle.source.tables import OracleTables
from floodmark.connectors.oracle.xstream.continuity import prove_outbound, require_outbound
from floodmark.connectors.oracle.xstream.outbound import OutboundServer
from floodmark.connectors.oracle.xstream.stream import LcrStream
from floodmark.errors import CheckpointError, SchemaHistoryError, SourceStateError
from floodmark.json_data import Json
from floodmark.logger import get_logger
from floodmark.snapshots.modes import make_snapshotter

log = get_logger(__name__)

BYTES_PER_CHANGE = 1
"""Nothing tells how many bytes of log lie between two change numbers, so the lag is the distance of these."""


class OracleLog:
    """A ``LogSource``.

    Args:
        options: the source's options.
        session: the connections.
        tables: the captured tables.
        snapshots: opens the read point at which a new query begins.
        gaps: collects the changes that are left out.
    """

    def __init__(
        self,
        options: OracleOptions,
        session: OracleSession,
        tables: OracleTables,
        snapshots: OracleSnapshots,
        gaps: AcceptedGaps,
    ) -> None:
        self._options = options
        self._session = session
        self._tables = tables
        self._snapshots = snapshots
        self._first = FirstMessage(options)
        for name in options.without_effect:
            log.warning("option_has_no_effect", option=name, reason=f"the adapter is {options.adapter}")
        if options.receives_lcrs:
            reason = "it has never been run against Oracle's own interface"
            log.warning("adapter_is_unproven", adapter=options.adapter, reason=reason, see="docs/oracle.md")
        self._state = CaptureState(
            Places(),
            SchemaFollower(options, self._read_tables),
            SpoolFiles(options.state_dir, options.owner),
            gaps,
            Trouble(options.log_wait_ms),
        )

    def create(self, with_read_point: bool) -> tuple[str, ReadPoint | None]:
        """Begin at the newest change, where the read point is; verify that the log has all that is open there."""
        conn = self._session.mining()
        try:
            with at_primary(self._options, conn) as root:
                database = read_database(root)
                self._session.identity = database.identity
                reason = "it has never been run against Oracle"
                log.warning("connector_is_unproven", reason=reason, see="docs/oracle.md")
                self._check_tables()
                self._snapshots.check_watermarks()
                self._ensure_dictionary(conn)
                self._prove_outbound_ready(conn)
                replicated = self._replicated()
                oldest = self._oldest(root)
                point = self._snapshots.open(begins=True) if with_read_point else None
                start = behind(current_scn(root)) if point is None else point.position
            begin = Position.parse(start).scn - 1 if oldest is None else oldest - 1
            self._prove_kept(conn, begin)
        finally:
            close(conn)
        version = self._state.schema.begin(start)
        adapter = self._options.adapter
        found = ResumePoint(database.identity, begin, version, adapter=adapter, replicated=replicated)
        self._state.points.add(start, found)
        if self._options.replicates:
            self._first.begin(start)
        return start, point

    def resume(self, position: str, bookmark: dict[str, Json] | None = None, known: Sequence[str] = ()) -> None:
        """Verify that the database has the log, and restore the tables' structures at the position."""
        del known
        self._tables.snapshot.statements.checked = True
        found = self._proven(position, bookmark)
        self._check_tables()
        self._snapshots.check_watermarks()
        if found is not None:
            self._refuse_other_filters(position, found)
        self._state.points.add(position, self._with_structures(position, found))

    def check_planned(self, position: str, bookmark: dict[str, Json] | None) -> None:
        """Verify that the log reaches what an earlier process planned."""
        self._proven(position, bookmark)

    def locate(self, position: str, bookmark: dict[str, Json] | None) -> None:
        """Verify that the database has the log that a query reads."""
        conn = self._session.mining()
        try:
            known = None if bookmark is None else ResumePoint.from_json(bookmark)
            with at_primary(self._options, conn) as root:
                self._session.identity = prove(root, position, known).identity
        finally:
            close(conn)

    def bookmark(self, position: str) -> dict[str, Json] | None:
        """Return what is needed besides a position to go on from it; None if the position isn't known."""
        found = self._state.points.at(position)
        return None if found is None else found.to_json()

    def discard_lost(self) -> None:
        """Do nothing: a lost log leaves nothing behind."""

    def delivered(self, position: str) -> None:
        """Discard what is stored of earlier positions."""
        self._state.points.forget(position)
        self._state.schema.forget(position)

    def end(self) -> str:
        """Return the position of the newest change."""
        return behind(current_scn(self._session.ordinary()))

    def lag_bytes(self, position: str) -> int:
        """Return how many change numbers lie between a position and the newest one."""
        distance = current_scn(self._session.ordinary()) - (Position.parse(position).scn - 1)
        return max(distance, 0) * BYTES_PER_CHANGE

    def decode_context(self) -> int | None:
        """Return None: segments hold all that the decoder needs."""
        return None

    def open_stream(self) -> LogStream:
        """Return a new stream of the log."""
        if self._options.replicates:
            return ReplicatorStream(self._options, self._session.mining, self._state, self._filters, self._first)
        if self._options.receives_lcrs:
            server = OutboundServer(self._options)
            return LcrStream(self._options, self._session.mining, self._state, self._filters, server)
        return OracleStream(self._options, self._session.mining, self._state, self._filters)

    @property
    def _filters(self) -> str:
        """What the numbers of changes in a transaction depend on: which of them are captured."""
        options = self._options
        chosen = [
            *(options.schema_include_list, options.schema_exclude_list),
            *(options.table_include_list, options.table_exclude_list),
        ]
        texts = [[pattern.pattern for pattern in patterns] for patterns in chosen]
        named = [list(options.usernames_include), list(options.usernames_exclude), list(options.signal_tables)]
        others = [options.table_ignore_builtin, *([] if options.mines else [options.adapter])]
        return hashlib.sha256(repr([texts, named, *others]).encode()).hexdigest()[:16]

    def _refuse_other_filters(self, position: str, found: ResumePoint) -> None:
        if found.filters and found.filters != self._filters:
            raise CheckpointError(
                f"The query was stopped inside a transaction ({position}), and its filters of tables or users are "
                "others by now: which of the transaction's changes were delivered isn't certain any more.",
                "Start it once with the former filters, until the transaction is delivered, and change them then.",
            )

    def _refuse_other_adapter(self, position: str, known: ResumePoint) -> None:
        """Refuse an adapter that may not see all that follows a position of the former one.

        LogMiner's first adapter delivers a statement about tables where it stands in the log; the others where it is
        committed, which is later. So they may deliver one again, but the first would leave one out.
        """
        now = self._options.adapter
        if known.adapter == now or (known.adapter == LOGMINER and not Position.parse(position).is_inside):
            return
        raise CheckpointError(
            f"The query was begun with database.connection.adapter={known.adapter}, and it is {now} now: changes and "
            "statements about tables have other places in their logs.",
            f"Set it to {known.adapter} again, or start with a new checkpoint, which takes a new snapshot. Only from "
            f"{LOGMINER} can a query go on with another adapter, unless it was stopped inside a transaction.",
        )

    def _oldest(self, conn: Connection) -> int | None:
        """Return where the oldest transaction began that may be committed behind a read point opened afterwards.

        What began before this number and is still open at the read point is open now, too; what begins later has a
        higher number. None: the options ask for none.
        """
        if self._options.boundary_mode == "skip":
            log.warning(
                "open_transactions_are_cut",
                reason="changes that transactions have made before the query begins are lost, since "
                "log.mining.transaction.snapshot.boundary.mode is skip",
            )
            return None
        if self._options.receives_lcrs:
            return None  # the server sends what was open, as long as it was created before that began
        for finding in undecided(self._session.ordinary()):
            raise SourceStateError(finding.finding, finding.fix)
        now = current_scn(conn)
        oldest = oldest_open_transaction(conn)
        return now if oldest is None else min(oldest, now)

    def _replicated(self) -> tuple[int, int] | None:
        """Verify that OpenLogReplicator answers, if the log comes from it; return what it was told to forget."""
        return newest_confirmed(asked(self._options)) if self._options.replicates else None

    def _prove_outbound_ready(self, conn: Connection) -> None:
        """Verify that the outbound server is there, and that Oracle's Java interface connects."""
        if not self._options.receives_lcrs:
            return
        require_outbound(conn, self._options)
        server = OutboundServer(self._options)
        server.connect()
        server.detach()

    def _ensure_dictionary(self, conn: Connection) -> None:
        """Let the logs before the beginning have a dictionary, if LogMiner gets it from there."""
        options = self._options
        if options.strategy == REDO_LOGS and options.mines:
            Dictionaries(options, conn, archive_destinations(conn, options.destinations)).ensure()

    def _prove_kept(self, conn: Connection, begin: int) -> None:
        options = self._options
        if not options.mines:
            return
        destinations = archive_destinations(conn, options.destinations)
        mining_rights(conn, destinations)
        prove_kept(conn, begin, options.archive_hours, destinations)

    def _proven(self, position: str, bookmark: dict[str, Json] | None) -> ResumePoint | None:
        known = None if bookmark is None else ResumePoint.from_json(bookmark)
        if known is not None:
            self._refuse_other_adapter(position, known)
        conn = self._session.mining()
        try:
            with at_primary(self._options, conn) as root:
                self._session.identity = prove(root, position, known).identity
            if known is not None:
                self._prove_kept(conn, known.begin)
            if self._options.receives_lcrs:
                prove_outbound(conn, self._options, position, known)
        finally:
            close(conn)
        if self._options.replicates:
            prove_replicated(asked(self._options), position, known)
        return known

    def _with_structures(self, position: str, found: ResumePoint | None) -> ResumePoint:
        """Restore the structures at a position, and return what belongs to it."""
        known = found or ResumePoint(
            self._session.identity, Position.parse(position).scn - 1, adapter=self._options.adapter
        )
        try:
            self._state.schema.restore(position, known.structures)
        except SchemaHistoryError as exc:
            if not make_snapshotter(self._options).should_snapshot_on_schema_error():
                raise
            log.warning("schema_history_is_rebuilt", error=exc.what, position=position)
            self._state.schema.begin(position, is_exact=False)
        return known.with_structures(self._state.schema.version_at(position))

    def _check_tables(self) -> None:
        captured = list(self._tables.snapshot.now().values())
        guard(len(captured), self._options)
        for finding in unlogged_columns(self._session.ordinary(), captured):
            raise SourceStateError(finding.finding, finding.fix)

    def _read_tables(self) -> list[StoredTable]:
        options = self._options
        with connection(options) as conn:
            return read_tables(conn, options.database, options.captures)
