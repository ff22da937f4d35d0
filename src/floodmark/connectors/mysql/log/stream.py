"""The stream of binlog events, cut into segments.

Capture moves bytes and looks only at what it must: where events begin, their checksums, where transactions end,
which tables they touch, and statements that may change tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from floodmark.capture.log_stream import Cut
from floodmark.capture.segment import SegmentData
from floodmark.connectors.mysql.gtid import Gtids, Taken, parse_gtids
from floodmark.connectors.mysql.log.boundaries import type_set
from floodmark.connectors.mysql.log.channel import DumpChannel
from floodmark.connectors.mysql.log.event_types import AT_TIMESTAMP, CHECKSUM_BYTES, GTIDS, PACKET
from floodmark.connectors.mysql.log.packets import le_view
from floodmark.connectors.mysql.log.receiver import Receiver
from floodmark.connectors.mysql.log.segments import OpenTransaction, event_at
from floodmark.connectors.mysql.log.start import KnownPlace, find_start, server_identity
from floodmark.connectors.mysql.log.touched import Structures, Touched, opened_at_end
from floodmark.connectors.mysql.log.transactions import parse_gtid, with_transactions
from floodmark.connectors.mysql.log.waiting import Bytes, Indices
from floodmark.connectors.mysql.position import ALL_ROWS, Position
from floodmark.connectors.mysql.server.connection import Connection, close
from floodmark.errors import ConnectError, DecodeError, SourceStateError

BURST_BYTES = 64 << 10
BURST_PAUSE_S = 0.002
HEARTBEAT_S = 10.0
SILENCE_S = 60.0

_GTIDS = type_set(*GTIDS)


@dataclass(frozen=True)
class CaptureSettings:
    """What capture needs to be told.

    Attributes:
        flavor: ``mysql`` or ``mariadb``.
        server_id: under which it registers as a replica.
        segment_bytes: size at which a segment is full.
        heartbeat_s: after so long without an event the server says that it is there.
        silence_s: after so long without anything the connection counts as lost.
        taken: which sources' GTIDs count when another server is read.
    """

    flavor: str
    server_id: int
    segment_bytes: int
    heartbeat_s: float = HEARTBEAT_S
    silence_s: float = SILENCE_S
    taken: Taken | None = None


class Signals(Protocol):
    """Finds signals in segments."""

    def is_signal_table(self, database: str, table: str) -> bool:
        """Tell whether signals come by rows of a table."""

    def signals(self, data: SegmentData, after: str, upto: str) -> Sequence[tuple[str, dict[str, str]]]:
        """Return the signals of a segment that touches such a table, each with its position.

        Args:
            data: the segment.
            after: position just before it.
            upto: position of its end.
        """


class MysqlStream:
    """A ``LogStream`` over one replication connection.

    Args:
        connect: returns a new ordinary connection; the stream opens two and closes them.
        settings: of capture.
        structures: of tables; follow the log with it.
        known: returns what else is known of a position; None: nothing, so it can only be found on its own server.
        signals: finds signals; None: there are none.
        told: is told what is known of each cut's end, and of where another server's positions begin.
        count: counts the events of each table in the transaction that a segment leaves open; None: nobody counts.
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
    ) -> None:
        self._connect = connect
        self._settings = settings
        self._structures = structures
        self._touched = Touched(structures)
        self._known = known
        self._signals = signals
        self._told = told
        self._count = count
        self._channel: DumpChannel | None = None
        self._receiver = Receiver(settings.segment_bytes, 0, 0, 0, None)
        self._transaction: OpenTransaction | None = None
        self._resume: Position | None = None
        self._epoch = 0
        self._after = ""
        self._server = ""
        self._gtids: Gtids | None = None
        self._last_data = 0.0

    def open(self, position: str) -> None:
        """Connect and let the server send what comes after a position."""
        settings = self._settings
        place = Position.parse(position)
        known = self._known(position)
        conn = self._connect()
        try:
            self._server = server_identity(conn, settings.flavor)
            start = find_start(conn, settings.flavor, place, known, settings.taken)
        finally:
            close(conn)
        self._structures.rewind(position)
        self._after = position
        self._epoch = start.epoch
        self._gtids = parse_gtids(settings.flavor, known.gtids) if known else None
        if self._told is not None and self.place is not None and not start.continues:
            # From here on positions count this server's files.
            self._told(str(Position(self._epoch, 0, 0)), self.place)
        file = place.file if start.continues else 0
        skips = start.continues and start.dump.offset < place.transaction
        skip_before = place.transaction if skips else None
        self._receiver = Receiver(settings.segment_bytes, start.epoch, file, start.dump.offset, skip_before)
        # What was delivered of an open transaction comes again, since it is to be known what it is.
        self._resume = place if start.continues and place.inside else None
        self._receiver.partial = place.inside
        self._channel = DumpChannel(self._connect(), settings.flavor, settings.server_id, settings.heartbeat_s)
        self._channel.start(start.dump)
        self._last_data = time.monotonic()

    @property
    def place(self) -> KnownPlace | None:
        """What is known of the end of the last cut besides its position; None if GTIDs are not known."""
        return None if self._gtids is None else KnownPlace(self._server, str(self._gtids))

    def read(self, timeout: float) -> int:
        """Take what has arrived and find the events in it; return its bytes."""
        assert self._channel is not None
        receiver = self._receiver
        count = self._channel.read_into(receiver.space(), timeout)
        if count:
            self._last_data = time.monotonic()
            receiver.take(count)
            self._skip_resumed()
            if receiver.empty:
                # What belongs to no transaction, or is skipped, must not fill the buffer.
                receiver.drop(receiver.waiting.count)
            # Leaving the server a moment lets it write and us read in large pieces: cheaper for both.
            if count >= BURST_BYTES:
                time.sleep(BURST_PAUSE_S)
        elif time.monotonic() - self._last_data > self._settings.silence_s:
            raise ConnectError(f"Nothing came from the server for {self._settings.silence_s:.0f} s.")
        return count

    def tend(self) -> None:
        """Take no offence at silence while nothing is read."""
        self._last_data = time.monotonic()

    @property
    def full(self) -> bool:
        """Whether a segment's worth of events has been received."""
        return self._receiver.framed >= self._settings.segment_bytes

    @property
    def received(self) -> str:
        """Position of the last transaction end that has come."""
        waiting = self._receiver.waiting
        return str(waiting.cut_place) if waiting.cut_count else self._after

    @property
    def idle_position(self) -> str | None:
        """Up to where the log holds nothing but what was cut; None if events wait."""
        receiver = self._receiver
        if not receiver.idle:
            return None
        return max(self._after, str(Position(self._epoch, receiver.file, receiver.offset)))

    def confirm(self, position: str) -> None:
        """Do nothing: the server keeps its binlog as long as its own settings say."""

    def ping(self) -> None:
        """Do nothing: the server sends events as soon as they are there."""

    def close(self) -> None:
        """Close the connection."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def cut(self, force: bool) -> Cut | None:
        """Close what was received up to the last transaction end, or all of it if ``force`` and there is none."""
        receiver = self._receiver
        waiting = receiver.waiting
        if self._resume is not None:
            return None
        inside = not waiting.cut_count
        if not inside:
            count, size = waiting.cut_count, waiting.cut_bytes
        elif force and waiting.count and receiver.inside:
            count, size = waiting.count, receiver.framed
        else:
            return None
        starts, types, offsets = waiting.arrays(count)
        gtids = np.flatnonzero(_GTIDS[types])
        payload = receiver.buffer[:size]
        data = SegmentData(payload, starts.astype(np.uint32), self._header(starts, types, offsets, gtids))
        commit_s = self._commit_s(starts, gtids)
        if inside:
            opened = self._opened(count)
            if opened is None:
                raise DecodeError("The binlog holds events outside of a transaction.")
            if self._count is not None:
                opened = replace(opened, events=self._count(data))
            place = Position(self._epoch, receiver.file, opened.start, int(offsets[-1]), ALL_ROWS)
        else:
            opened, place = None, waiting.cut_place
            self._add_gtids(payload, starts[gtids])
        upto = str(place)
        cut = Cut(data, self._after, upto, count, commit_s, self._signals_in(data, upto))
        self._transaction = opened
        self._after = upto
        receiver.partial = inside
        receiver.hand_over(count, size)
        if self._told is not None and self.place is not None:
            self._told(upto, self.place)
        return cut

    def _header(self, starts: Indices, types: Bytes, offsets: Indices, gtids: Indices) -> dict[str, Any]:
        """Return the segment's header, and apply its statements to the structures."""
        waiting = self._receiver.waiting
        count = len(starts)
        moves = [move for move in waiting.moves if move[0] < count]
        statements = []
        for record, query in waiting.statements:
            if record < count:
                place = self._statement_place(record, offsets, gtids)
                statements.append((record, query, str(place)))
        tables, told = self._touched.entries(
            self._receiver.buffer,
            starts,
            types,
            waiting.checksums(count),
            statements,
            [move[0] for move in moves[1:]],
            self._transaction,
        )
        return {
            "flavor": self._settings.flavor,
            "server_version": self._receiver.version,
            "base": self._receiver.base,
            "epoch": self._epoch,
            "file": moves[0][1],
            "at": int(offsets[0]),
            "checksum": moves[0][2],
            "moves": [[record, file, int(offsets[record]), checked] for record, file, checked in moves[1:]],
            "gtids": None if self._gtids is None else str(self._gtids),
            "transaction": self._transaction.to_json() if self._transaction else None,
            "tables": tables,
            "statements": told,
        }

    def _statement_place(self, record: int, offsets: Indices, gtids: Indices) -> Position:
        before = int(np.searchsorted(gtids, record, side="right"))
        begun = self._transaction.start if self._transaction else 0
        begin = int(offsets[gtids[before - 1]]) if before else begun
        return Position(self._epoch, self._receiver.waiting.file(record), begin, int(offsets[record]), 1)

    def _signals_in(self, data: SegmentData, upto: str) -> Sequence[tuple[str, dict[str, str]]]:
        finder = self._signals
        if finder is None:
            return []
        tables = data.header["tables"]
        touched = any(finder.is_signal_table(one["database"], one["table"]) for one in tables)
        return finder.signals(data, self._after, upto) if touched else []

    def _commit_s(self, starts: Indices, gtids: Indices) -> float:
        """Return when the last transaction was committed."""
        buffer = self._receiver.buffer
        event = self._transaction.gtid if self._transaction is not None else None
        if len(gtids):
            event = event_at(buffer, int(starts[gtids[-1]]), 0)
        commit_us = parse_gtid(event).commit_us if event is not None else 0
        return commit_us / 1e6 if commit_us else float(le_view(buffer, "<u4")[int(starts[-1]) + AT_TIMESTAMP])

    def _add_gtids(self, payload: Bytes, starts: Indices) -> None:
        """Take the GTIDs of transactions that are whole now."""
        if self._gtids is None:
            return
        if self._transaction is not None:
            record = np.frombuffer(bytes(PACKET) + self._transaction.gtid + bytes(CHECKSUM_BYTES), np.uint8)
            self._gtids = with_transactions(self._gtids, record, np.zeros(1, np.int64))
        self._gtids = with_transactions(self._gtids, payload, starts)

    def _opened(self, count: int) -> OpenTransaction | None:
        """Return the transaction that is open behind the first records."""
        receiver = self._receiver
        starts, types, offsets = receiver.waiting.arrays(count)
        return opened_at_end(receiver.buffer, starts, types, offsets, receiver.checksum, self._transaction)

    def _skip_resumed(self) -> None:
        """Drop the events of a transaction that were in segments before a restart; keep what they say of it."""
        receiver, resume = self._receiver, self._resume
        if resume is None or not receiver.waiting.count:
            return
        # A transaction is in one file; others may have come behind it.
        _, types, offsets = receiver.waiting.arrays(receiver.waiting.in_file(resume.file))
        again = int(np.searchsorted(offsets, resume.event, side="right"))
        last = int(offsets[again - 1]) if again else 0
        arrived = last == resume.event
        began = self._transaction is not None or (int(offsets[0]) == resume.transaction and _GTIDS[types[0]])
        if not began or not again or (again < len(offsets) and not arrived):
            raise SourceStateError(
                f"The binlog has no event at offset {resume.event} of the transaction at {resume.transaction}, where "
                "the checkpoint goes on.",
                "It was reset, or this is another server.",
            )
        if not arrived and not self.full:
            return
        self._transaction = self._opened(again)
        receiver.drop(again)
        if arrived:
            self._resume = None
