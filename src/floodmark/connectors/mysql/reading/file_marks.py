"""Marks: fingerprints that prove that a binlog file is the one that a position was taken from.

A file's number proves nothing: a server that was reset, restored or replaced has files with the same numbers. Two
things distinguish them. Each file begins with a format description that holds when the file was begun and by which
server, and the server sends it first, whatever the requested offset. And the events before a position are those that
were read there: they hold times, session and transaction numbers, and the rows. So reading starts a few events before
the position, and what the server sends is compared.
"""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from floodmark.connectors.mysql.binlog.event_types import (
    AT_SIZE,
    AT_TYPE,
    FORMAT_DESCRIPTION,
    HEADER_BYTES,
    LOG_POS,
    PACKET,
    SERVER_ID,
)
from floodmark.connectors.mysql.binlog.packets import le_view
from floodmark.connectors.mysql.binlog.records import Bytes, Indices
from floodmark.errors import LogGoneError
from floodmark.json_data import Json, stored_object

MAX_EVENTS = 64
MAX_BYTES = 64 << 10
"""At most so much of the log before a position is read again, unless its last event is larger."""
EDGE_BYTES = 64 << 10
"""Of a larger event's body, only so many bytes at the start and at the end are hashed."""

RESET = (
    "It was reset (RESET MASTER, RESET BINARY LOGS AND GTIDS), restored from a backup, or is a copy that went on by "
    "itself. Ways out: connect to the server that the checkpoint comes from; set snapshot.mode=when_needed, which "
    "reads the tables again; or start with a new checkpoint."
)

_VERSION = slice(HEADER_BYTES + 2, HEADER_BYTES + 52)


class OtherLogError(LogGoneError):
    """The binlog at this address is not the one that a position was taken from."""


def refuse_an_earlier_end(end: str, reached: str) -> None:
    """Verify that a log has not been reset: it still reaches the position up to which it was read.

    Args:
        end: current position of the log's end.
        reached: a position that was read before ``end`` was queried.

    Raises:
        OtherLogError: the log ends before ``reached``.
    """
    if end < reached:
        raise OtherLogError(f"The binlog ends at {end}, before {reached}, up to which it was read.", RESET)


