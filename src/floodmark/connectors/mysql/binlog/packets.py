"""Finds the packets of MySQL's protocol in a buffer, many at a time.

A packet is a length (3 bytes, little-endian), a sequence number (1 byte, incremented with each packet) and
that many bytes. Where a packet starts depends on the one before, so packets form a sequential chain. A few
large packets are walked one by one. For many small ones the buffer is divided into blocks: each block is
searched for a position from which the sequence numbers count up for several packets, then the chains of all
blocks are walked at once. A chain that ends where the next one starts proves that one. After the first chain
that doesn't, some packets are walked one by one, and the search starts over.

A packet of ``FULL`` bytes is continued by the next one.

Source: MySQL's documentation, "MySQL Packets".
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from floodmark.errors import DecodeError

HEADER_BYTES = 4
FULL = 0xFFFFFF
"""Length of a packet that the next one continues."""

_SAMPLE = 64
_MEAN_BYTES = 300
_MANY = 4096
"""Packets larger than ``_MEAN_BYTES`` on average, or fewer than ``_MANY``, are walked one by one, which costs less."""
_MIN_BLOCKS = 16
_HOPS = 4
_STEPS = 8
_FULL_WORD = np.uint32(FULL)
_STRAIGHT_BYTES = 256 << 10

_WORD = struct.Struct("<I")

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Packets:
    """The complete packets at the start of a buffer.

    Attributes:
        starts: where their headers begin, shape (packets,).
        end: where the last one ends; 0 if there is none.
        number: sequence number of the next packet.
        continued: whether one of them is continued by the next (see ``join``).
    """

    starts: Positions
    end: int
    number: int
    continued: bool


def le_view(buf: Bytes, dtype: str) -> NDArray[Any]:
    """View a byte buffer as overlapping little-endian numbers: element i starts at byte i.

    Args:
        buf: shape (n,).
        dtype: such as ``<u4`` or ``<i8``.

    Returns:
        Shape (n - itemsize + 1,), a view with a stride of one byte.
    """
    size = np.dtype(dtype).itemsize
    return np.ndarray((max(len(buf) - size + 1, 0),), dtype=dtype, buffer=buf.data, strides=(1,))


def find_packets(buf: Bytes, number: int) -> Packets:
    """Return the complete packets of a buffer that starts with one.

    A continued packet is complete when the last packet that continues it is.

    Args:
        buf: shape (bytes,).
        number: expected sequence number of the first packet.

    Raises:
        DecodeError: the sequence numbers don't count up.
    """
    walked, end = _walk(buf, 0, len(buf), _SAMPLE)
    starts = np.array(walked, np.int64)
    if len(starts) == _SAMPLE:
        if end < _SAMPLE * _MEAN_BYTES and (len(buf) - end) * _SAMPLE > _MANY * end:
            more, end = _walk_blocks(buf, end, end // _SAMPLE + 1)
        else:
            walked, end = _walk(buf, end, len(buf))
            more = np.array(walked, np.int64)
        starts = np.concatenate([starts, more])
    count = len(starts)
    if not (buf[starts + 3] == (np.arange(count) + number).astype(np.uint8)).all():
        raise DecodeError("The server sent packets whose numbers don't count up.")
    # A cheap test, which also hits packets a few bytes shorter than FULL: the distances include the headers.
    continued = bool((np.diff(starts, append=end) > FULL).any())
    if continued:
        full = _lengths(buf, starts) == FULL
        last = np.flatnonzero(~full)
        count = int(last[-1]) + 1 if len(last) else 0
        end = int(starts[count]) if count < len(starts) else end
        starts = starts[:count]
        continued = bool(full[:count].any())
    return Packets(starts, end if count else 0, (number + count) & 0xFF, continued)


def join(buf: Bytes, packets: Packets, filled: int) -> tuple[Packets, int]:
    """Remove the headers of continuing packets from a buffer, in place.

    Args:
        buf: the buffer given to ``find_packets``; it may hold more bytes now.
        packets: the result of ``find_packets``.
        filled: how many bytes the buffer holds.

    Returns:
        The joined packets, and how many bytes the buffer holds now.
    """
    starts = packets.starts
    continuing = np.zeros(len(starts), bool)
    continuing[1:] = _lengths(buf, starts[:-1]) == FULL
    headers = [*starts[continuing].tolist(), filled]
    to = headers[0]
    for header, after in pairwise(headers):
        piece = buf[header + HEADER_BYTES : after]
        buf[to : to + len(piece)] = piece.copy()
        to += len(piece)
    removed = HEADER_BYTES * np.cumsum(continuing)
    whole = (starts - removed)[~continuing]
    return Packets(whole, packets.end - int(removed[-1]), packets.number, False), to


def _lengths(buf: Bytes, starts: Positions) -> Positions:
    return le_view(buf, "<u4")[starts].astype(np.int64) & FULL


def _walk(buf: Bytes, at: int, until: int, count: int | None = None) -> tuple[list[int], int]:
    """Return where packets start from ``at`` on until one ends at or after ``until``, and where the last one ends."""
    starts: list[int] = []
    append, word = starts.append, _WORD.unpack_from
    data = buf.data
    size = len(buf)
    last = min(until, size - HEADER_BYTES + 1)
    left = count if count is not None else -1
    while at < last and left:
        after = at + HEADER_BYTES + (word(data, at)[0] & FULL)
        if after > size:
            break
        append(at)
        at = after
        left -= 1
    return starts, at


def _walk_blocks(buf: Bytes, at: int, mean: int) -> tuple[Positions, int]:
    """Return where packets start from ``at`` on, and where the last complete one ends.

    Args:
        buf: shape (bytes,).
        at: where a packet starts.
        mean: average bytes per packet.
    """
    runs: list[Positions] = []
    size = len(buf)
    while size - at > _MIN_BLOCKS * _HOPS * mean:
        run, proven = _walk_chains(buf, _begins(buf, at, mean))
        runs.append(run[:-1])
        at = int(run[-1])  # walked again below, since this packet may be incomplete
        if not proven:
            walked, at = _walk(buf, at, at + _STRAIGHT_BYTES)
            runs.append(np.array(walked, np.int64))
            proven = not walked
        if proven:
            break
    walked, at = _walk(buf, at, size)
    return np.concatenate([*runs, np.array(walked, np.int64)]), at


def _begins(buf: Bytes, at: int, mean: int) -> Positions:
    """Return positions where packets seem to start, ``at`` first, about one per block."""
    size = len(buf)
    # More blocks need fewer steps, but more searching.
    blocks = max(math.isqrt((size - at) // mean), _MIN_BLOCKS)
    window = mean + 64
    edges = at + (size - at) // blocks * np.arange(1, blocks)
    candidates = (edges[:, None] + np.arange(window)).ravel()
    candidates = candidates[candidates < size - HEADER_BYTES]
    words = le_view(buf, "<u4")
    place = candidates
    # Keep the candidates from which the sequence numbers count up for _HOPS packets.
    for _ in range(_HOPS):
        word = words[place].astype(np.int64)
        after = place + HEADER_BYTES + (word & FULL)
        inside = after < size - HEADER_BYTES
        candidates, word, after = candidates[inside], word[inside], after[inside]
        counts = buf[after + 3] == ((word >> 24) + 1 & 0xFF)
        candidates, place = candidates[counts], after[counts]
    _, first = np.unique(np.searchsorted(edges, candidates, side="right"), return_index=True)
    return np.concatenate([[at], candidates[first]])


def _walk_chains(buf: Bytes, begins: Positions) -> tuple[Positions, bool]:
    """Walk the chains that start at the given positions, all at once.

    Returns:
        Where the packets of the proven chains start, and whether all chains are proven. The last packet may be
        incomplete.
    """
    words = le_view(buf, "<u4")
    stop = len(words) - 1
    limits = np.append(begins[1:], stop)
    place = begins
    steps = [place]
    # All chains take the same number of steps: those that run past the start of the next chain are cut off below.
    while (place < limits).any():
        for _ in range(_STEPS):
            place = place + (words[place] & _FULL_WORD)
            place += HEADER_BYTES
            np.minimum(place, stop, out=place)
            steps.append(place)
    table = np.array(steps).T
    inside = table < limits[:, None]
    ends = table[np.arange(len(begins)), np.count_nonzero(inside, axis=1)]
    wrong = np.flatnonzero(ends[:-1] != limits[:-1])
    chains = int(wrong[0]) + 1 if len(wrong) else len(begins)
    return table[:chains][inside[:chains]], not len(wrong)
