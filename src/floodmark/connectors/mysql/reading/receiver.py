"""Turns the bytes that a server sends into records: splits packets, verifies checksums, finds offsets and transactions.

Whole bursts are processed at once; only the few events that concern files, or that the server made for this
connection, are processed one by one.

The events' headers hold only the lower 32 bits of offsets, so offsets are summed up from the differences. That also
works where the server omits events.

The size limit of segments counts decompressed bytes: packets that would exceed it are held until the records before
them have been cut. Large compressed transactions become records here (``inflation``), piece by piece; the packets
received after one are held until all of its records are there.
"""

from __future__ import annotations

import io
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from floodmark.connectors.mysql.binlog.boundaries import BoundaryFinder, type_set
from floodmark.connectors.mysql.binlog.checksums import RIGHT, first_wrong, has_checksum
from floodmark.connectors.mysql.binlog.compressed import inflated_bytes
from floodmark.connectors.mysql.binlog.event_types import (
    ARTIFICIAL,
    AT_FLAGS,
    AT_SIZE,
    AT_STATUS,
    AT_TYPE,
    CHECKSUM_BYTES,
    ERROR,
    FLAGS,
    FORMAT_DESCRIPTION,
    HEADER_BYTES,
    HEARTBEATS,
    IGNORABLE_FLAG,
    INCIDENT,
    KNOWN,
    LOG_POS,
    OK,
    PACKET,
    ROTATE,
    SIZE,
    TRANSACTION_PAYLOAD,
    TYPE,
)
from floodmark.connectors.mysql.binlog.inflation import PIECE_BYTES, WHOLE_BYTES, Inflation, Parcel, Scratch
from floodmark.connectors.mysql.binlog.packets import FULL, find_packets, join, le_view
from floodmark.connectors.mysql.binlog.packets import HEADER_BYTES as PACKET_HEADER
from floodmark.connectors.mysql.binlog.records import ORDINARY, Bytes, Indices, Records
from floodmark.connectors.mysql.binlog.segments import WORD_MASK, offsets_of
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.reading.channel import dump_error
from floodmark.connectors.mysql.reading.file_marks import Mark, Proof, Tail, birth_of
from floodmark.connectors.mysql.reading.pending_records import PendingRecords
from floodmark.connectors.mysql.server.binlogs import split_name
from floodmark.errors import ConnectError, DecodeError, SourceStateError
from floodmark.logger import get_logger

log = get_logger(__name__)

SLACK = 64 << 10
BACKWARDS = 1 << 31

_FILE_EVENTS = (ROTATE, FORMAT_DESCRIPTION, INCIDENT, *HEARTBEATS)
_SPECIAL = ~type_set(*(kind for kind in KNOWN if kind not in _FILE_EVENTS))
_VERSION = slice(HEADER_BYTES + 2, HEADER_BYTES + 52)
_CRC32 = 1


@dataclass
class _Held:
    """Received bytes that wait until there is room for them.

    Attributes:
        data: shape (bytes,).
        starts: where the complete packets start in it, shape (packets,).
        end: where the last one ends.
    """

    data: Bytes
    starts: Indices
    end: int


@dataclass
class _Payload:
    """A large compressed transaction that is being turned into records; ``offset`` is its event's."""

    inflation: Inflation
    offset: int


