"""Determines which transactions a snapshot sees.

Source: PostgreSQL documentation, "Transaction ID and Snapshot Information Functions".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HALF = 1 << 31


@dataclass(frozen=True)
class Visibility:
    """A snapshot, as ``pg_current_snapshot()`` prints it: ``xmin:xmax:running,…``.

    Attributes:
        oldest: the oldest transaction that was running; all before it have ended.
        next: the first transaction that had not begun.
        running: transactions between them that had not ended.
    """

    oldest: int
    next: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> Visibility:
        """Return the snapshot that a text describes."""
        oldest, following, running = text.split(":")
        return cls(int(oldest), int(following), frozenset(int(xid) for xid in running.split(",") if xid))

    def sees(self, xid: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which committed top-level transactions are visible.

        Args:
            xid: their numbers, 32 bits, shape (transactions,).
        """
        full = self.full(xid)
        return (full < self.next) & ~np.isin(full, list(self.running))

    def full(self, xid: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the 64-bit numbers of transactions: of those with the same low 32 bits, the nearest to ``next``."""
        distance = ((xid - self.next + HALF) & 0xFFFFFFFF) - HALF
        full: NDArray[np.int64] = self.next + distance
        return full
