"""The ``LogStream`` of XStream: receives committed transactions from an outbound server."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import pyarrow as pa

from floodmark.capture.log_stream import Cut
from floodmark.connectors.oracle.capture.cutting import Cutter
from floodmark.connectors.oracle.capture.left_out import leave_out
from floodmark.connectors.oracle.capture.sent_changes import Taker, last_number
from floodmark.connectors.oracle.capture.stream import CaptureState
from floodmark.connectors.oracle.continuity.check import prove
from floodmark.connectors.oracle.continuity.resume_point import ResumePoint
from floodmark.connectors.oracle.decode.signal_rows import signals_in
from floodmark.connectors.oracle.mining.view import ROWS
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.server.connection import Connection, close
from floodmark.connectors.oracle.server.database import Database, utc_offset_s
from floodmark.connectors.oracle.xstream.continuity import prove_outbound
from floodmark.connectors.oracle.xstream.lcrs import LcrSource
from floodmark.connectors.oracle.xstream.transactions import Changes, Idle, Transactions, Unknown
from floodmark.errors import SourceStateError, UnreadableLogError

_RECORD = "RS_ID"
_PART_CURE = (
    "Change large objects by INSERT and UPDATE, not by parts (DBMS_LOB). To go on, read the table again later "
    "(execute-snapshot) with event.processing.failure.handling.mode=warn, which tells of the gap."
)


class LcrStream:
    """A ``LogStream``.

    Args:
        options: the source's options.
        connect: opens a connection to the database.
        state: what the source keeps.
        filters: what the numbers of changes in a transaction depend on.
        source: the outbound server.
    """

    def __init__(
        self,
        options: OracleOptions,
        connect: Callable[[], Connection],
        state: CaptureState,
        filters: str,
        source: LcrSource,
    ) -> None:
        self._options = options
        self._connect = connect
        self._state = state
        self._filters = filters
        self._source = source
        self._work: Iterator[int] | None = None

    def open(self, position: str) -> None:
        """Prove that the server has what follows a position, and attach to it."""
        options = self._options
        known = self._state.points.at(position)
        conn = self._connect()
        try:
            database = prove(conn, position, known)
            prove_outbound(conn, options, position, known)
            offset_s = utc_offset_s(conn)
        finally:
            close(conn)
        self._identity = database.identity
        self._names = _names(options, database)
        self._delivered = Position.parse(position)
        self._lcr = None if known is None else known.lcr
        inside = self._delivered if self._delivered.is_inside else None
        self._transactions = Transactions(options.captures, options.segment_bytes, offset_s, self._lcr, inside)
        self._places: deque[tuple[str, str]] = deque()
        self._last = Position(0)
        self._cutter = Cutter(
            position, options.segment_bytes, lambda data: signals_in(data, options), options.whole_transactions
        )
        self._taker = Taker(options, self._state, self._cutter, self._delivered)
        self._state.schema.rewind(position)
        self._idle = position
        self._work = None
        self._source.attach(None if self._lcr is None else bytes.fromhex(self._lcr), self._delivered.scn - 1)

    def read(self, timeout: float) -> int:
        """Take over some of what has come; return how many bytes of changes that is, or at least 1 if it goes on."""
        if self._cutter.full:
            return 0
        if self._work is None:
            lcrs = self._source.receive(timeout)
            if not len(lcrs):
                return 0
            self._refuse_another(lcrs)
            self._work = self._take(lcrs)
        try:
            return next(self._work)
        except StopIteration:
            self._work = None
            return 1

    def _refuse_another(self, lcrs: pa.Table) -> None:
        for name in lcrs["db"].unique().drop_null().to_pylist():
            if name.partition(".")[0].upper() not in self._names:
                raise SourceStateError(
                    f"The outbound server {self._options.outbound_server} sends changes of the database '{name}', and "
                    f"the query is of '{self._options.database}'.",
                    "Create an outbound server of that database's own (source_container_name).",
                )

    def _take(self, lcrs: pa.Table) -> Iterator[int]:
        """Take records over; yield after each step, so that a segment can be cut."""
        for found in self._transactions.add(lcrs):
            if isinstance(found, Idle):
                self._reached(str(Position(found.scn)), found.lcr)
            elif isinstance(found, Unknown):
                what = f"XStream shows a change of {found.table} that isn't one of a row ({found.command})."
                leave_out(self._options, self._state.gaps, found.scn, what, _PART_CURE)
            else:
                self._commit(found)
            if self._cutter.full:
                yield 1
        self._remember_idle()

    def _reached(self, position: str, lcr: str) -> None:
        """Record that nothing else comes up to a position, which belongs to one of the server's."""
        if Position.parse(position) < self._delivered:
            return
        self._last = max(self._last, Position.parse(position))
        self._cutter.reached(position)
        self._places.append((position, lcr))

    def _remember_idle(self) -> None:
        idle = self._cutter.idle_position
        if idle is not None and idle != self._idle:
            self._idle = idle
            self._remember(idle)

    def _commit(self, found: Changes) -> None:
        """Take over changes of a transaction, unless they were delivered and are sent again."""
        place = found.commit
        if place.commit < self._last.commit:
            raise UnreadableLogError(
                f"XStream has sent the commit {place} behind {self._last}: they aren't in order.",
                "Read the tables again (execute-snapshot) if that comes again.",
            )
        rows = self._taker.undelivered(found)
        if not len(rows):
            if found.ends:
                self._reached(str(place.end()), found.lcr)
            return
        self._last = place
        if found.is_statement:
            self._follow(found, rows)
        else:
            self._add(found, rows)
        self._places.append((str(place.end() if found.ends else place.at(last_number(rows))), found.lcr))

    def _add(self, found: Changes, rows: pa.Table) -> None:
        newest = last_number(rows)
        for part, some in self._taker.add(found, rows):
            if part.last != newest:
                self._places.append((str(part.upto), some[_RECORD][-1].as_py()))

    def _follow(self, found: Changes, rows: pa.Table) -> None:
        """Follow a statement about tables."""
        column = ROWS.get_field_index(_RECORD)
        # The place that LogMiner names it by; XStream's is another one.
        named = rows.set_column(column, ROWS.field(column), pa.nulls(1, pa.string()))
        self._taker.follow(found, rows, named, rows[_RECORD][0].as_py())

    def _remember(self, position: str) -> None:
        """Record what belongs to a position, once: an offset may have it."""
        while self._places and self._places[0][0] <= position:
            self._lcr = self._places.popleft()[1]
        newest = self._state.points.newest()
        if newest is not None and newest[0] == position:
            return
        inside = Position.parse(position).is_inside
        point = ResumePoint(
            self._identity,
            Position.parse(position).scn - 1,
            self._state.schema.version_at(position),
            self._filters if inside else "",
            adapter=self._options.adapter,
            lcr=self._lcr,
        )
        self._state.points.add(position, point)

    def tend(self) -> None:
        """Do nothing: what the server sends waits in the JVM, which holds it back if that is much."""

    @property
    def full(self) -> bool:
        """Whether a segment's worth of changes has been received."""
        return self._cutter.full

    def cut(self, force: bool) -> Cut | None:
        """Cut a segment."""
        cut = self._cutter.cut(force)
        if cut is not None:
            self._remember(cut.upto)
        return cut

    @property
    def spooled_bytes(self) -> int:
        """How many bytes of state undecided transactions take: there are none."""
        return 0

    @property
    def received(self) -> str:
        """The position that the next cut reaches."""
        return self._cutter.received

    @property
    def idle_position(self) -> str | None:
        """The position up to which all has been cut; None if changes wait."""
        return self._cutter.idle_position

    def confirm(self, position: str) -> None:
        """Let the server forget what was delivered."""
        point = self._state.points.at(position)
        if point is not None and point.lcr is not None:
            self._source.acknowledge(bytes.fromhex(point.lcr))

    def ping(self) -> None:
        """Do nothing: the server says by itself how far it has come."""

    def close(self) -> None:
        """Detach."""
        self._source.detach()


def _names(options: OracleOptions, database: Database) -> set[str]:
    """Return what the server may name the database; without containers, the address may name a service."""
    return {options.database, *([] if options.pluggable else [database.name.upper()])}
