"""The ``LogStream`` of Oracle: mines the log window by window, and keeps transactions until they are committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.capture.gaps import AcceptedGaps, Gap
from floodmark.capture.log_stream import Cut
from floodmark.capture.places import Places
from floodmark.capture.spool_files import SpoolFiles
from floodmark.connectors.oracle.capture.all_changes import AllChanges
from floodmark.connectors.oracle.capture.committed_changes import CommittedChanges
from floodmark.connectors.oracle.capture.cutting import Cutter, segments_of
from floodmark.connectors.oracle.capture.left_out import leave_out
from floodmark.connectors.oracle.capture.reading import Reading
from floodmark.connectors.oracle.capture.retention import scn_at_age
from floodmark.connectors.oracle.capture.wanted_rows import WantedRows
from floodmark.connectors.oracle.capture.window import Trouble, Window, Windows
from floodmark.connectors.oracle.continuity.check import prove, prove_kept
from floodmark.connectors.oracle.continuity.resume_point import ResumePoint
from floodmark.connectors.oracle.ddl.changes import Kind
from floodmark.connectors.oracle.decode.rows_of_transactions import seconds_of
from floodmark.connectors.oracle.decode.segment import Part
from floodmark.connectors.oracle.decode.signal_rows import signals_in
from floodmark.connectors.oracle.mining.session import MiningSession
from floodmark.connectors.oracle.mining.spooling.spooled_rows import SpooledRows
from floodmark.connectors.oracle.mining.statement_pieces import StatementPieces
from floodmark.connectors.oracle.mining.transactions import (
    Committed,
    Found,
    OpenTransactions,
    Statement,
    Unshown,
)
from floodmark.connectors.oracle.mining.view import ROWS
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import Position, behind
from floodmark.connectors.oracle.schema.follower import SchemaFollower
from floodmark.connectors.oracle.server.connection import Connection, at_primary, close, connect
from floodmark.connectors.oracle.server.database import current_scn
from floodmark.connectors.oracle.server.flush import FlushTables
from floodmark.connectors.oracle.structures.table import Table
from floodmark.errors import ConnectError, UnreadableLogError
from floodmark.logger import get_logger

log = get_logger(__name__)

_STEP_BYTES = 1 << 16
"""How much is taken over in one step, unless a segment is full."""
_UNSHOWN_CURE = (
    "Ways out: leave the table out; read it again later (execute-snapshot) with "
    "event.processing.failure.handling.mode=warn, which tells of the gap and goes on; or start with a new checkpoint."
)


@dataclass
class CaptureState:
    """What a source keeps from one stream to the next.

    Attributes:
        points: what belongs to the positions that were reached.
        schema: follows the tables' structures.
        spool: where the rows of open transactions are kept.
        gaps: collects the changes that are left out.
        trouble: how long the log can't be read.
    """

    points: Places[ResumePoint]
    schema: SchemaFollower
    spool: SpoolFiles
    gaps: AcceptedGaps
    trouble: Trouble


class OracleStream:
    """A ``LogStream``.

    Args:
        options: the source's options.
        connect: opens a connection to where the log is mined.
        state: what the source keeps.
        filters: what the numbers of changes in a transaction depend on.
    """

    def __init__(
        self, options: OracleOptions, connect: Callable[[], Connection], state: CaptureState, filters: str
    ) -> None:
        self._options = options
        self._connect = connect
        self._state = state
        self._filters = filters
        self._wanted = WantedRows(options)
        self._session: MiningSession | None = None
        self._windows: Windows | None = None
        self._flush: FlushTables | None = None
        self._work: Iterator[int] | None = None
        self._next_window = 0.0

    def open(self, position: str) -> None:
        """Connect, prove that the database has what follows a position, and start to mine."""
        conn, options = self._connect(), self._options
        try:
            known = self._state.points.at(position)
            with at_primary(options, conn) as root:
                database = prove(root, position, known)
            self._identity = database.identity
            self._reading: Reading = AllChanges() if options.adapter == "logminer" else CommittedChanges()
            self._session = self._mining_session(conn)
            self._windows = Windows(self._options, conn)
            self._flush = self._flushing(conn)
            begin = Position.parse(position).scn - 1 if known is None else known.begin
            prove_kept(conn, begin, self._options.archive_hours, self._windows.destinations)
        except BaseException:
            close(conn)
            raise
        self._rows = SpooledRows(self._state.spool, ROWS)
        abandoned = () if known is None else known.abandoned
        self._transactions = OpenTransactions(self._rows, abandoned)
        self._pieces = StatementPieces()
        self._delivered = Position.parse(position)
        self._last = self._delivered
        self._mined = self._reading.first(begin, self._delivered)
        self._cutter = Cutter(
            position,
            options.segment_bytes,
            lambda data: signals_in(data, options),
            options.whole_transactions,
            self._reading.committed_only,
        )
        self._state.schema.rewind(position)
        self._work = None
        self._next_window = 0.0

    def read(self, timeout: float) -> int:
        """Read some of the log; return how many bytes of committed changes came, or at least 1 if it goes on."""
        if self._cutter.full:
            return 0
        if self._work is None:
            self._begin(timeout)
        if self._work is None:
            return 0
        try:
            return next(self._work)
        except StopIteration:
            self._work = None
            self._state.trouble.over()
            return 0
        except UnreadableLogError as exc:
            self._state.trouble.bear(exc)
            # Rows of the window were taken already, so all is read again from where the offset says.
            raise ConnectError(exc.what, exc.cure) from None

    def _begin(self, timeout: float) -> None:
        """Begin the next window, if it is time and there is something."""
        wait = self._next_window - time.monotonic()
        if wait > 0:
            time.sleep(min(wait, timeout))
            return
        assert self._session is not None
        assert self._windows is not None
        self._limit_session()
        conn = self._session.conn
        # Before anything is written: then the log goes at least as far as what is looked at.
        self._reading.watch(conn)
        if self._flush is not None and not self._options.archived_only:
            self._flush.flush(current_scn(conn))
        begin = self._reading.begin(self._mined)
        window = self._windows.next(self._mined, begin, self._reading.committed_only)
        if window is None:
            self._pause()
            return
        log.info("window_begins", after=window.after, upto=window.upto, logs=len(window.logs))
        rows = self._session.mine(window.logs, window.after, window.upto, window.begin)
        self._work = self._mine(rows, window)

    def _mining_session(self, conn: Connection) -> MiningSession:
        options = self._options
        committed_only = self._reading.committed_only
        return MiningSession(conn, options.wanted_rows(), options.fetch_size, options.dictionary, committed_only)

    def _flushing(self, conn: Connection) -> FlushTables | None:
        options = self._options
        if options.mining_read_only:
            return None
        others = [partial(connect, options, True, address) for address in options.node_addresses()]
        return FlushTables(conn, options.flush_table, others)

    def _close_nodes(self) -> None:
        flush, self._flush = self._flush, None
        if flush is not None:
            flush.close()

    def _pause(self) -> None:
        self._next_window = time.monotonic() + self._options.poll_interval_ms / 1000

    def _limit_session(self) -> None:
        """Give the server its memory back from time to time; the log is then read on from where it was."""
        assert self._session is not None
        limit_s = self._options.session_max_ms / 1000
        if not limit_s or time.monotonic() - self._session.opened < limit_s:
            return
        fresh = self._connect()
        close(self._session.conn)
        self._session = self._mining_session(fresh)
        self._windows = Windows(self._options, fresh)
        self._close_nodes()
        self._flush = self._flushing(fresh)

    def _mine(self, batches: Iterator[pa.Table], window: Window) -> Iterator[int]:
        """Take the rows of a window; yield after each step, so that a segment can be cut."""
        for rows in batches:
            for whole in self._reading.ordered(self._pieces.whole(rows), window.after):
                yield from self._sort(whole)
            yield 1
        if not self._pieces.is_whole:
            raise UnreadableLogError(f"LogMiner's rows up to the change number {window.upto} end inside a statement.")
        for whole in self._reading.rest(self._transactions):
            yield from self._sort(whole)
        self._abandon(window.upto)
        self._mined = window.upto
        self._cutter.reached(behind(window.upto))
        if self._cutter.idle_position is not None:
            self._remember(self._cutter.idle_position, window.upto)
        self._rows.tidy()
        if window.is_last:
            self._pause()

    def _sort(self, rows: pa.Table) -> Iterator[int]:
        for one in self._reading.cut_off(rows).select(["SCN", "XID"]).to_pylist():
            if one["SCN"] >= self._delivered.scn:
                what = f"The transaction {one['XID'].upper()} began before all that is shown as open."
                self._tell(Unshown(one["SCN"], what))
        rows = self._wanted.of(rows, self._state.schema.objects)
        self._known = self._tables_known(rows)
        size = 0
        for found in self._transactions.add(rows):
            for came in self._take(found):
                size += came
                if size >= _STEP_BYTES or self._cutter.full:
                    yield size
                    size = 0
        if size:
            yield size

    def _tables_known(self, rows: pa.Table) -> Mapping[str, Table] | None:
        """Return the structures if they have all tables that rows are of, so that no transaction has to ask."""
        names = pc.unique(pc.binary_join_element_wise(rows["SEG_OWNER"], rows["TABLE_NAME"], ".")).drop_null()
        tables = self._state.schema.tables
        return tables if tables.keys() >= {*names.to_pylist()} else None

    def _take(self, found: Found) -> Iterator[int]:
        if isinstance(found, Committed):
            yield from self._commit(found)
        elif isinstance(found, Statement):
            yield from self._follow(found)
        else:
            self._tell(found)

    def _commit(self, found: Committed) -> Iterator[int]:
        place = Position(found.commit["SCN"][0].as_py(), found.commit["THREAD#"][0].as_py(), found.xid.upper())
        if place.commit < self._delivered.commit or place.end() == self._delivered:
            return  # it was delivered, and is read again with others
        if place.commit < self._last.commit:
            raise UnreadableLogError(
                f"LogMiner shows the commit {place} behind {self._last}: its rows aren't in order.",
                "Check that all redo threads' logs are there.",
            )
        self._last = place
        if self._reading.is_cut_off(found):
            return  # which was told
        seconds = found.commit["TIMESTAMP"][0].value
        done, first_scn, first_seconds = 0, 0, 0
        for rows, ends in self._pieces_of(found):
            if not done:
                first_scn, first_seconds = self._reading.beginning(found, rows)
            part = Part(place, seconds, first_scn, first_seconds, done, len(rows), ends)
            done += len(rows)
            part, rows = self._undelivered(part, rows)
            if len(rows):
                tables = self._state.schema.tables
                if not found.at_once or tables is not self._known:
                    tables = self._tables_of(rows, place.scn)
                yield self._cutter.add(part, rows, tables)

    def _follow(self, found: Statement) -> Iterator[int]:
        """Follow a statement about tables, unless the structures that were restored have it already."""
        place = self._reading.statement_place(found.row)
        if place.commit <= self._delivered.commit:
            return
        self._last = max(self._last, place)
        seconds = int(seconds_of(found.row)[0])
        span = self._reading.statement_span(found.row)
        first_scn, first_seconds, seconds = span or (place.scn, seconds, seconds)
        for kind, logged in self._state.schema.follow(found.row, place.scn, span or ()):
            part = Part(place, seconds, first_scn, first_seconds, 0, 1, True)
            if kind is Kind.TRUNCATE:
                if not self._options.skips("t"):
                    yield self._cutter.add(part, found.row, self._state.schema.tables)
            elif logged.changes and self._options.include_schema_changes:
                yield self._cutter.add(part.without(1), found.row.slice(0, 0), {}, logged)

    def _pieces_of(self, found: Committed) -> Iterator[tuple[pa.Table, bool]]:
        """Yield the changes of a transaction in pieces no larger than a segment, and whether they are the last."""
        for number, rows in enumerate(found.changes):
            for begin, end in segments_of(rows, self._options.segment_bytes):
                yield rows.slice(begin, end - begin), end == len(rows) and number == len(found.changes) - 1

    def _tables_of(self, rows: pa.Table, commit_scn: int) -> Mapping[str, Table]:
        """Return the structures of the captured tables, which must have those that rows are of."""
        tables, missing = self._state.schema.tables_of(rows, commit_scn)
        for name in missing:
            what = f"The log has changes of {name}, which the dictionary doesn't have any more."
            self._tell(Unshown(rows["SCN"][0].as_py(), what))
        return tables

    def _undelivered(self, part: Part, rows: pa.Table) -> tuple[Part, pa.Table]:
        """Leave out changes of the transaction that the position lies in, which were delivered."""
        if part.commit.commit != self._delivered.commit:
            return part, rows
        skipped = min(max(self._delivered.number - part.done, 0), len(rows))
        return part.without(skipped), rows.slice(skipped)

    def _tell(self, found: Unshown) -> None:
        """Stop at what LogMiner doesn't show, or go on and tell of the gap, as the options say."""
        leave_out(self._options, self._state.gaps, found.scn, found.what, _UNSHOWN_CURE)

    def _abandon(self, upto: int) -> None:
        """Leave out transactions that have been open for longer than the option lets them, and tell of that."""
        assert self._session is not None
        retention_ms = self._options.transaction_retention_ms
        oldest = self._transactions.oldest_scn
        if not retention_ms or oldest is None:
            return
        limit = scn_at_age(self._session.conn, upto, -(-retention_ms // 60_000))
        if oldest > limit:
            return
        # Behind the last commit, not at the window's end: nothing may come for long that moves the query there.
        after = self._delivered if self._last == self._delivered else self._last.end()
        for xid, start in self._transactions.abandon(limit).items():
            what = f"The transaction {xid.upper()} has been open since the change number {start}, which is too long."
            option = f"log.mining.transaction.retention.ms={retention_ms}"
            self._state.gaps.add(Gap(str(after), behind(upto), what, option))
            log.warning("transaction_is_abandoned", transaction=xid.upper(), scn=start)

    def _remember(self, position: str, scn: int) -> None:
        """Record where the log must be read from for all that is committed behind a position."""
        open_since = self._reading.oldest(Position.parse(position).scn - 1, self._transactions)
        numbers = [scn, open_since, self._cutter.first_scn]
        begin = min(number - (place > 0) for place, number in enumerate(numbers) if number is not None)
        version = self._state.schema.version_at(position)
        inside = Position.parse(position).is_inside
        filters = self._filters if inside else ""
        abandoned = self._transactions.abandoned
        point = ResumePoint(self._identity, begin, version, filters, abandoned, self._options.adapter)
        self._state.points.add(position, point)

    def tend(self) -> None:
        """Do nothing: the connection stays open by itself."""

    @property
    def full(self) -> bool:
        """Whether a segment's worth of changes has been received."""
        return self._cutter.full

    def cut(self, force: bool) -> Cut | None:
        """Cut a segment."""
        last_open = self._cutter.first_scn
        cut = self._cutter.cut(force)
        if cut is not None:
            place = Position.parse(cut.upto)
            # All of a transaction that goes on behind the cut must be read again.
            inside = last_open if place.is_inside and last_open is not None else place.scn
            self._remember(cut.upto, min(inside, place.scn) - 1)
        return cut

    @property
    def spooled_bytes(self) -> int:
        """How many bytes of state the open transactions take."""
        return self._rows.held_bytes

    @property
    def received(self) -> str:
        """The position that the next cut reaches."""
        return self._cutter.received

    @property
    def idle_position(self) -> str | None:
        """The position up to which all has been cut; None if changes wait."""
        return self._cutter.idle_position

    def confirm(self, position: str) -> None:
        """Do nothing: the server keeps its logs as its administrators say."""

    def ping(self) -> None:
        """Look at once whether the log goes on."""
        self._next_window = 0.0

    def close(self) -> None:
        """Close the connection."""
        self._close_nodes()
        session, self._session = self._session, None
        if session is not None:
            close(session.conn)