@dataclass(frozen=True)
class Mark:
    """Fingerprint of a binlog file, and of the last events before a position in it.

    Attributes:
        file: number of the file.
        birth: when the file was begun, by which server and which version of it.
        begin: offset of the first of these events; 0 if there are none.
        end: offset at which the last one ends.
        digest: digest of the events; empty if there are none.
    """

    file: int
    birth: str
    begin: int = 0
    end: int = 0
    digest: str = ""

    @property
    def of_file(self) -> Mark:
        """The mark of the file alone, without events."""
        return Mark(self.file, self.birth)

    def to_json(self) -> dict[str, Json]:
        """Return the mark as JSON data, for the offset."""
        return {
            "file": self.file,
            "birth": self.birth,
            "begin": self.begin,
            "end": self.end,
            "digest": self.digest,
        }

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the mark from the data of ``to_json``.

        Raises:
            CheckpointError: it is other data.
        """
        mark = stored_object(data, "the mark of a binlog file")
        return cls(
            mark.integer("file"), mark.text("birth"), mark.integer("begin"), mark.integer("end"), mark.text("digest")
        )


def birth_of(event: bytes) -> str:
    """Return a file's ``birth`` from its format description, which is the same wherever the server begins to send.

    Args:
        event: from its header.
    """
    seconds = int.from_bytes(event[:4], "little")
    server = int.from_bytes(event[SERVER_ID : SERVER_ID + 4], "little")
    version = event[_VERSION].split(b"\0")[0].decode("ascii", "replace")
    return f"{seconds}-{server}-{version}"


@dataclass(frozen=True)
class _Event:
    offset: int
    size: int
    digest: bytes


def _events(buf: Bytes, starts: Indices, offsets: Indices, checksum: int) -> list[_Event]:
    words = le_view(buf, "<u4")
    found = []
    for start, offset in zip(starts.tolist(), offsets.tolist(), strict=True):
        size = int(words[start + AT_SIZE])
        begin = start + PACKET
        # The server may change an event's offset and flags, and a format description's body, when it sends a file.
        digest = hashlib.blake2b(buf[begin : begin + LOG_POS].tobytes(), digest_size=16)
        if buf[start + AT_TYPE] != FORMAT_DESCRIPTION:
            body = buf[begin + HEADER_BYTES : begin + size - checksum]
            digest.update(body[:EDGE_BYTES].tobytes())
            digest.update(body[max(len(body) - EDGE_BYTES, EDGE_BYTES) :].tobytes())
        found.append(_Event(offset, size, digest.digest()))
    return found


def _digest(events: deque[_Event]) -> str:
    return hashlib.blake2b(b"".join(event.digest for event in events), digest_size=16).hexdigest()


class Tail:
    """Digests of the last events of the file that is being read."""

    def __init__(self) -> None:
        self._mark: Mark | None = None
        self._events: deque[_Event] = deque()

    def begin(self, file: int, birth: str) -> None:
        """Set the current file; a different one forgets the events."""
        if self._mark is None or self._mark.file != file:
            self._events.clear()
        self._mark = Mark(file, birth)

    def forget(self) -> None:
        """Forget the events, because the next one can't be compared."""
        self._events.clear()

    def add(self, buf: Bytes, starts: Indices, offsets: Indices, checksum: int) -> None:
        """Add the next events of the file.

        Args:
            buf: the records.
            starts: where they start, shape (events,).
            offsets: in the file, shape (events,).
            checksum: size of their checksums.
        """
        events = self._events
        for event in _events(buf, starts[-MAX_EVENTS:], offsets[-MAX_EVENTS:], checksum):
            if events and events[-1].offset + events[-1].size != event.offset:
                events.clear()
            events.append(event)
        while len(events) > 1 and (len(events) > MAX_EVENTS or _span(events) > MAX_BYTES):
            events.popleft()

    @property
    def mark(self) -> Mark | None:
        """The mark of the position after the last event; None before the file is known."""
        events = self._events
        if self._mark is None or not events:
            return self._mark
        end = events[-1].offset + events[-1].size
        return replace(self._mark, begin=events[0].offset, end=end, digest=_digest(events))


def _span(events: deque[_Event]) -> int:
    return events[-1].offset + events[-1].size - events[0].offset


class Proof:
    """Compares what a server sends with a mark.

    Args:
        mark: None if there is nothing to compare.

    Attributes:
        done: whether the whole mark has been compared.
    """

    def __init__(self, mark: Mark | None) -> None:
        self._mark = mark
        self._events: deque[_Event] = deque()
        self.done = False

    @property
    def of_events(self) -> bool:
        """Whether the mark covers events, not only the file."""
        return self._mark is not None and bool(self._mark.digest)

    def see_file(self, file: int, birth: str) -> None:
        """Compare a file's number and birth.

        Raises:
            OtherLogError: they are not those of the mark.
        """
        mark = self._mark
        if self.done:
            return
        if mark is not None and (mark.file, mark.birth) != (file, birth):
            raise OtherLogError(
                f"The binlog file number {mark.file} is not the one that the checkpoint was taken from: that was begun "
                f"as {mark.birth} (seconds since 1970, server_id, version), this one as {birth}.",
                RESET,
            )
        self.done = not self.of_events

    def see_events(self, buf: Bytes, starts: Indices, offsets: Indices, checksum: int) -> None:
        """Compare events of the file, which come in order.

        Args:
            buf: the records.
            starts: where they start, shape (events,).
            offsets: in the file, shape (events,).
            checksum: size of their checksums.

        Raises:
            OtherLogError: they are not those of the mark.
        """
        mark = self._mark
        if self.done or mark is None:
            return
        first, behind = np.searchsorted(offsets, [mark.begin, mark.end])
        self._events += _events(buf, starts[first:behind], offsets[first:behind], checksum)
        events = self._events
        reached = events and events[-1].offset + events[-1].size >= mark.end
        if not reached and behind == len(offsets):
            return
        if not reached or _digest(events) != mark.digest:
            raise OtherLogError(
                f"The events before offset {mark.end} of the binlog file number {mark.file} are not those that were "
                "delivered from there.",
                RESET,
            )
        self.done = True
        self._events.clear()
