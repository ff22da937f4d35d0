"""Marks: what proves that a binlog file is the one that a position was taken from.

A file's number says nothing: a server that was reset, restored or replaced has files with the same numbers. Two things
tell them apart. Each file begins with a format description that holds when it was begun and by which server, and the
server sends it first wherever it is asked to begin. And the events before a position are those that were read there:
they hold times, numbers of sessions and transactions, and the rows. So the server is asked to begin a few events
before the position, and what comes is compared.
"""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, replace
from typing import Any, Self

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

MAX_EVENTS = 64
MAX_BYTES = 64 << 10
"""How much of the log before a position is read again at most, unless its last event is larger."""
EDGE_BYTES = 64 << 10
"""Of a larger event the begin and the end count."""

RESET = (
    "It was reset (RESET MASTER, RESET BINARY LOGS AND GTIDS), restored from a backup, or is a copy that went on by "
    "itself. Ways out: connect to the server that the checkpoint comes from; set snapshot.mode=when_needed, which "
    "reads the tables again; or start with a new checkpoint."
)

_VERSION = slice(HEADER_BYTES + 2, HEADER_BYTES + 52)


class OtherLogError(LogGoneError):
    """The binlog at this address is not the one that a position was taken from."""


def refuse_an_earlier_end(end: str, reached: str) -> None:
    """Prove that a log has not been reset: it reaches to where it was read.

    Args:
        end: position of the log's end now.
        reached: a position that has been read before the end was asked for.

    Raises:
        OtherLogError: it ends before.
    """
    if end < reached:
        raise OtherLogError(f"The binlog ends at {end}, before {reached}, up to which it was read.", RESET)


@dataclass(frozen=True)
class Mark:
    """What proves a place in a binlog file.

    Attributes:
        file: number of the file.
        birth: when the file was begun, by which server and which version of it.
        begin: offset of the first of the last events before the place; 0 if none have been seen.
        end: offset at which those end.
        digest: of those.
    """

    file: int
    birth: str
    begin: int = 0
    end: int = 0
    digest: str = ""

    @property
    def of_file(self) -> Mark:
        """What proves the file alone."""
        return Mark(self.file, self.birth)

    def to_json(self) -> dict[str, Any]:
        """Return the mark as JSON data, for the offset."""
        return {
            "file": self.file,
            "birth": self.birth,
            "begin": self.begin,
            "end": self.end,
            "digest": self.digest,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the mark that ``to_json`` described."""
        return cls(data["file"], data["birth"], data["begin"], data["end"], data["digest"])


def birth_of(event: bytes) -> str:
    """Return what a format description says of its file; the same wherever in the file the server begins to send.

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
        # Where an event lies and its flags may be told otherwise when a file is sent; so may the format description.
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
    """The last events of the file that is read."""

    def __init__(self) -> None:
        self._mark: Mark | None = None
        self._events: deque[_Event] = deque()

    def begin(self, file: int, birth: str) -> None:
        """Begin with a file, unless it is the one that is read already."""
        if self._mark is None or self._mark.file != file:
            self._events.clear()
        self._mark = Mark(file, birth)

    def forget(self) -> None:
        """Begin anew behind an event that can't be compared."""
        self._events.clear()

    def add(self, buf: Bytes, starts: Indices, offsets: Indices, checksum: int) -> None:
        """Take events that follow in the file.

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
        """What proves the place behind the last event; None before the file is known."""
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
        mark: None if nothing is known.

    Attributes:
        done: whether all of the mark has been compared.
    """

    def __init__(self, mark: Mark | None) -> None:
        self._mark = mark
        self._events: deque[_Event] = deque()
        self.done = False

    @property
    def of_events(self) -> bool:
        """Whether events are to be compared, and not the file alone."""
        return self._mark is not None and bool(self._mark.digest)

    def see_file(self, file: int, birth: str) -> None:
        """Take a file's description.

        Raises:
            OtherLogError: it is not the one of the mark.
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
        """Take events of the file, in order.

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
