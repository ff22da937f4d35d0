"""Numbers in a buffer, many at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def numbers(buf: NDArray[np.uint8], at: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return the little-endian numbers of ``size`` bytes (up to 8) that begin at these places, shape (places,)."""
    result = buf[at].astype(np.int64)
    for place in range(1, size):
        result |= buf[at + place].astype(np.int64) << 8 * place
    return result
