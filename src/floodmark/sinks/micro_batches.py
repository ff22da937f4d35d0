"""Tells a micro-batch that comes again from another one with its number, by how far it goes for a table."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

_READ_BITS = 32
_READ = (1 << _READ_BITS) - 1


class Extent(NamedTuple):
    """How far the rows of a table go.

    Attributes:
        logged: the position of the last change from the log; empty if there is none.
        read: that of the last row that a snapshot has read; empty if there is none.
    """

    logged: str
    read: str

    @classmethod
    def of(cls, rows: pa.Table) -> Extent:
        """Return how far rows go.

        Args:
            rows: with the columns ``op`` and ``position``.
        """
        is_read = pc.equal(rows["op"], "r")
        read, logged = (pc.max(rows["position"].filter(one)).as_py() for one in (is_read, pc.invert(is_read)))
        return cls(logged or "", read or "")


NOTHING = Extent("", "")


def mark_of(extents: Iterable[Extent]) -> int:
    """Return a number for how far a micro-batch goes for a table, below 2**63.

    The upper half stands for changes from the log; the lower one for rows that a snapshot has read, which all have the
    position of their read point: 0 if there are none.

    Args:
        extents: of all parts of the table's rows; at least one.
    """
    logged, read = map(max, zip(*extents, strict=True))
    return _number(logged) >> 1 << _READ_BITS | (_number(read) | 1 if read else 0)


def comes_again(written: int, mark: int) -> bool:
    """Return whether a micro-batch is the one with its number that was written.

    When it is delivered again it may lack the rows that a snapshot has read, or some of them: their read point ended
    with the process that had begun it.

    Args:
        written: the mark of the one that was written.
        mark: the other one's.
    """
    return written == mark or (written >> _READ_BITS == mark >> _READ_BITS and not mark & _READ)


def _number(position: str) -> int:
    return int.from_bytes(blake2b(position.encode(), digest_size=4).digest(), "big")
