"""Finds CopyData frames in a buffer, many at a time.

A CopyData frame is ``d``, a big-endian int32 length that counts itself, and the data. Where a frame begins follows only
from the one before. A vectorised scan finds candidates: ``d`` followed by a zero byte (a length below 16 MiB). As long
as each candidate ends where the next one begins, they are frames without a loop; only the breaks are handled one by
one.

Source: PostgreSQL documentation, "Message Formats", CopyData.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.postgres.wire.messages import FRAME_LENGTH
from floodmark.errors import DecodeError

COPY_DATA = 0x64
HEADER_BYTES = 5
MAX_FRAME_BYTES = 1 << 30
"""The server's strings are shorter (MaxAllocSize)."""

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]


def be_view(buf: Bytes, dtype: str) -> NDArray[np.generic]:
    """View a byte buffer as overlapping big-endian numbers: element i starts at byte i.

    Args:
        buf: shape (n,).
        dtype: such as ``>u4`` or ``>i8``.

    Returns:
        Shape (n - itemsize + 1,), a view with a stride of one byte.
    """
    size = np.dtype(dtype).itemsize
    return np.ndarray((max(len(buf) - size + 1, 0),), dtype=dtype, buffer=buf.data, strides=(1,))


def be32(buf: Bytes, at: int) -> int:
    """Return the unsigned number in the 4 bytes at an offset."""
    return int.from_bytes(bytes(buf[at : at + 4]), "big")


def be64(buf: Bytes, at: int) -> int:
    """Return the unsigned number in the 8 bytes at an offset."""
    return int.from_bytes(bytes(buf[at : at + 8]), "big")


def frame_ends(buf: Bytes, starts: Positions) -> Positions:
    """Return where frames end, shape (frames,)."""
    return starts + FRAME_LENGTH + be_view(buf, ">u4")[starts + FRAME_LENGTH].astype(np.int64)


def frame_end(buf: Bytes, start: int) -> int:
    """Return where a frame ends."""
    return start + FRAME_LENGTH + be32(buf, start + FRAME_LENGTH)


def find_frames(buf: Bytes) -> tuple[Positions, int]:
    """Return where the complete CopyData frames start, and where the last one ends.

    The buffer must begin at a frame. The scan ends at the first byte that is not the start of a
    complete CopyData frame: an incomplete one, or another message.

    Returns:
        Starts, shape (frames,); the end of the last frame (0 if there is none).

    Raises:
        DecodeError: a frame is shorter than its header, or longer than any that the server makes.
    """
    size = len(buf)
    if size < HEADER_BYTES or buf[0] != COPY_DATA:
        return np.empty(0, np.int64), 0
    candidates = np.flatnonzero((buf[:-1] == COPY_DATA) & (buf[1:] == 0))
    candidates = candidates[candidates <= size - HEADER_BYTES]
    lengths = be_view(buf, ">u4")
    ends = candidates + FRAME_LENGTH + lengths[candidates + FRAME_LENGTH].astype(np.int64)
    # After these candidates the chain breaks: a candidate lies within a frame, or a frame is too long for a candidate.
    breaks = np.flatnonzero(ends[:-1] != candidates[1:])
    runs: list[Positions] = []
    position = 0
    while position <= size - HEADER_BYTES and buf[position] == COPY_DATA:
        first = int(np.searchsorted(candidates, position))
        if first < len(candidates) and candidates[first] == position:
            at = int(np.searchsorted(breaks, first))
            last = int(breaks[at]) if at < len(breaks) else len(candidates) - 1
            run = candidates[first : last + 1]
            after = int(ends[last])
            if (ends[first : last + 1] - run < HEADER_BYTES).any():
                raise DecodeError("PostgreSQL sent a message that is shorter than its header.")
        else:  # a frame of 16 MiB or more
            run = np.array([position], np.int64)
            after = position + FRAME_LENGTH + int(lengths[position + FRAME_LENGTH])
            if after - position > MAX_FRAME_BYTES:
                raise DecodeError(f"PostgreSQL announced a message of {after - position} bytes.")
        if after > size:
            # All frames of the run but the last end where another begins, so only the last is incomplete.
            if len(run) > 1:
                runs.append(run[:-1])
                position = int(run[-1])
            break
        runs.append(run)
        position = after
    return (np.concatenate(runs) if runs else np.empty(0, np.int64)), position
