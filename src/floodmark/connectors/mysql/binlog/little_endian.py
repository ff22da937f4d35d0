"""Reads little-endian integers from a buffer: many of a fixed size, or one of variable length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def numbers(buf: NDArray[np.uint8], at: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return the little-endian numbers of ``size`` bytes (up to 8) that begin at ``at``, shape (numbers,)."""
    result = buf[at].astype(np.int64)
    for place in range(1, size):
        result |= buf[at + place].astype(np.int64) << 8 * place
    return result


def packed_number(data: bytes, at: int) -> tuple[int, int]:
    """Return a length-encoded integer, and where it ends.

    Source: MySQL's documentation, "Protocol::LengthEncodedInteger".

    Raises:
        IndexError: it is truncated.
    """
    first = data[at]
    if first < 251:
        return first, at + 1
    size = {252: 2, 253: 3, 254: 8}.get(first)
    if size is None or at + 1 + size > len(data):
        raise IndexError("a number is cut off")
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size