class Receiver:
    """Turns the bytes of one connection into records.

    Args:
        segment_bytes: size at which a segment is full.
        epoch: epoch of the positions.
        file: number of the first file; 0 if only the server knows it.
        offset: offset in that file at which the server begins.
        skip_before: offset in that file; earlier events don't become records.
        mark: mark that the file must match; None: there is none.
        scratch: opens unnamed temporary files.

    Attributes:
        waiting: the records that wait to be cut.
        buffer: the received bytes, which hold the records.
        framed: end of the last complete packet.
        base: the files' name without number; empty until the server has sent it.
        file: number of the last event's file.
        offset: where that event ended.
        checksum: size of the checksums in that file.
        version: the server's version.
        partial: whether the open transaction was delivered in part.
        proof: compares the received events with the mark.
        tail: the last events that were handed over or dropped, for the next mark.
    """

    def __init__(
        self,
        segment_bytes: int,
        epoch: int,
        file: int,
        offset: int,
        skip_before: int | None,
        mark: Mark | None = None,
        scratch: Scratch = tempfile.TemporaryFile,
    ) -> None:
        self.waiting = PendingRecords()
        self.buffer: Bytes = np.empty(segment_bytes + SLACK, np.uint8)
        self.framed = 0
        self.base = ""
        self.file = file
        self.offset = offset
        self.checksum = 0
        self.version = ""
        self.partial = False
        self.proof = Proof(mark)
        self.tail = Tail()
        self._births: dict[int, str] = {}
        self._segment_bytes = segment_bytes
        self._epoch = epoch
        self._filled = 0
        self._number = 1
        self._skip_before = skip_before
        self._scratch = scratch
        self._held: _Held | None = None
        self._no_room = False
        self._compressed: tuple[Indices, Indices] | None = None
        self._payload: _Payload | None = None
        self._parcel: Parcel | None = None
        self._boundaries = BoundaryFinder()

    @property
    def full(self) -> bool:
        """Whether a segment's worth of records waits, counted decompressed."""
        return self._no_room or self.framed + self.waiting.inflated() >= self._segment_bytes

    @property
    def holding(self) -> bool:
        """Whether ``go_on`` must be called before more is received."""
        return self._held is not None or self._payload is not None

    @property
    def inside(self) -> bool:
        """Whether the last event belongs to an unfinished transaction."""
        return self._boundaries.open

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be cut, and no transaction is open."""
        return not self.inside and not self.waiting.cut_count

    @property
    def idle(self) -> bool:
        """Whether everything that was received has been processed and cut."""
        return bool(self.base) and self._skip_before is None and self.empty and not self.holding and not self._parcel

    @property
    def mark(self) -> Mark:
        """The mark of the current file alone, without events."""
        return Mark(self.file, self._births.get(self.file, ""))

    def space(self) -> memoryview:
        """Return the free end of the buffer, which the next bytes are to be written to."""
        if self._filled == len(self.buffer):
            larger = np.empty(2 * len(self.buffer), np.uint8)
            larger[: self._filled] = self.buffer
            self.buffer = larger
        return self.buffer.data[self._filled :]

    def receive(self, read: Callable[[memoryview, float], int], timeout: float) -> int:
        """Make records from held bytes, or else from bytes that have arrived; return about how many bytes they have.

        Args:
            read: reads from the connection, as ``DumpChannel.read_into``.
            timeout: seconds to wait for the first byte.

        Raises:
            FloodmarkError: as ``take``.
        """
        if self.holding:
            return self.go_on()
        count = read(self.space(), timeout)
        if count:
            self.take(count)
        return count

    def take(self, count: int) -> None:
        """Process ``count`` bytes that were written to ``space``.

        Raises:
            FloodmarkError: the server ended the stream, or sent invalid data.
        """
        self._filled += count
        if self._parcel is not None:
            self._fill_parcel(self._parcel)
        else:
            self._frame()

    def _frame(self) -> None:
        """Process the complete packets."""
        area = self.buffer[self.framed : self._filled]
        if len(area) > PACKET_HEADER and area[3] != self._number and area[PACKET_HEADER] == ERROR:
            # A server that shuts down restarts the sequence numbers.
            raise dump_error(bytes(area[PACKET_HEADER:]))
        packets = find_packets(area, self._number)
        if packets.continued:
            packets, filled = join(area, packets, len(area))
            self._filled = self.framed + filled
        if len(packets.starts):
            self._number = packets.number
            self._accept(packets.starts + self.framed, self.framed + packets.end)
        self._begin_parcel()

    def go_on(self) -> int:
        """Make records from held bytes; return about how many bytes they have.

        Raises:
            FloodmarkError: as ``take``.
        """
        if self._payload is not None:
            return self._inflate(self._payload)
        held, self._held = self._held, None
        assert held is not None
        if len(held.starts) and self._is_large(held):
            self._begin_payload(held)
            return held.end
        self._room(len(held.data))
        self.buffer[self.framed : self.framed + len(held.data)] = held.data
        self._filled = self.framed + len(held.data)
        if len(held.starts):
            self._accept(held.starts + self.framed, held.end + self.framed)
            self._begin_parcel()
        else:
            self._frame()
        return len(held.data)

    def close(self) -> None:
        """Close the temporary files."""
        if self._payload is not None:
            self._payload.inflation.close()
        if self._parcel is not None:
            self._parcel.close()

    def _accept(self, starts: Indices, end: int) -> None:
        """Process as many complete packets as there is room for, and hold the rest."""
        stop = self._room_for(starts, end)
        if stop < len(starts):
            at = int(starts[stop])
            self._hold(self.buffer[at : self._filled].copy(), starts[stop:] - at, end - at)
            self._filled = end = at
            starts = starts[:stop]
        if len(starts):
            self._note(starts, end)
        self.framed = end

    def _room_for(self, starts: Indices, end: int) -> int:
        """Return how many packets fit into a segment decompressed, up to the first large compressed transaction."""
        self._no_room = False
        ends = np.append(starts[1:], end)
        events = (ends - starts >= PACKET + HEADER_BYTES) & (self.buffer[np.minimum(starts + AT_STATUS, end - 1)] == OK)
        # Packets that are no events are refused when they are processed.
        count = len(starts) if events.all() else int(np.argmin(events))
        starts = starts[:count]
        types = self.buffer[starts + AT_TYPE]
        with self.errors_named("behind", self.offset):
            inflated = inflated_bytes(self.buffer, starts, types)
        self._compressed = None if inflated is None else (starts, inflated)
        if inflated is None:
            return len(ends)
        large = np.flatnonzero((types == TRANSACTION_PAYLOAD) & (inflated > WHOLE_BYTES))
        stop = int(large[0]) if len(large) else len(ends)
        size = ends[:count] + self.waiting.inflated() + np.cumsum(inflated)
        over = np.flatnonzero((size > self._segment_bytes) & (inflated > 0))
        if not self.proof.done or (self.waiting.count <= 1 and not self.waiting.cut_count):
            # Waiting would not help the first event if it is alone in its segment, but for its GTID event; nor before
            # the log is proven, as nothing is cut until then.
            over = over[over > 0]
        if len(over) and over[0] < stop:
            stop = int(over[0])
            self._no_room = bool(self.waiting.count or stop)
        return stop

    def _inflated_of(self, starts: Indices) -> Indices | None:
        """Return the decompressed sizes of some of the packets of the last ``_room_for``; None if all are 0."""
        if self._compressed is None:
            return None
        known, inflated = self._compressed
        found: Indices = inflated[np.searchsorted(known, starts)]
        return found

    def _hold(self, data: Bytes, starts: Indices, end: int) -> None:
        self._held = _Held(data, starts, end) if len(data) else None

    def _is_large(self, held: _Held) -> bool:
        """Return whether the held bytes begin with a large compressed transaction."""
        starts = held.starts[:1]
        types = held.data[starts + AT_TYPE]
        inflated = inflated_bytes(held.data, starts, types) if types[0] == TRANSACTION_PAYLOAD else None
        return inflated is not None and int(inflated[0]) > WHOLE_BYTES

    def _begin_payload(self, held: _Held) -> None:
        """Start to inflate the large compressed transaction at the start of the held bytes."""
        end = int(held.starts[1]) if len(held.starts) > 1 else held.end
        event = bytes(held.data[PACKET:end])
        head = held.data[: PACKET + HEADER_BYTES]
        self._hold(held.data[end:], held.starts[1:] - end, held.end - end)
        size = len(event) - self.checksum
        self._open_payload(head, zlib.crc32(event), len(event), lambda: Inflation(io.BytesIO(event), size))

    def _open_payload(self, head: Bytes, crc: int, size: int, inflation: Callable[[], Inflation]) -> None:
        """Start to inflate a compressed transaction.

        Args:
            head: the first bytes of its record.
            crc: the CRC32 of its event.
            size: bytes of its event.
            inflation: creates the decompressor.
        """
        starts = np.zeros(1, np.int64)
        if int.from_bytes(head[PACKET + SIZE : PACKET + SIZE + 4].tobytes(), "little") != size:
            raise DecodeError("The server sent something that is no binlog event.")
        if not self.waiting.moves:
            raise DecodeError("The server sent events without their format description.")
        if self.checksum and crc != RIGHT:
            raise self._damaged(starts, head)
        offset = int(offsets_of(head, starts, self.offset)[0])
        if offset - self.offset >= BACKWARDS:
            raise DecodeError(f"The offsets in {self.name} go back behind {self.offset}.")
        self.offset = offset + size
        if self._skip_before is None or offset >= self._skip_before:
            self._skip_before = None
            with self.errors_named("at", offset):
                self._payload = _Payload(inflation(), offset)

    def _inflate(self, payload: _Payload) -> int:
        """Make records from the next events of a large compressed transaction."""
        with self.errors_named("at", payload.offset):
            events = payload.inflation.read(min(PIECE_BYTES, self._segment_bytes))
        # Leave room for a packet header: a record's start lies that far before its event.
        begin = self.framed + PACKET
        self._room(PACKET + len(events.data))
        self.framed = self._filled = begin + len(events.data)
        self.buffer[begin : self.framed] = events.data
        starts = events.starts + (begin - PACKET)
        types = self.buffer[starts + AT_TYPE]
        inner = np.append(events.starts[1:], len(events.data)) + events.begin
        waiting = self.waiting
        found = self._boundaries.find(self.buffer, starts, types, 0)
        waiting.statements += ((waiting.count + index, query) for index, query in found.statements)
        waiting.decisions += ((waiting.count + index, query) for index, query in found.decisions)
        waiting.add(starts, types, np.full(len(starts), payload.offset), inner)
        # The transaction ends with its payload, whatever its last event is.
        self._boundaries.open = not events.last
        if events.last:
            waiting.end(waiting.count, self.framed, Position(self._epoch, self.file, self.offset))
            self.partial = False
            payload.inflation.close()
            self._payload = None
        return len(events.data)

    @contextmanager
    def errors_named(self, where: str, offset: int) -> Iterator[None]:
        """Add the offset and the file's name to decode errors."""
        try:
            yield
        except DecodeError as exc:
            raise DecodeError(
                f"{exc.what} It is {where} offset {offset} of {self.name}.",
                "mysqlbinlog --verify-binlog-checksum shows whether the server's file is damaged.",
            ) from None

    def _begin_parcel(self) -> None:
        """Start a file for a compressed transaction that spans several packets, if one follows."""
        area = self.buffer[self.framed : self._filled]
        if (
            self._held is None
            and len(area) > AT_TYPE
            and area[AT_STATUS] == OK
            and area[AT_TYPE] == TRANSACTION_PAYLOAD
        ):
            (length,) = le_view(area[:PACKET_HEADER], "<u4")
            if int(length) & FULL == FULL:
                self._parcel = Parcel(self._scratch, self._number)
                self._fill_parcel(self._parcel)

    def _fill_parcel(self, parcel: Parcel) -> None:
        """Move the received bytes of a compressed transaction that spans packets into its file."""
        taken = parcel.take(self.buffer[self.framed : self._filled])
        rest = self.buffer[self.framed + taken : self._filled].copy()
        self._filled = self.framed
        self._number = parcel.number
        if not parcel.done:
            self.buffer[self.framed : self.framed + len(rest)] = rest
            self._filled += len(rest)
            return
        self._parcel = None
        self._hold(rest, np.empty(0, np.int64), 0)
        self._open_payload(parcel.head(), parcel.crc, parcel.size, partial(parcel.inflation, self.checksum))

    def _room(self, size: int) -> None:
        """Make room for ``size`` bytes after the framed ones; the buffer must hold nothing else after them."""
        if self.framed + size > len(self.buffer):
            larger = np.empty(self.framed + size + SLACK, np.uint8)
            larger[: self.framed] = self.buffer[: self.framed]
            self.buffer = larger

    def whole(self) -> Records:
        """Return the records up to the last transaction end."""
        return self.waiting.records(self.buffer, self.waiting.cut_count, self.waiting.cut_bytes)

    def all_records(self) -> Records:
        """Return all records."""
        return self.waiting.records(self.buffer, self.waiting.count, self.framed)

    def hand_over(self, count: int) -> None:
        """Leave the buffer to a segment of the first ``count`` records; the rest moves to a new buffer."""
        size = self._size(count)
        tail = self.buffer[size : self._filled]
        self.buffer = np.empty(max(self._segment_bytes + SLACK, 2 * len(tail)), np.uint8)
        self.buffer[: len(tail)] = tail
        self._forget_bytes(count, size)

    def drop(self, count: int) -> None:
        """Remove the first ``count`` records; the buffer is reused."""
        size = self._size(count)
        self.buffer[: self._filled - size] = self.buffer[size : self._filled].copy()
        self._forget_bytes(count, size)

    def remember(self, count: int) -> None:
        """Add the first ``count`` records, which are about to be handed over or dropped, to the tail."""
        first, file, checked = self.waiting.last_file(count)
        starts, _, offsets = self.waiting.arrays(count)
        self.tail.begin(file, self._births.get(file, ""))
        inner = np.flatnonzero(self.waiting.inner(count)[first:] != ORDINARY)
        if len(inner):
            # The file doesn't hold the events of a large compressed transaction as such: the tail begins after it.
            self.tail.forget()
            first += int(inner[-1]) + 1
        self.tail.add(self.buffer, starts[first:], offsets[first:], CHECKSUM_BYTES * checked)

    def _size(self, count: int) -> int:
        """Return where the first ``count`` records end in the buffer."""
        starts, _, _ = self.waiting.arrays()
        return int(starts[count]) if count < len(starts) else self.framed

    def _forget_bytes(self, count: int, size: int) -> None:
        self.waiting.drop(count, size)
        self._filled -= size
        self.framed -= size
        self._no_room = False

    def _note(self, starts: Indices, end: int) -> None:
        """Process packets: ordinary events in runs, the others one by one."""
        buffer = self.buffer
        ends = np.append(starts[1:], end)
        lengths = ends - starts - PACKET_HEADER
        if not (lengths > 0).all():
            raise DecodeError("The server sent an empty packet instead of a binlog event.")
        ended = np.flatnonzero(buffer[starts + AT_STATUS] != OK)
        if len(ended):
            first = int(ended[0])
            if first:
                self._note(starts[:first], int(starts[first]))
                self.framed = int(starts[first])
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
        """Process consecutive events of the server's file."""
        if self.checksum:
            wrong = first_wrong(self.buffer, starts, end)
            if wrong is not None:
                raise self._damaged(starts[: wrong + 1])
        self._place(starts, types, end)

    def _place(self, starts: Indices, types: Bytes, end: int) -> None:
        """Determine the events' offsets, and add them to the waiting records."""
        if not self.waiting.moves:
            raise DecodeError("The server sent events without their format description.")
        offsets = offsets_of(self.buffer, starts, self.offset)
        if (np.diff(offsets, prepend=self.offset) >= BACKWARDS).any():
            raise DecodeError(f"The offsets in {self.name} go back behind {self.offset}.")
        self.offset = int(offsets[-1]) + int(le_view(self.buffer, "<u4")[int(starts[-1]) + AT_SIZE])
        self.proof.see_events(self.buffer, starts, offsets, self.checksum)
        if self._skip_before is not None:
            skipped = int(np.searchsorted(offsets, self._skip_before))
            starts, types, offsets = starts[skipped:], types[skipped:], offsets[skipped:]
            if not len(starts):
                if self.offset >= self._skip_before:
                    self._skip_before = None
                return
            self._skip_before = None
        waiting = self.waiting
        found = self._boundaries.find(self.buffer, starts, types, self.checksum)
        waiting.statements += ((waiting.count + index, query) for index, query in found.statements)
        waiting.decisions += ((waiting.count + index, query) for index, query in found.decisions)
        if found.last_end >= 0:
            after = found.last_end + 1
            behind = after == len(starts)
            place = Position(self._epoch, self.file, self.offset if behind else int(offsets[after]))
            waiting.end(waiting.count + after, end if behind else int(starts[after]), place)
            self.partial = False
        waiting.add(starts, types, offsets, inflated=self._inflated_of(starts))

    def _see(self, start: int, end: int) -> None:
        """Process an event that is not an ordinary one."""
        event = bytes(self.buffer[start + PACKET : end])
        kind = event[TYPE]
        flags = event[FLAGS] | event[FLAGS + 1] << 8
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
                f"{self.name} reports an incident at offset {self.offset}: the server may have lost events.",
                "Read the tables again (snapshot.mode=always, or a new checkpoint).",
            )
        elif kind not in KNOWN and not flags & IGNORABLE_FLAG:
            raise DecodeError(
                f"{self.name} holds an event of type {kind} at offset {self.offset}, which is not known.",
                "The server is newer than this version of Floodmark knows.",
            )
        if real:
            if self.checksum and zlib.crc32(event) != RIGHT:
                raise self._damaged(np.array([start]))
            self._place(np.array([start]), np.array([kind], np.uint8), end)

    def _beat(self, log_pos: int) -> None:
        """Process a heartbeat: the server has sent everything before the heartbeat's position."""
        ahead = (log_pos - self.offset) & WORD_MASK
        if log_pos and 0 < ahead < BACKWARDS and self.idle:
            self.offset += ahead

    def _describe(self, event: bytes) -> None:
        """Process a format description: the server's version, and whether the file's events have checksums."""
        self.version = event[_VERSION].split(b"\0")[0].decode("ascii", "replace")
        self.checksum = CHECKSUM_BYTES if event[-CHECKSUM_BYTES - 1] == _CRC32 else 0
        self._births[self.file] = birth_of(event)
        self.proof.see_file(self.file, self._births[self.file])
        if not self.waiting.moves or self.waiting.moves[-1][0] == self.waiting.count:
            self.waiting.move(self.file, self.checksum)

    def _move_to(self, event: bytes) -> None:
        """Process a rotate event, which names the file of the following events."""
        end = len(event) - (CHECKSUM_BYTES if has_checksum(event) else 0)
        base, number = split_name(event[HEADER_BYTES + 8 : end].decode("utf-8", "replace"))
        if number == self.file:
            self.base = base
            return
        if self.base:
            self._skip_before = None
        if self.inside:
            self._abandon()
        self.base = base
        self.file = number
        self.offset = int.from_bytes(event[HEADER_BYTES : HEADER_BYTES + 8], "little")
        self.waiting.move(number, self.checksum)

    def _abandon(self) -> None:
        """Drop a transaction that the file ends inside of: the server crashed, and rolled it back."""
        if self.partial:
            raise SourceStateError(
                f"{self.name} ends inside a transaction, part of which was delivered already: the server crashed and "
                "rolled it back.",
                "Read its tables again.",
            )
        log.warning("transaction_without_end", file=self.name)
        self.waiting.keep_whole()
        self._boundaries = BoundaryFinder()

    @property
    def name(self) -> str:
        """Name of the last event's file."""
        return f"{self.base or 'binlog'}.{self.file:06d}"

    def _damaged(self, starts: Indices, buffer: Bytes | None = None) -> DecodeError:
        """Return the error for the last of these events, which follow ``self.offset``."""
        offset = int(offsets_of(self.buffer if buffer is None else buffer, starts, self.offset)[-1])
        return DecodeError(
            f"The event at offset {offset} of {self.name} is damaged: its CRC32 is wrong.",
            "mysqlbinlog --verify-binlog-checksum shows whether the server's file is damaged; if not, start again.",
        )
