"""Counts and sums of rows by ranges of their keys' hashes, by which two sides of any size are compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from floodmark.verification.hashes import Hashes, row_hashes

MOST_BITS = 18
ROWS_IN_RANGE = 64
Mask = npt.NDArray[np.bool_]


def bits_for(rows: int) -> int:
    """Return into how many ranges, as a power of two, so many rows are divided."""
    return min(max((max(rows, 1) // ROWS_IN_RANGE).bit_length(), 4), MOST_BITS)


def ranges_of(keys: Hashes, bits: int) -> npt.NDArray[np.int64]:
    """Return the number of the range that each key's hash lies in."""
    return (keys >> np.uint64(64 - bits)).astype(np.int64)


@dataclass
class Sums:
    """What one side has in each range.

    Attributes:
        counts: rows, shape (ranges,).
        totals: sums of the rows' hashes modulo 2^64, shape (ranges,).
    """

    bits: int
    counts: npt.NDArray[np.int64] = field(init=False)
    totals: Hashes = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros(1 << self.bits, np.int64)
        self.totals = np.zeros(1 << self.bits, np.uint64)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())

    def add(self, rows: pa.Table, key: tuple[str, ...]) -> None:
        """Add rows.

        Args:
            rows: the compared columns only.
            key: the columns of the key.
        """
        if not rows.num_rows:
            return
        hashes = row_hashes(rows, rows.column_names)
        where = ranges_of(row_hashes(rows, key), self.bits)
        size = len(self.counts)
        self.counts += np.bincount(where, minlength=size)
        # ``bincount`` adds floats, which hold sums of halves exactly up to two million rows.
        for begin in range(0, len(hashes), 1 << 20):
            part, at = hashes[begin : begin + (1 << 20)], where[begin : begin + (1 << 20)]
            low = np.bincount(at, (part & np.uint64(0xFFFFFFFF)).astype(np.float64), size)
            high = np.bincount(at, (part >> np.uint64(32)).astype(np.float64), size)
            self.totals += low.astype(np.uint64) + (high.astype(np.uint64) << np.uint64(32))

    def merge(self, other: Self) -> Self:
        """Add what another part of the same side has, and return this."""
        self.counts += other.counts
        self.totals += other.totals
        return self

    def differing(self, other: Self) -> Mask:
        """Return the ranges in which two sides differ."""
        return np.asarray((self.counts != other.counts) | (self.totals != other.totals))


def sums_of(tables: Iterable[pa.Table], key: tuple[str, ...], bits: int) -> Sums:
    """Return the sums of rows."""
    sums = Sums(bits)
    for table in tables:
        sums.add(table, key)
    return sums


def limited(mask: Mask, counts: npt.NDArray[np.int64], most: int) -> Mask:
    """Return the first of the ranges with up to so many rows together, at least one."""
    chosen = np.flatnonzero(mask)
    fits = np.cumsum(counts[chosen]) <= most
    fits[:1] = True
    kept = np.zeros_like(mask)
    kept[chosen[fits]] = True
    return kept
