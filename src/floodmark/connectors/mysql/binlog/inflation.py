"""Large compressed transactions, decompressed piece by piece.

Capture writes their events into segments as records, as if they had come uncompressed, so neither it nor the tasks
ever hold such a transaction as a whole. What is compressed itself may have up to 1 GiB: what doesn't come as one packet
waits in a file without a name until its checksum is known to be right.

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
"""Opens a file without a name."""


@dataclass(frozen=True)
class InflatedEvents:
    """Consecutive events of a compressed transaction.

    Attributes:
        data: them, shape (bytes,).
        starts: where each one starts, shape (events,), at least one.
        begin: where the first one begins in the transaction.
        last: whether nothing of the transaction follows.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    begin: int
    last: bool


class Inflation:
    """Decompresses one transaction.

    Args:
        event: the event without its checksum: a file, which is closed at the end.
        size: its bytes.

    Raises:
        DecodeError: it is not what it should be.
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
            size: about how many bytes; one event may be larger.

        Raises:
            DecodeError: the transaction is not what its event says, or ends too early.
        """
        want = size
        while True:
            data = self._take(max(want - len(self._rest), 0))
            starts, end = event_starts(data)
            left = self._header.plain - self._done - end
            if len(starts) or left == 0:
                break
            self._rest = data
            # A large event is read at once, as soon as it is known how long it is.
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
        """Return what was left, and so many bytes more."""
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
    """The next bytes of a file, and no more.

    Args:
        file: at its place.
        size: how many bytes.
    """

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to so many bytes."""
        found = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(found)
        return found


class Parcel:
    """Takes the packets of an event that comes in several of them into a file.

    Args:
        scratch: opens the file.
        number: of the first packet.

    Attributes:
        number: of the next packet.
        done: whether the event is there as a whole.
        size: bytes of the event so far, with its checksum.
        crc: of them, as zlib computes it.
    """

    def __init__(self, scratch: Scratch, number: int) -> None:
        self.number = number
        self.done = False
        self.size = 0
        self.crc = 0
        self._left = 0
        self._last = False
        # The first byte says that an event follows.
        self._skip = 1
        try:
            self._file = scratch()
        except OSError as exc:
            raise _unwritable(exc) from None

    def take(self, data: NDArray[np.uint8]) -> int:
        """Take what has been received; return how many bytes of it belong to the event.

        Args:
            data: begins with a packet, or where the last call ended.

        Raises:
            DecodeError: the packets' numbers don't count up.
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
        """Return the record's first bytes: a packet's header, and the event's."""
        self._file.seek(0)
        return np.frombuffer(bytes(PACKET) + self._file.read(HEADER_BYTES), np.uint8)

    def inflation(self, checksum: int) -> Inflation:
        """Return what decompresses the event, which is there as a whole.

        Args:
            checksum: size of its checksum.
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
