"""Implements the ``LogStream`` of the binlog: opens it at a position, and cuts it into segments.

Capture moves bytes and reads only what it must: where events begin, their checksums, where transactions end,
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
from floodmark.connectors.mysql.continuity.check import Accepted, Dump, ResumePoint, open_dump
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
    """Settings of capture.

    Attributes:
        flavor: ``mysql`` or ``mariadb``.
        server_id: id to register with as a replica.
        segment_bytes: size at which a segment is full.
        heartbeat_s: seconds without an event after which the server sends a heartbeat.
        silence_s: seconds without any data after which the connection counts as lost.
        accepted: what the options accept when the log is another one.
        gaps: collects the gaps that were accepted.
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
        connect: returns a new ordinary connection to a server that logs all changes that are captured.
        settings: the settings.
        structures: structures of the tables; they follow the log.
        known: returns the place of a position; None: not known, so the position is only valid on its own server.
        signals: finds signals; None: there are none.
        on_position: called with the position and place of each cut's end, and of where another server's positions
            begin.
        count: counts the events of each table in the transaction that a segment leaves open; None: don't count.
        reads_from: called with the server that the log comes from, and with None when the connection is closed.
        scratch: opens unnamed temporary files, for large compressed transactions.
        spool: keeps prepared XA transactions; by default in memory.
        undecided: the resume state of prepared XA transactions; each cut is added.
        search: finds prepared transactions in the log before a position; see ``Branches``.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        settings: CaptureSettings,
        structures: Structures,
        known: Callable[[str], ResumePoint | None],
        signals: Signals | None = None,
        on_position: Callable[[str, ResumePoint], None] | None = None,
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
        self._on_position = on_position
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
        """Connect, prove that it is the same log, and start to receive the log after a position."""
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
        """Return a connection that sends the log after the position, and is proven to send the same log."""
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
        """Start to cut what a connection sends, from the position on."""
        settings, position, start = self._settings, self._position, dump.start
        self._dump = dump
        self._structures.rewind(position)
        place, known = Position.parse(position), self._known(position)
        # The delivered part of an open transaction is received again: its GTID, BEGIN and TABLE_MAP events are needed.
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
            self._on_position,
            settings.segment_bytes,
        )
        if start.gap is not None:
            settings.gaps.add(start.gap)
        if self._on_position is not None and not start.continues:
            # From here on positions refer to this server's files.
            self._on_position(str(Position(start.epoch, 0, 0)), self._cutter.place)
        if self._reads_from is not None:
            self._reads_from(dump.server)
        self._cutter.sift()

    def _recall(self, position: str, dump: Dump) -> Undecided | None:
        """Restore the spool to a position; return the state to read the log again from if that isn't enough."""
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
        # Until the log has been read again the spool is incomplete, and must not be taken for that of any position.
        spool.position = ""
        return undecided

    def _read_again(self, proven: Dump, undecided: Undecided) -> Rereading:
        """Start to read the log before the position again, on the server that was proven to have it."""
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
        """Start the stream at the position, if it still lies in the log that was read again."""
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
        """Receive bytes and find the events in them; return how many bytes there were."""
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
                # Cut the large transaction, which needs nothing more, before receiving.
                self.tend()
                return 0
            held = self._dump.receiver.holding
            count = self._dump.receiver.receive(self._dump.channel.read_into, timeout)
            if count:
                self._cutter.sift()
        if count:
            self.tend()
            # A short pause lets the server write, and us read, in larger pieces, which is cheaper for both.
            if count >= BURST_BYTES and not held:
                time.sleep(BURST_PAUSE_S)
        elif time.monotonic() - self._last_data > self._settings.silence_s:
            raise ConnectError(f"Nothing came from the server for {self._settings.silence_s:.0f} s.")
        return count

    def tend(self) -> None:
        """Reset the silence timeout while reading is paused."""
        self._last_data = time.monotonic()

    @property
    def place(self) -> ResumePoint:
        """The server, GTIDs and mark at the end of the last cut, or of the idle log after it."""
        assert self._cutter is not None
        return self._cutter.place

    @property
    def full(self) -> bool:
        """Whether a segment's worth of events has been received."""
        return self._cutter is not None and self._cutter.full

    @property
    def spooled_bytes(self) -> int:
        """Bytes of transactions in the spool that aren't decided yet."""
        return self._branches.spool.held_bytes

    @property
    def received(self) -> str:
        """Position of the last transaction end that was received."""
        return self._position if self._cutter is None else self._cutter.received

    @property
    def idle_position(self) -> str | None:
        """Position up to which everything in the log has been cut; None if events wait."""
        return None if self._cutter is None else self._cutter.idle_position

    def cut(self, force: bool) -> Cut | None:
        """Cut the received records at the last transaction end, or after all of them if ``force`` and there is none."""
        return None if self._cutter is None else self._cutter.cut(force)

    def confirm(self, position: str) -> None:
        """Do nothing: the server's own settings determine how long it keeps its binlog."""

    def ping(self) -> None:
        """Do nothing: the server sends events without being asked."""

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
        ConnectError: it is another server, or it was restarted.
    """
    if server != past.server:
        raise ConnectError(f"The address leads to another server by now: {server.host} ({server.server}).")
