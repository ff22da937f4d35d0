"""Decompresses large compressed transactions piece by piece.

Capture writes their events into segments as records, as if they had come uncompressed, so neither capture nor the
tasks ever hold a whole decompressed transaction. The compressed data may have up to 1 GiB: if it doesn't come in one
packet, it is written to an unnamed temporary file until its checksum has been verified.

Source: MySQL's documentation, "Transaction_payload_log_event".
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.connectors.mysql.binlog.compressed import (
    HEAD_BYTES,
    NONE,
    PayloadHeader,
    event_starts,
    payload_header,
    refuse_strangers,
)
from floodmark.connectors.mysql.binlog.event_types import HEADER_BYTES, PACKET, SIZE
from floodmark.connectors.mysql.binlog.packets import FULL
from floodmark.connectors.mysql.binlog.packets import HEADER_BYTES as PACKET_HEADER
from floodmark.errors import DecodeError, StateDirError

WHOLE_BYTES = 1 << 20
"""Smaller transactions stay compressed in segments."""
PIECE_BYTES = 1 << 20

Scratch = Callable[[], BinaryIO]
"""Opens an unnamed temporary file."""


@dataclass(frozen=True)
class InflatedEvents:
    """Consecutive events of a compressed transaction.

    Attributes:
        data: the events, shape (bytes,).
        starts: where each one starts in ``data``, shape (events,), at least one.
        begin: where the first one begins in the transaction.
        last: whether the last one ends the transaction.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    begin: int
    last: bool


class Inflation:
    """Decompresses one transaction.

    Args:
        event: file that begins with the event; ``close`` closes it.
        size: bytes of the event without its checksum.

    Raises:
        DecodeError: the event is malformed.
    """

    def __init__(self, event: BinaryIO, size: int) -> None:
        self._event = event
        event.seek(HEADER_BYTES)
        self._header: PayloadHeader = payload_header(event.read(HEAD_BYTES), size - HEADER_BYTES)
        event.seek(HEADER_BYTES + self._header.begin)
        source = pa.PythonFile(_Limited(event, self._header.size), mode="r")
        self._plain = source if self._header.method == NONE else pa.CompressedInputStream(source, "zstd")
        self._rest = b""
        self._done = 0

    def read(self, size: int) -> InflatedEvents:
        """Return the next events.

        Args:
            size: about how many bytes; a single event may be larger.

        Raises:
            DecodeError: the transaction doesn't match its event's header, or ends too early.
        """
        want = size
        while True:
            data = self._take(max(want - len(self._rest), 0))
            starts, end = event_starts(data)
            left = self._header.plain - self._done - end
            if len(starts) or left == 0:
                break
            self._rest = data
            # Once the size of a large event is known, read the whole event at once.
            want = int.from_bytes(data[SIZE : SIZE + 4], "little") if len(data) >= HEADER_BYTES else want + HEADER_BYTES
            if want > self._header.plain - self._done:
                raise DecodeError("A compressed transaction in the binlog is cut off.")
        events = InflatedEvents(np.frombuffer(data, np.uint8, end), starts, self._done, left == 0)
        refuse_strangers(events.data, starts)
        self._rest = data[end:]
        self._done += end
        if events.last and self._read(1):
            raise DecodeError("A compressed transaction in the binlog is longer than it says.")
        return events

    def close(self) -> None:
        """Close the file."""
        self._event.close()

    def _take(self, size: int) -> bytes:
        """Return the bytes left from the last read, followed by ``size`` more."""
        size = min(size, self._header.plain - self._done - len(self._rest))
        found = self._read(size) if size else b""
        if len(found) < size:
            raise DecodeError("A compressed transaction in the binlog is shorter than it says.")
        return self._rest + found if self._rest else found

    def _read(self, size: int) -> bytes:
        parts = []
        try:
            while size and (part := self._plain.read(size)):
                parts.append(part)
                size -= len(part)
        except (pa.ArrowException, OSError) as exc:
            raise DecodeError(f"A compressed transaction in the binlog cannot be read: {exc}.") from None
        return parts[0] if len(parts) == 1 else b"".join(parts)


class _Limited(io.RawIOBase):
    """Reads at most a number of bytes from a file's current position.

    Args:
        file: positioned at the first byte.
        size: how many bytes.
    """

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes; all that are left if it is negative."""
        found = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(found)
        return found


class Parcel:
    """Writes an event that spans several packets to a file.

    Args:
        scratch: opens the file.
        number: sequence number of the first packet.

    Attributes:
        number: sequence number of the next packet.
        done: whether the event is complete.
        size: bytes of the event so far, with its checksum.
        crc: CRC32 of these bytes, as zlib computes it.
    """

    def __init__(self, scratch: Scratch, number: int) -> None:
        self.number = number
        self.done = False
        self.size = 0
        self.crc = 0
        self._left = 0
        self._last = False
        # The first byte is the packet's status, not part of the event.
        self._skip = 1
        try:
            self._file = scratch()
        except OSError as exc:
            raise _unwritable(exc) from None

    def take(self, data: NDArray[np.uint8]) -> int:
        """Write received bytes to the file; return how many of them belong to the event.

        Args:
            data: begins with a packet, or where the last call ended.

        Raises:
            DecodeError: the packets' sequence numbers don't count up.
            StateDirError: the file cannot be written.
        """
        at = 0
        while at < len(data) and not self.done:
            if not self._left:
                if len(data) - at < PACKET_HEADER:
                    break
                word = int.from_bytes(data[at : at + PACKET_HEADER].tobytes(), "little")
                if word >> 24 != self.number:
                    raise DecodeError("The server sent packets whose numbers don't count up.")
                self.number = (self.number + 1) & 0xFF
                self._left = word & FULL
                self._last = self._left < FULL
                at += PACKET_HEADER
            part = data[at : at + self._left]
            self._add(part)
            at += len(part)
            self._left -= len(part)
            self.done = self._last and not self._left
        return at

    def _add(self, data: NDArray[np.uint8]) -> None:
        part, self._skip = data[self._skip :], max(self._skip - len(data), 0)
        self.crc = zlib.crc32(part.data, self.crc)
        self.size += len(part)
        try:
            self._file.write(part.data)
        except OSError as exc:
            raise _unwritable(exc) from None

    def head(self) -> NDArray[np.uint8]:
        """Return the record's first bytes: an empty packet header, and the event's header."""
        self._file.seek(0)
        return np.frombuffer(bytes(PACKET) + self._file.read(HEADER_BYTES), np.uint8)

    def inflation(self, checksum: int) -> Inflation:
        """Return the decompressor of the event, which must be complete.

        Args:
            checksum: size of the event's checksum.
        """
        return Inflation(self._file, self.size - checksum)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _unwritable(exc: OSError) -> StateDirError:
    return StateDirError(
        f"A large compressed transaction cannot be written to state.dir: {exc}.",
        "Free some space, or make the directory writable for the user that runs the query.",
    )
