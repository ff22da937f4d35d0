"""Frames the bytes that a replication connection receives. No I/O.

Source: PostgreSQL documentation, "Message Formats".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from floodmark.connectors.postgres.wire.frames import (
    COPY_DATA,
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    Bytes,
    Positions,
    find_frames,
    frame_end,
    frame_ends,
)
from floodmark.connectors.postgres.wire.messages import (
    COMMAND_COMPLETE,
    COPY_DONE,
    ERROR_RESPONSE,
    FRAME_KIND,
    KEEPALIVE,
    KEEPALIVE_BYTES,
    NOTICE_RESPONSE,
    NOTIFICATION_RESPONSE,
    PARAMETER_STATUS,
    PAYLOAD,
    READY_FOR_QUERY,
    WAL_DATA,
)
from floodmark.errors import DecodeError

SLACK = 64 << 10
ENDS = (COPY_DONE, COMMAND_COMPLETE, READY_FOR_QUERY)
"""The messages that end the stream."""
_BESIDES = (*ENDS, ERROR_RESPONSE, NOTICE_RESPONSE, PARAMETER_STATUS, NOTIFICATION_RESPONSE)


@dataclass(frozen=True)
class Frames:
    """Consecutive CopyData frames.

    Attributes:
        records: where those that hold log start in the buffer, ascending, shape (records,).
        keepalives: where keepalives start, ascending, shape (keepalives,).
    """

    records: Positions
    keepalives: Positions


@dataclass(frozen=True)
class ServerMessage:
    """A message that isn't CopyData.

    Attributes:
        kind: its type byte.
        body: what follows its length.
    """

    kind: bytes
    body: bytes


class ReceiveBuffer:
    """Holds received bytes from the last cut on, and finds the messages in them.

    Messages other than CopyData are removed, so that nothing but frames remains.

    Args:
        segment_bytes: about how many bytes are received between two cuts.

    Attributes:
        data: the bytes; those from ``framed`` on may be anything.
        framed: end of the last complete frame.
    """

    def __init__(self, segment_bytes: int) -> None:
        self._least_bytes = segment_bytes + SLACK
        self.data: Bytes = np.empty(self._least_bytes, np.uint8)
        self.framed = 0
        self._filled = 0

    def space(self) -> memoryview:
        """Return the free end of the buffer, which the next bytes are to be written to."""
        if self._filled == len(self.data):
            # A record is larger than the buffer.
            larger = np.empty(2 * len(self.data), np.uint8)
            larger[: self._filled] = self.data
            self.data = larger
        return self.data.data[self._filled :]

    def take(self, count: int) -> Iterator[Frames | ServerMessage]:
        """Accept ``count`` bytes that were written to ``space``; return an iterator of what they complete, in order.

        Raises:
            DecodeError: the bytes are no replication messages.
        """
        self._filled += count
        return self._complete()

    def _complete(self) -> Iterator[Frames | ServerMessage]:
        while self.framed < self._filled:
            area = self.data[self.framed : self._filled]
            starts, end = find_frames(area)
            if len(starts):
                frames = self._checked(starts + self.framed)
                self.framed += end
                yield frames
                continue
            message = None if area[0] == COPY_DATA else _other_message(area)
            if message is None:
                return
            self._remove(HEADER_BYTES + len(message.body))
            yield message

    def _checked(self, starts: Positions) -> Frames:
        """Return the frames that start at ``starts``, all of which must be of a known kind and long enough for it."""
        kinds = self.data[starts + FRAME_KIND]
        alive = kinds == KEEPALIVE
        short = frame_ends(self.data, starts) - starts < np.where(alive, KEEPALIVE_BYTES, PAYLOAD + 1)
        if (kinds[~alive] != WAL_DATA).any() or short.any():
            raise _no_message()
        return Frames(starts[~alive], starts[alive])

    def _remove(self, size: int) -> None:
        """Remove the message that follows the frames."""
        start = self.framed
        remaining = self._filled - start - size
        self.data[start : start + remaining] = self.data[start + size : self._filled].copy()
        self._filled -= size

    def drop_framed(self) -> None:
        """Remove the frames, none of which is needed."""
        tail = self.data[self.framed : self._filled].copy()
        self.data[: len(tail)] = tail
        self._filled = len(tail)
        self.framed = 0

    def cut(self, size: int) -> Bytes:
        """Return the first ``size`` bytes and go on in new memory with what follows them, which then starts at 0."""
        payload, tail = self.data[:size], self.data[size : self._filled]
        fresh = np.empty(max(self._least_bytes, 2 * len(tail)), np.uint8)
        fresh[: len(tail)] = tail
        self.data = fresh
        self._filled = len(tail)
        self.framed -= size
        return payload


def _other_message(area: Bytes) -> ServerMessage | None:
    """Return the message, not CopyData, that bytes begin with; None if it is incomplete."""
    if len(area) < HEADER_BYTES:
        return None
    # All messages have a frame's header: type and length.
    kind, size = bytes(area[:1]), frame_end(area, 0)
    if kind not in _BESIDES or not HEADER_BYTES <= size <= MAX_FRAME_BYTES:
        raise _no_message()
    return ServerMessage(kind, bytes(area[HEADER_BYTES:size])) if len(area) >= size else None


def _no_message() -> DecodeError:
    return DecodeError("PostgreSQL sent something that is no replication message.")
