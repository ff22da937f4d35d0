"""Verifies the CRC32 of many events at once.

An event that ends with its own CRC32 leaves the CRC's register at a constant. The packet header between two
events is saved and replaced by the one word that takes the register from that constant back to its initial
value, so a single CRC over a whole run of packets is right if that of every event is. The cost is zlib's for
the bytes, and next to nothing per event. A damaged event leaves a difference that later intact events can't
cancel.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.mysql.binlog.event_types import CHECKSUM_BYTES, PACKET
from floodmark.connectors.mysql.binlog.packets import le_view

_POLYNOMIAL = 0xEDB88320
_INITIAL = 0xFFFFFFFF
RIGHT = 0x2144DF1C
"""CRC32 of anything that is followed by its own CRC32."""


def _bridge() -> np.uint32:
    """Return the word that, followed by a zero byte, takes the register from after an event to its initial value."""
    # Run the register backwards over the bytes between two events, from the initial value that the next one needs.
    register = _INITIAL
    for _ in range(8 * PACKET):
        top = register >> 31
        register = (register ^ (_POLYNOMIAL if top else 0)) << 1 & _INITIAL | top
    return np.uint32(register ^ RIGHT ^ _INITIAL)


_BRIDGE = _bridge()


def first_wrong(buf: NDArray[np.uint8], starts: NDArray[np.int64], end: int) -> int | None:
    """Return the index of the first event whose checksum is wrong; None if all are right.

    Args:
        buf: modified temporarily; unchanged when the function returns.
        starts: where the packets of consecutive events start, shape (events,), at least one.
        end: where the last one ends.
    """
    words = le_view(buf, "<u4")
    headers = words[starts[1:]]
    words[starts[1:]] = _BRIDGE
    crc = zlib.crc32(buf[starts[0] + PACKET : end].data)
    words[starts[1:]] = headers
    if crc == RIGHT:
        return None
    ends = np.append(starts[1:], end)
    for index, (start, after) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        if zlib.crc32(buf[start + PACKET : after].data) != RIGHT:
            return index
    return 0


def has_checksum(event: bytes) -> bool:
    """Return whether an event ends with its own checksum."""
    return len(event) > CHECKSUM_BYTES and zlib.crc32(event) == RIGHT
