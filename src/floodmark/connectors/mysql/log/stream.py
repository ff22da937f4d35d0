"""The stream of binlog events, cut into segments.

Capture moves bytes and looks only at what it must: where events begin, their checksums, where transactions end,
which tables they touch, and statements that may change tables. All of it works on whole bursts at once.

The server's files count offsets: those in the events' headers wrap at 4 GiB, so offsets are put together from the
differences between them. That also holds where the server leaves events out.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from floodmark.capture.log_stream import Cut
from floodmark.capture.segment import SegmentData
from floodmark.connectors.mysql.gtid import Gtids, Taken, parse_gtids
from floodmark.connectors.mysql.log.boundaries import BoundaryFinder, type_set
from floodmark.connectors.mysql.log.channel import DumpChannel, dump_error
from floodmark.connectors.mysql.log.checksums import RIGHT, first_wrong, has_checksum
from floodmark.connectors.mysql.log.event_types import (
    ARTIFICIAL,
    AT_FLAGS,
    AT_SIZE,
    AT_STATUS,
    AT_TIMESTAMP,
    AT_TYPE,
    CHECKSUM_BYTES,
    ERROR,
    FORMAT_DESCRIPTION,
    GTIDS,
    HEADER_BYTES,
    HEARTBEATS,
    IGNORABLE_FLAG,
    INCIDENT,
    KNOWN,
    LOG_POS,
    OK,
    PACKET,
    ROTATE,
)
from floodmark.connectors.mysql.log.packets import HEADER_BYTES as PACKET_HEADER
from floodmark.connectors.mysql.log.packets import find_packets, join, le_view
from floodmark.connectors.mysql.log.queries import Query
from floodmark.connectors.mysql.log.segments import (
    WORD_MASK,
    OpenTransaction,
    begins,
    event_at,
    unwrapped,
)
from floodmark.connectors.mysql.log.start import KnownPlace, file_number, find_start, server_identity
from floodmark.connectors.mysql.log.touched import Structures, Touched, opened_at_end
from floodmark.connectors.mysql.log.transactions import parse_gtid, with_transactions
from floodmark.connectors.mysql.position import ALL_ROWS, Position
from floodmark.connectors.mysql.server.connection import Connection, close
from floodmark.errors import ConnectError, DecodeError, SourceStateError
from floodmark.log import get_logger

log = get_logger(__name__)

SLACK = 256 << 10
BURST_BYTES = 64 << 10
BURST_PAUSE_S = 0.002
HEARTBEAT_S = 10.0
SILENCE_S = 60.0
BACKWARDS = 1 << 31

_SPECIAL = ~type_set(*(kind for kind in KNOWN if kind not in (ROTATE, FORMAT_DESCRIPTION, INCIDENT, *HEARTBEATS)))
_GTIDS = type_set(*GTIDS)

_VERSION = slice(HEADER_BYTES + 2, HEADER_BYTES + 52)
_CRC32 = 1

Bytes = NDArray[np.uint8]
Indices = NDArray[np.int64]


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
        told: is told what is known of each cut's end.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        settings: CaptureSettings,
        structures: Structures,
        known: Callable[[str], KnownPlace | None],
        signals: Signals | None = None,
        told: Callable[[str, KnownPlace], None] | None = None,
    ) -> None:
        self._connect = connect
        self._settings = settings
        self._structures = structures
        self._touched = Touched(structures)
        self._known = known
        self._signals = signals
        self._told = told
        self._channel: DumpChannel | None = None
        self._buffer: Bytes = np.empty(settings.segment_bytes + SLACK, np.uint8)
        self._filled = 0
        self._framed = 0
        self._number = 1
        self._last_data = 0.0
        # The records that wait, and where the last transaction that is whole ends.
        self._starts: list[Indices] = []
        self._types: list[Bytes] = []
        self._offsets: list[Indices] = []
        self._records = 0
        self._cut_records = 0
        self._cut_bytes = 0
        self._cut_place = Position(0, 0, 0)
        self._moves: list[tuple[int, int, bool]] = []
        self._statements: list[tuple[int, Query]] = []
        # Where in the log the last event ended, and in what state.
        self._epoch = 0
        self._base = ""
        self._file = 0
        self._offset = 0
        self._checksum = 0
        self._version = ""
        self._boundaries = BoundaryFinder()
        self._transaction: OpenTransaction | None = None
        self._after = ""
        self._server = ""
        self._gtids: Gtids | None = None
        # What is received again after a restart, and skipped.
        self._skip_before: Position | None = None
        self._resume: Position | None = None

    def open(self, position: str) -> None:
        """Connect and let the server send what comes after a position."""
        place = Position.parse(position)
        known = self._known(position)
        conn = self._connect()
        try:
            self._server = server_identity(conn, self._settings.flavor)
            start = find_start(conn, self._settings.flavor, place, known, self._settings.taken)
        finally:
            close(conn)
        self._structures.rewind(position)
        self._after = position
        self._epoch = start.epoch
        self._file = place.file if start.continues else 0
        self._offset = start.dump.offset
        self._gtids = parse_gtids(self._settings.flavor, known.gtids) if known else None
        if start.continues:
            self._skip_before = place if start.dump.offset < place.transaction else None
            self._resume = place if place.inside else None
        settings = self._settings
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
        if self._filled == len(self._buffer):
            self._grow()
        count = self._channel.read_into(self._buffer.data[self._filled :], timeout)
        if count:
            self._filled += count
            self._last_data = time.monotonic()
            self._scan()
            self._skip_resumed()
            if not self._cut_records and not self._boundaries.open:
                self._forget()
            # Leaving the server a moment lets it write and us read in large pieces: cheaper for both.
            if count >= BURST_BYTES:
                time.sleep(BURST_PAUSE_S)
        elif time.monotonic() - self._last_data > self._settings.silence_s:
            raise ConnectError(f"Nothing came from the server for {self._settings.silence_s:.0f} s.")
        return count

    def tend(self) -> None:
        """Let the silence be ours: nothing is read."""
        self._last_data = time.monotonic()

    @property
    def full(self) -> bool:
        """Whether a segment's worth of events has been received."""
        return self._framed >= self._settings.segment_bytes

    @property
    def received(self) -> str:
        """Position of the last transaction end that has come."""
        return str(self._cut_place) if self._cut_records else self._after

    @property
    def idle_position(self) -> str | None:
        """Up to where the log holds nothing but what was cut; None if events wait."""
        if self._cut_records or self._boundaries.open or self._skip_before or not self._base:
            return None
        return max(self._after, str(Position(self._epoch, self._file, self._offset)))

    def confirm(self, position: str) -> None:
        """Do nothing: the server keeps its binlog as long as it is told to in its own settings."""

    def ping(self) -> None:
        """Do nothing: the server sends events as soon as they are there."""

    def close(self) -> None:
        """Close the connection."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def cut(self, force: bool) -> Cut | None:
        """Close what was received up to the last transaction end, or all of it if ``force`` and there is none."""
        if self._resume is not None:
            return None
        if self._cut_records:
            records, size, place = self._cut_records, self._cut_bytes, self._cut_place
        elif force and self._records and self._boundaries.open:
            records, size, place = self._records, self._framed, None
        else:
            return None
        starts, types, offsets = self._waiting()
        kept, kinds = starts[:records], types[:records]
        payload = self._buffer[:size]
        gtids = np.flatnonzero(_GTIDS[kinds])
        data = SegmentData(payload, kept.astype(np.uint32), self._header(kept, kinds, offsets, gtids))
        if place is None:
            opened = self._opened(records)
            if opened is None:
                raise DecodeError("The binlog holds events outside of a transaction.")
            place = Position(self._epoch, self._file, opened.start, int(offsets[-1]), ALL_ROWS)
            done = gtids[:0]
        else:
            opened, done = None, gtids
            if self._gtids is not None and self._transaction is not None:
                self._add_gtid(self._transaction.gtid)
        if self._gtids is not None and len(done):
            self._gtids = with_transactions(self._gtids, payload, kept[done])
        commit_s = self._commit_s(kept, gtids)
        after, upto = self._after, str(place)
        tables = data.header["tables"]
        signals: Sequence[tuple[str, dict[str, str]]] = []
        if self._signals is not None and any(
            self._signals.is_signal_table(one["database"], one["table"]) for one in tables
        ):
            signals = self._signals.signals(data, after, upto)
        self._transaction = opened
        self._after = upto
        self._drop(records, size, fresh=True)
        if self._told is not None and self.place is not None:
            self._told(upto, self.place)
        return Cut(data, after, upto, records, commit_s, signals)

    def _header(self, starts: Indices, types: Bytes, offsets: Indices, gtids: Indices) -> dict[str, Any]:
        """Return the segment's header, and apply its statements to the structures."""
        records = len(starts)
        moves = [move for move in self._moves if move[0] < records]
        edges = [*(record for record, _, _ in moves), records]
        checksums = np.empty(records, np.int64)
        for (record, _, checked), end in zip(moves, edges[1:], strict=True):
            checksums[record:end] = CHECKSUM_BYTES * checked
        statements = []
        for record, query in self._statements:
            if record < records:
                before = int(np.searchsorted(gtids, record, side="right"))
                begun = self._transaction.start if self._transaction else 0
                begin = int(offsets[gtids[before - 1]]) if before else begun
                file = next(number for at, number, _ in reversed(moves) if at <= record)
                place = Position(self._epoch, file, begin, int(offsets[record]), 1)
                statements.append((record, query, str(place)))
        tables, told = self._touched.entries(
            self._buffer, starts, types, checksums, statements, edges[1:-1], self._transaction
        )
        return {
            "flavor": self._settings.flavor,
            "server_version": self._version,
            "base": self._base,
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

    def _commit_s(self, starts: Indices, gtids: Indices) -> float:
        """Return when the last transaction was committed."""
        if len(gtids):
            said = parse_gtid(event_at(self._buffer, int(starts[gtids[-1]]), self._checksum))
        elif self._transaction is not None:
            said = parse_gtid(self._transaction.gtid)
        else:
            said = None
        if said is not None and said.commit_us:
            return said.commit_us / 1e6
        return float(le_view(self._buffer, "<u4")[int(starts[-1]) + AT_TIMESTAMP])

    def _add_gtid(self, event: bytes) -> None:
        """Take the GTID of a transaction that began in an earlier segment."""
        record = np.frombuffer(bytes(PACKET) + event + bytes(CHECKSUM_BYTES), np.uint8)
        assert self._gtids is not None
        self._gtids = with_transactions(self._gtids, record, np.zeros(1, np.int64))

    def _opened(self, records: int) -> OpenTransaction | None:
        starts, types, offsets = self._waiting()
        chosen = slice(0, records)
        return opened_at_end(
            self._buffer, starts[chosen], types[chosen], offsets[chosen], self._checksum, self._transaction
        )

    def _waiting(self) -> tuple[Indices, Bytes, Indices]:
        return np.concatenate(self._starts), np.concatenate(self._types), np.concatenate(self._offsets)

    def _drop(self, records: int, size: int, fresh: bool) -> None:
        """Take the first records off what waits.

        Args:
            records: how many.
            size: bytes of the buffer that go with them.
            fresh: whether the buffer belongs to a segment now.
        """
        if self._records:
            starts, types, offsets = self._waiting()
            left = slice(records, None)
            self._starts, self._types, self._offsets = [starts[left] - size], [types[left]], [offsets[left]]
        if not fresh:
            self._buffer[: self._filled - size] = self._buffer[size : self._filled].copy()
        else:
            tail = self._buffer[size : self._filled]
            self._buffer = np.empty(max(self._settings.segment_bytes + SLACK, 2 * len(tail)), np.uint8)
            self._buffer[: len(tail)] = tail
        self._records -= records
        self._filled -= size
        self._framed -= size
        self._cut_bytes -= size
        self._cut_records -= records
        if self._cut_records <= 0:
            self._cut_records = self._cut_bytes = 0
        moves = [(max(at - records, 0), file, checked) for at, file, checked in self._moves]
        begun = sum(at == 0 for at, _, _ in moves)
        self._moves = moves[max(begun - 1, 0) :]
        self._statements = [(record - records, query) for record, query in self._statements if record >= records]

    def _forget(self) -> None:
        """Drop what belongs to no transaction while nothing else waits, so that an idle stream doesn't fill up."""
        self._drop(self._records, self._framed, fresh=False)

    def _grow(self) -> None:
        """Make room for an event that is larger than the buffer."""
        larger = np.empty(2 * len(self._buffer), np.uint8)
        larger[: self._filled] = self._buffer[: self._filled]
        self._buffer = larger

    def _skip_resumed(self) -> None:
        """Drop the events of a transaction that were in segments before a restart; keep what they say of it."""
        if self._resume is None or not self._records:
            return
        starts, types, offsets = self._waiting()
        moved = self._file != self._resume.file
        again = int(np.searchsorted(offsets, self._resume.event, side="right")) if not moved else 0
        arrived = moved or again < self._records or int(offsets[-1]) == self._resume.event
        if self._transaction is None and (int(offsets[0]) != self._resume.transaction or not _GTIDS[types[0]]):
            again = 0
        if not again or (arrived and int(offsets[again - 1]) != self._resume.event):
            raise SourceStateError(
                f"The binlog has no event at offset {self._resume.event} of the transaction at "
                f"{self._resume.transaction}, where the checkpoint goes on.",
                "It was reset, or this is another server.",
            )
        if not arrived and not self.full:
            return
        self._transaction = self._opened(again)
        size = int(starts[again]) if again < self._records else self._framed
        self._drop(again, size, fresh=False)
        if arrived:
            self._resume = None

    def _scan(self) -> None:
        """Find the packets that have arrived since the last scan."""
        area = self._buffer[self._framed : self._filled]
        if len(area) > PACKET_HEADER and area[3] != self._number and area[PACKET_HEADER] == ERROR:
            # A server that shuts down begins to count anew.
            raise dump_error(bytes(area[PACKET_HEADER:]))
        packets = find_packets(area, self._number)
        if packets.continued:
            packets, filled = join(area, packets, len(area))
            self._filled = self._framed + filled
        if len(packets.starts):
            end = self._framed + packets.end
            self._note(packets.starts + self._framed, end)
            self._framed = end
            self._number = packets.number

    def _note(self, starts: Indices, end: int) -> None:
        """Take packets: hand on runs of ordinary events, and see to the others one by one."""
        buffer = self._buffer
        ends = np.append(starts[1:], end)
        lengths = ends - starts - PACKET_HEADER
        if not (lengths > 0).all():
            raise DecodeError("The server sent an empty packet instead of a binlog event.")
        ended = np.flatnonzero(buffer[starts + AT_STATUS] != OK)
        if len(ended):
            first = int(ended[0])
            if first:
                self._note(starts[:first], int(starts[first]))
            packet = bytes(buffer[starts[first] + PACKET_HEADER : ends[first]])
            raise dump_error(packet) if packet[0] == ERROR else ConnectError("The server ended the binlog stream.")
        words = le_view(buffer, "<u4")
        if not (lengths > HEADER_BYTES).all() or (words[starts + AT_SIZE] != lengths - 1).any():
            raise DecodeError("The server sent something that is no binlog event.")
        types = buffer[starts + AT_TYPE]
        special = _SPECIAL[types] | (buffer[starts + AT_FLAGS] & ARTIFICIAL != 0)
        at = 0
        for index in np.flatnonzero(special).tolist():
            if index > at:
                self._run(starts[at:index], types[at:index], int(starts[index]))
            self._see(int(starts[index]), int(ends[index]))
            at = index + 1
        if at < len(starts):
            self._run(starts[at:], types[at:], end)

    def _run(self, starts: Indices, types: Bytes, end: int) -> None:
        """Take a run of consecutive events of the server's file."""
        buffer = self._buffer
        if self._checksum:
            wrong = first_wrong(buffer, starts, end)
            if wrong is not None:
                self._damaged(int(starts[wrong]))
        offsets = unwrapped(begins(buffer, starts), self._offset)
        last = int(offsets[-1])
        if last - self._offset > end - int(starts[0]) + BACKWARDS:
            raise DecodeError(f"The offsets in {self._name} go back behind {self._offset}.")
        self._offset = last + int(le_view(buffer, "<u4")[int(starts[-1]) + AT_SIZE])
        if self._skip_before is not None:
            skipped = int(np.searchsorted(offsets, self._skip_before.transaction))
            starts, types, offsets = starts[skipped:], types[skipped:], offsets[skipped:]
            if not len(starts):
                return
            self._skip_before = None
        self._take(starts, types, offsets, end)

    def _take(self, starts: Indices, types: Bytes, offsets: Indices, end: int) -> None:
        """Add records to those that wait."""
        found = self._boundaries.find(self._buffer, starts, types, self._checksum)
        self._statements += ((self._records + index, query) for index, query in found.statements)
        if found.last_end >= 0:
            after = found.last_end + 1
            self._cut_records = self._records + after
            self._cut_bytes = int(starts[after]) if after < len(starts) else end
            self._cut_place = Position(
                self._epoch, self._file, int(offsets[after]) if after < len(starts) else self._offset
            )
        self._starts.append(starts)
        self._types.append(types)
        self._offsets.append(offsets)
        self._records += len(starts)

    def _see(self, start: int, end: int) -> None:
        """See to an event that is not an ordinary one."""
        event = bytes(self._buffer[start + PACKET : end])
        kind = event[4]
        flags = event[17] | event[18] << 8
        log_pos = int.from_bytes(event[LOG_POS : LOG_POS + 4], "little")
        real = not flags & ARTIFICIAL and log_pos != 0
        if kind in HEARTBEATS:
            self._beat(log_pos)
            return
        if kind == FORMAT_DESCRIPTION:
            self._describe(event)
        elif kind == ROTATE and not real:
            self._move_to(event)
        elif kind == INCIDENT:
            raise SourceStateError(
                f"{self._name} reports an incident at offset {self._offset}: the server may have lost events.",
                "Read the tables again (snapshot.mode=always, or a new checkpoint).",
            )
        elif kind not in KNOWN and not flags & IGNORABLE_FLAG:
            raise DecodeError(
                f"{self._name} holds an event of type {kind} at offset {self._offset}, which is not known.",
                "The server is newer than this version of Floodmark knows.",
            )
        if real:
            if self._checksum and zlib.crc32(event) != RIGHT:
                self._damaged(start)
            # It was seen to; as a record it is like any other.
            checksum, self._checksum = self._checksum, 0
            self._run(np.array([start]), np.array([kind], np.uint8), end)
            self._checksum = checksum

    def _beat(self, log_pos: int) -> None:
        """Take a heartbeat: the server has sent all that is before its position."""
        ahead = (log_pos - self._offset) & WORD_MASK
        if log_pos and 0 < ahead < BACKWARDS and not self._boundaries.open and not self._skip_before:
            self._offset += ahead

    def _describe(self, event: bytes) -> None:
        """Take what begins each file: the server's version, and whether events have checksums."""
        self._version = event[_VERSION].split(b"\0")[0].decode("ascii", "replace")
        self._checksum = CHECKSUM_BYTES if event[-CHECKSUM_BYTES - 1] == _CRC32 else 0
        if not self._moves:
            self._moves = [(0, self._file, bool(self._checksum))]
        else:
            at, file, _ = self._moves[-1]
            if at == self._records:
                self._moves[-1] = (at, file, bool(self._checksum))

    def _move_to(self, event: bytes) -> None:
        """Take what says which file the following events are of."""
        end = len(event) - (CHECKSUM_BYTES if has_checksum(event) else 0)
        name = event[HEADER_BYTES + 8 : end].decode("utf-8", "replace")
        offset = int.from_bytes(event[HEADER_BYTES : HEADER_BYTES + 8], "little")
        base, number = file_number(name)
        if self._base and number == self._file:
            return
        first, self._base = not self._base, base
        if first and number == self._file:
            return
        if not first:
            self._skip_before = None
        if self._boundaries.open:
            self._abandon()
        self._file, self._offset = number, offset
        if self._moves and self._moves[-1][0] == self._records:
            self._moves.pop()
        self._moves.append((self._records, number, bool(self._checksum)))

    def _abandon(self) -> None:
        """Drop a transaction that the file ends within: the server crashed, and rolled it back."""
        if self._transaction is not None:
            raise SourceStateError(
                f"{self._name} ends inside a transaction, part of which was delivered already: the server crashed and "
                "rolled it back.",
                "Read its tables again.",
            )
        log.warning("transaction_without_end", file=self._name)
        starts, types, offsets = self._waiting()
        kept = slice(0, self._cut_records)
        self._starts, self._types, self._offsets = [starts[kept]], [types[kept]], [offsets[kept]]
        self._records = self._cut_records
        self._statements = [one for one in self._statements if one[0] < self._records]
        self._boundaries = BoundaryFinder()

    @property
    def _name(self) -> str:
        return f"{self._base or 'binlog'}.{self._file:06d}"

    def _damaged(self, start: int) -> None:
        offset = int(begins(self._buffer, np.array([start]))[0])
        raise DecodeError(
            f"The event at offset {offset} of {self._name} is damaged: its CRC32 is wrong.",
            "mysqlbinlog --verify-binlog-checksum shows whether the server's file is damaged; if not, start again.",
        )
