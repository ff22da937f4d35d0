"""From the bytes that a server sends to records: packets, events, checksums, offsets, transaction ends.

All of it works on whole bursts at once; only the few events that are about files, or that the server made for this
connection, are seen to one by one.

The events' headers hold only the lower 32 bits of offsets, so those are put together from the differences. That
also holds where the server leaves events out.
"""

from __future__ import annotations

import zlib

import numpy as np

from floodmark.connectors.mysql.log.boundaries import BoundaryFinder, type_set
from floodmark.connectors.mysql.log.channel import dump_error
from floodmark.connectors.mysql.log.checksums import RIGHT, first_wrong, has_checksum
from floodmark.connectors.mysql.log.event_types import (
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
    TYPE,
)
from floodmark.connectors.mysql.log.packets import HEADER_BYTES as PACKET_HEADER
from floodmark.connectors.mysql.log.packets import find_packets, join, le_view
from floodmark.connectors.mysql.log.segments import WORD_MASK, offsets_of
from floodmark.connectors.mysql.log.start import file_number
from floodmark.connectors.mysql.log.waiting import Bytes, Indices, Waiting
from floodmark.connectors.mysql.position import Position
from floodmark.errors import ConnectError, DecodeError, SourceStateError
from floodmark.log import get_logger

log = get_logger(__name__)

SLACK = 64 << 10
BACKWARDS = 1 << 31

_FILE_EVENTS = (ROTATE, FORMAT_DESCRIPTION, INCIDENT, *HEARTBEATS)
_SPECIAL = ~type_set(*(kind for kind in KNOWN if kind not in _FILE_EVENTS))
_VERSION = slice(HEADER_BYTES + 2, HEADER_BYTES + 52)
_CRC32 = 1


