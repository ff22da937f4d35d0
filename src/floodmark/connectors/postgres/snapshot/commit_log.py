"""Records which transactions the log holds, and where they were committed."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.postgres.snapshot.visibility import Visibility

COMPACTED_AT = 64


class CommitLog:
    """Transactions and where they were committed, as capture has received them.

    Capture adds them and the planner queries them, each from its own thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = [(np.empty(0, np.int64),) * 2]

    def add(self, lsn: NDArray[np.int64], xid: NDArray[np.int64]) -> None:
        """Add transactions.

        Args:
            lsn: the LSNs of their commit records, shape (transactions,).
            xid: their numbers, 32 bits, shape (transactions,).
        """
        with self._lock:
            self._parts.append((lsn, xid))

    def cut(self, visible: Visibility, doubtful: frozenset[int], after: int, upto: int) -> int | None:
        """Return the LSN that separates the transactions that a snapshot sees from those that it doesn't.

        Everything committed before it is visible, nothing committed at or after it. A snapshot has no such LSN, and
        None is returned, if a transaction became visible before another whose commit record lies earlier: commits wait
        for disks and standbys, and stop waiting in any order.

        Args:
            visible: what the snapshot sees.
            doubtful: transactions that it doesn't see and that may have been committed before capture began.
            after: the LSN must not lie below.
            upto: up to here everything has been received; all that is visible was committed before.
        """
        found = self._received(visible, doubtful, after, upto)
        if found is None:
            return None
        lsn, seen = found
        cut = _first(lsn[~seen], upto)
        if cut < after or (seen & (lsn >= cut)).any():
            return None
        return cut

    def first_hidden(self, visible: Visibility, doubtful: frozenset[int], after: int, upto: int) -> int | None:
        """Return the LSN before which a snapshot sees everything.

        It may see some of what was committed after it.

        Args:
            visible: what the snapshot sees.
            doubtful: transactions that it doesn't see and that may have been committed before capture began.
            after: transactions committed below are forgotten, except those that aren't visible yet.
            upto: the result, if nothing that was committed before is hidden; up to here everything has been received.

        Returns:
            The LSN; None if it can't be determined, because the log doesn't hold a doubtful transaction.
        """
        found = self._received(visible, doubtful, after, upto)
        return None if found is None else _first(found[0][~found[1]], upto)

    def _received(
        self, visible: Visibility, doubtful: frozenset[int], after: int, upto: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
        """Return the transactions that were committed before an LSN, and whether each is visible."""
        with self._lock:
            self._compact(visible, after)
            lsn, xid = self._parts[0]
        if doubtful - set(visible.full(xid).tolist()):
            return None
        received = lsn < upto
        return lsn[received], visible.sees(xid[received])

    def compact(self, visible: Visibility, delivered: int) -> None:
        """Forget transactions that have been delivered and that every later snapshot sees.

        Args:
            visible: what a snapshot of this moment sees.
            delivered: no read point will lie before this LSN.
        """
        with self._lock:
            self._compact(visible, delivered)

    @property
    def large(self) -> bool:
        """Whether it is time to compact."""
        return len(self._parts) > COMPACTED_AT

    def _compact(self, visible: Visibility, delivered: int) -> None:
        lsn = np.concatenate([part[0] for part in self._parts])
        xid = np.concatenate([part[1] for part in self._parts])
        kept = (lsn >= delivered) | (visible.full(xid) >= visible.oldest)
        self._parts = [(lsn[kept], xid[kept])]


def _first(lsn: NDArray[np.int64], otherwise: int) -> int:
    return int(lsn.min()) if len(lsn) else otherwise
