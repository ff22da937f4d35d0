"""The stream of binlog events, cut into segments.

Capture moves bytes and looks only at what it must: where events begin, their checksums, where transactions end,
which tables they touch, and statements that may change tables.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from floodmark.capture.gaps import AcceptedGaps
from floodmark.capture.log_stream import Cut
from floodmark.capture.segment import SegmentData
from floodmark.capture.spool import TransactionSpool, Undecided
from floodmark.connectors.mysql.binlog.inflation import Scratch
from floodmark.connectors.mysql.capture.cutting import Cutter
from floodmark.connectors.mysql.capture.segment_maker import SegmentMaker, Signals
from floodmark.connectors.mysql.continuity.check import Accepted, Dump, KnownPlace, open_dump
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.prepared.branches import Branches, Search
from floodmark.connectors.mysql.prepared.rereading import Past, Rereading, restored
from floodmark.connectors.mysql.prepared.undecided import UndecidedPlaces
from floodmark.connectors.mysql.reading.executed_gtids import Executed
from floodmark.connectors.mysql.reading.table_versions import Structures
from floodmark.connectors.mysql.server.connection import Connection, close
from floodmark.connectors.mysql.server.identity import ServerIdentity, server_identity
from floodmark.errors import ConnectError

BURST_BYTES = 64 << 10
BURST_PAUSE_S = 0.002
HEARTBEAT_S = 10.0
SILENCE_S = 60.0


@dataclass(frozen=True)
class CaptureSettings:
    """What capture needs to be told.

    Attributes:
        flavor: ``mysql`` or ``mariadb``.
        server_id: under which it registers as a replica.
        segment_bytes: size at which a segment is full.
        heartbeat_s: after so long without an event the server says that it is there.
        silence_s: after so long without anything the connection counts as lost.
        accepted: what the options accept when the log is another one.
        gaps: gets what was accepted.
    """

    flavor: str
    server_id: int
    segment_bytes: int
    heartbeat_s: float = HEARTBEAT_S
    silence_s: float = SILENCE_S
    accepted: Accepted = field(default_factory=Accepted)
    gaps: AcceptedGaps = field(default_factory=AcceptedGaps)


class MysqlStream:
    """A ``LogStream`` over one replication connection.

    Args:
        connect: returns a new ordinary connection to a server that logs all that is wanted.
        settings: of capture.
        structures: of tables; follow the log with it.
        known: returns what else is known of a position; None: nothing, so it can only be found on its own server.
        signals: finds signals; None: there are none.
        told: is told what is known of each cut's end, and of where another server's positions begin.
        count: counts the events of each table in the transaction that a segment leaves open; None: nobody counts.
        reads_from: is told which server the log comes from; None when the connection is closed.
        scratch: opens files without a name, for large compressed transactions.
        spool: keeps prepared XA transactions; by default in memory.
        undecided: what the resume state says of them; is told of each cut.
        search: finds prepared transactions in the log before a position; see ``Branches``.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        settings: CaptureSettings,
        structures: Structures,
        known: Callable[[str], KnownPlace | None],
        signals: Signals | None = None,
        told: Callable[[str, KnownPlace], None] | None = None,
        count: Callable[[SegmentData], Mapping[str, int]] | None = None,
        reads_from: Callable[[ServerIdentity | None], None] | None = None,
        scratch: Scratch = tempfile.TemporaryFile,
        spool: TransactionSpool | None = None,
        undecided: UndecidedPlaces | None = None,
        search: Search | None = None,
    ) -> None:
        self._connect = connect
        self._settings = settings
        self._structures = structures
        self._maker = SegmentMaker(settings.flavor, structures, signals, count)
        self._known = known
        self._told = told
        self._reads_from = reads_from
        self._scratch = scratch
        self._branches = Branches(spool or TransactionSpool(), settings.segment_bytes, search)
        self._undecided = undecided or UndecidedPlaces()
        self._position = ""
        self._dump: Dump | None = None
        self._cutter: Cutter | None = None
        self._rereading: Rereading | None = None
        self._last_data = 0.0

    def open(self, position: str) -> None:
        """Connect and let the server send what comes after a position, once it has proven that it is the same log."""
        self._position = position
        dump = self._proven()
        try:
            undecided = self._recall(position, dump)
        except BaseException:
            dump.close()
            raise
        self._last_data = time.monotonic()
        if undecided is None:
            self._begin(dump)
        else:
            dump.close()
            self._rereading = self._read_again(dump, undecided)

    def _proven(self) -> Dump:
        """Return a connection that sends what comes after the position, and has proven that it is the same log."""
        settings = self._settings
        return open_dump(
            self._connect,
            settings.flavor,
            Position.parse(self._position),
            self._known(self._position),
            settings.accepted,
            settings.server_id,
            settings.heartbeat_s,
            settings.segment_bytes,
            settings.silence_s,
            self._scratch,
        )

    def _begin(self, dump: Dump) -> None:
        """Take what a connection sends, from the position on."""
        settings, position, start = self._settings, self._position, dump.start
        self._dump = dump
        self._structures.rewind(position)
        place, known = Position.parse(position), self._known(position)
        # What was delivered of an open transaction comes again, since it is to be known what it is.
        resume = place if start.continues and place.inside else None
        dump.receiver.partial = place.inside
        self._cutter = Cutter(
            position,
            start.epoch,
            resume,
            dump.receiver,
            dump.server,
            Executed(settings.flavor, None if known is None else known.gtids),
            self._maker,
            self._branches,
            self._undecided,
            self._told,
            settings.segment_bytes,
        )
        if start.gap is not None:
            settings.gaps.add(start.gap)
        if self._told is not None and not start.continues:
            # From here on positions count this server's files.
            self._told(str(Position(start.epoch, 0, 0)), self._cutter.place)
        if self._reads_from is not None:
            self._reads_from(dump.server)
        self._cutter.sift()

    def _recall(self, position: str, dump: Dump) -> Undecided | None:
        """Let the spool hold what is prepared at a position; return from where the log tells what it lacks, if any."""
        self._branches.abandon()
        spool = self._branches.spool
        if spool.position == position:
            return None
        undecided = self._undecided.at(position)
        if undecided is None:
            spool.clear(position)
            return None
        if restored(spool, undecided, Position.parse(position), dump.start):
            if undecided.at == position:
                return None
            undecided = replace(undecided, begin=undecided.at)
        else:
            spool.clear("")
        # Nothing may take the spool for one that is up to date until the log has been read again.
        spool.position = ""
        return undecided

    def _read_again(self, proven: Dump, undecided: Undecided) -> Rereading:
        """Return what reads the log before the position again, on the server that was proven to have it."""
        settings, position = self._settings, self._position
        past = Past(
            settings.flavor, Position.parse(position), self._known(position), undecided, proven.start, proven.server
        )
        conn = self._connect()
        try:
            _refuse_others(server_identity(conn, settings.flavor), past)
            return Rereading(
                past,
                conn,
                settings.accepted,
                self._branches,
                settings.segment_bytes,
                settings.server_id,
                settings.heartbeat_s,
                self._scratch,
            )
        except BaseException:
            close(conn)
            raise

    def _go_on(self, rereading: Rereading) -> None:
        """Begin at the position, if it still lies in the log that was read again."""
        self._rereading = None
        rereading.close()
        dump = self._proven()
        try:
            _refuse_others(dump.server, rereading.past)
            known = self._known(self._position)
            gtids = "" if known is None or known.gtids is None else known.gtids
            self._undecided.add(self._position, self._branches.spool.save(self._position), gtids, stepped=True)
        except BaseException:
            dump.close()
            raise
        self._begin(dump)

    def read(self, timeout: float) -> int:
        """Take what has arrived and find the events in it; return its bytes."""
        rereading, held = self._rereading, False
        if rereading is not None:
            count = rereading.read(timeout)
            if rereading.over:
                self._go_on(rereading)
                self.tend()
        else:
            assert self._dump is not None
            assert self._cutter is not None
            if self._cutter.delivering:
                # What is here already comes first.
                self.tend()
                return 0
            held = self._dump.receiver.holding
            count = self._dump.receiver.receive(self._dump.channel.read_into, timeout)
            if count:
                self._cutter.sift()
        if count:
            self.tend()
            # Leaving the server a moment lets it write and us read in large pieces: cheaper for both.
            if count >= BURST_BYTES and not held:
                time.sleep(BURST_PAUSE_S)
        elif time.monotonic() - self._last_data > self._settings.silence_s:
            raise ConnectError(f"Nothing came from the server for {self._settings.silence_s:.0f} s.")
        return count

    def tend(self) -> None:
        """Take no offence at silence while nothing is read."""
        self._last_data = time.monotonic()

    @property
    def place(self) -> KnownPlace:
        """What is known of the end of the last cut, or of idle log behind it, besides its position."""
        assert self._cutter is not None
        return self._cutter.place

    @property
    def full(self) -> bool:
        """Whether a segment's worth of events has been received."""
        return self._cutter is not None and self._cutter.full

    @property
    def spooled_bytes(self) -> int:
        """How many bytes of transactions wait that aren't decided yet."""
        return self._branches.spool.held_bytes

    @property
    def received(self) -> str:
        """Position of the last transaction end that has come."""
        return self._position if self._cutter is None else self._cutter.received

    @property
    def idle_position(self) -> str | None:
        """Up to where the log holds nothing but what was cut; None if events wait."""
        return None if self._cutter is None else self._cutter.idle_position

    def cut(self, force: bool) -> Cut | None:
        """Close what was received up to the last transaction end, or all of it if ``force`` and there is none."""
        return None if self._cutter is None else self._cutter.cut(force)

    def confirm(self, position: str) -> None:
        """Do nothing: the server keeps its binlog as long as its own settings say."""

    def ping(self) -> None:
        """Do nothing: the server sends events as soon as they are there."""

    def close(self) -> None:
        """Close the connection."""
        rereading, self._rereading = self._rereading, None
        if rereading is not None:
            rereading.close()
        dump, self._dump, self._cutter = self._dump, None, None
        if dump is not None:
            dump.close()
        if self._reads_from is not None:
            self._reads_from(None)


def _refuse_others(server: ServerIdentity, past: Past) -> None:
    """Refuse a server that is not the one that was proven to have the log.

    Raises:
        ConnectError: it is another one, or it was started again.
    """
    if server != past.server:
        raise ConnectError(f"The address leads to another server by now: {server.host} ({server.server}).")