class Receiver:
    """Takes what a server sends.

    Args:
        segment_bytes: size at which a segment is full.
        epoch: of the positions.
        file: number of the file that begins; 0 if only the server knows.
        offset: in that where the server begins.
        skip_before: offset in that file; what lies before is no record.

    Attributes:
        waiting: the records.
        buffer: what was received, in which the records lie.
        framed: end of the last packet that is whole.
        base: the files' name without number; empty until the server has said it.
        file: number of the file that the last event was of.
        offset: where that ended.
        checksum: size of the checksums in that file.
        version: of the server.
        partial: whether the transaction that is open was delivered in part.
    """

    def __init__(self, segment_bytes: int, epoch: int, file: int, offset: int, skip_before: int | None) -> None:
        self.waiting = Waiting()
        self.buffer: Bytes = np.empty(segment_bytes + SLACK, np.uint8)
        self.framed = 0
        self.base = ""
        self.file = file
        self.offset = offset
        self.checksum = 0
        self.version = ""
        self.partial = False
        self._segment_bytes = segment_bytes
        self._epoch = epoch
        self._filled = 0
        self._number = 1
        self._skip_before = skip_before
        self._boundaries = BoundaryFinder()

    @property
    def inside(self) -> bool:
        """Whether the last event is of a transaction that goes on."""
        return self._boundaries.open

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be cut, and no transaction is open."""
        return not self.inside and not self.waiting.cut_count

    @property
    def idle(self) -> bool:
        """Whether everything that was received is done."""
        return bool(self.base) and self._skip_before is None and self.empty

    def space(self) -> memoryview:
        """Return where the next bytes go."""
        if self._filled == len(self.buffer):
            larger = np.empty(2 * len(self.buffer), np.uint8)
            larger[: self._filled] = self.buffer
            self.buffer = larger
        return self.buffer.data[self._filled :]

    def take(self, count: int) -> None:
        """Take so many bytes that were written to ``space``.

        Raises:
            FloodmarkError: the server said that it ends, or sent what it must not.
        """
        self._filled += count
        area = self.buffer[self.framed : self._filled]
        if len(area) > PACKET_HEADER and area[3] != self._number and area[PACKET_HEADER] == ERROR:
            # A server that shuts down begins to count anew.
            raise dump_error(bytes(area[PACKET_HEADER:]))
        packets = find_packets(area, self._number)
        if packets.continued:
            packets, filled = join(area, packets, len(area))
            self._filled = self.framed + filled
        if len(packets.starts):
            end = self.framed + packets.end
            self._note(packets.starts + self.framed, end)
            self.framed = end
            self._number = packets.number

    def hand_over(self, count: int, size: int) -> None:
        """Leave the buffer up to some record to a segment; the rest moves to a new one."""
        tail = self.buffer[size : self._filled]
        self.buffer = np.empty(max(self._segment_bytes + SLACK, 2 * len(tail)), np.uint8)
        self.buffer[: len(tail)] = tail
        self._forget_bytes(count, size)

    def drop(self, count: int) -> None:
        """Forget the first records; the buffer stays."""
        starts, _, _ = self.waiting.arrays()
        size = int(starts[count]) if count < len(starts) else self.framed
        self.buffer[: self._filled - size] = self.buffer[size : self._filled].copy()
        self._forget_bytes(count, size)

    def _forget_bytes(self, count: int, size: int) -> None:
        self.waiting.drop(count, size)
        self._filled -= size
        self.framed -= size

    def _note(self, starts: Indices, end: int) -> None:
        """Take packets: runs of ordinary events, and the others one by one."""
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
        """Take consecutive events of the server's file."""
        if self.checksum:
            wrong = first_wrong(self.buffer, starts, end)
            if wrong is not None:
                raise self._damaged(starts[: wrong + 1])
        self._place(starts, types, end)

    def _place(self, starts: Indices, types: Bytes, end: int) -> None:
        """Find out where events lie, and let them wait."""
        if not self.waiting.moves:
            raise DecodeError("The server sent events without their format description.")
        offsets = offsets_of(self.buffer, starts, self.offset)
        if (np.diff(offsets, prepend=self.offset) >= BACKWARDS).any():
            raise DecodeError(f"The offsets in {self._name} go back behind {self.offset}.")
        self.offset = int(offsets[-1]) + int(le_view(self.buffer, "<u4")[int(starts[-1]) + AT_SIZE])
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
        if found.last_end >= 0:
            after = found.last_end + 1
            behind = after == len(starts)
            place = Position(self._epoch, self.file, self.offset if behind else int(offsets[after]))
            waiting.end(waiting.count + after, end if behind else int(starts[after]), place)
            self.partial = False
        waiting.add(starts, types, offsets)

    def _see(self, start: int, end: int) -> None:
        """See to an event that is not an ordinary one."""
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
                f"{self._name} reports an incident at offset {self.offset}: the server may have lost events.",
                "Read the tables again (snapshot.mode=always, or a new checkpoint).",
            )
        elif kind not in KNOWN and not flags & IGNORABLE_FLAG:
            raise DecodeError(
                f"{self._name} holds an event of type {kind} at offset {self.offset}, which is not known.",
                "The server is newer than this version of Floodmark knows.",
            )
        if real:
            if self.checksum and zlib.crc32(event) != RIGHT:
                raise self._damaged(np.array([start]))
            self._place(np.array([start]), np.array([kind], np.uint8), end)

    def _beat(self, log_pos: int) -> None:
        """Take a heartbeat: the server has sent all that is before its position."""
        ahead = (log_pos - self.offset) & WORD_MASK
        if log_pos and 0 < ahead < BACKWARDS and self.idle:
            self.offset += ahead

    def _describe(self, event: bytes) -> None:
        """Take what begins each file: the server's version, and whether events have checksums."""
        self.version = event[_VERSION].split(b"\0")[0].decode("ascii", "replace")
        self.checksum = CHECKSUM_BYTES if event[-CHECKSUM_BYTES - 1] == _CRC32 else 0
        if not self.waiting.moves or self.waiting.moves[-1][0] == self.waiting.count:
            self.waiting.move(self.file, self.checksum)

    def _move_to(self, event: bytes) -> None:
        """Take what says which file the following events are of."""
        end = len(event) - (CHECKSUM_BYTES if has_checksum(event) else 0)
        base, number = file_number(event[HEADER_BYTES + 8 : end].decode("utf-8", "replace"))
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
        """Drop a transaction that the file ends within: the server crashed, and rolled it back."""
        if self.partial:
            raise SourceStateError(
                f"{self._name} ends inside a transaction, part of which was delivered already: the server crashed and "
                "rolled it back.",
                "Read its tables again.",
            )
        log.warning("transaction_without_end", file=self._name)
        self.waiting.keep_whole()
        self._boundaries = BoundaryFinder()

    @property
    def _name(self) -> str:
        return f"{self.base or 'binlog'}.{self.file:06d}"

    def _damaged(self, starts: Indices) -> DecodeError:
        """Return the error for the last of these events, which are the next ones."""
        offset = int(offsets_of(self.buffer, starts, self.offset)[-1])
        return DecodeError(
            f"The event at offset {offset} of {self._name} is damaged: its CRC32 is wrong.",
            "mysqlbinlog --verify-binlog-checksum shows whether the server's file is damaged; if not, start again.",
        )
