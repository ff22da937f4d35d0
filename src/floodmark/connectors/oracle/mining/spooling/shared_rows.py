"""Rows of many transactions that are kept together, and where those of each are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.capture.spool_files import CachedFile
from floodmark.codecs.arrays import offsets_of

Numbers = NDArray[np.int64]


@dataclass(eq=False)
class SharedRows:
    """Rows of several transactions; those of each follow each other, in their order.

    Attributes:
        owners: the transactions' numbers, ascending, shape (transactions,).
        begins: where each one's rows begin, shape (transactions,).
        ends: where they end, shape (transactions,).
        sizes: about how many bytes they have, 0 once they aren't needed any more, shape (transactions,).
        rows: the rows, each column of one chunk; None: they are in a file.
        file: where they are then.
        is_verified: whether the file was read as a whole since it was written.
        size: about how many bytes all rows have.
    """

    owners: Numbers
    begins: Numbers
    ends: Numbers
    sizes: Numbers
    rows: pa.Table | None = None
    file: CachedFile | None = None
    is_verified: bool = False
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = self.live

    @property
    def live(self) -> int:
        """About how many bytes are still needed."""
        return int(self.sizes.sum())

    def find(self, numbers: Numbers) -> Numbers:
        """Return which of its transactions are among others, shape (found,).

        Args:
            numbers: the others, ascending.
        """
        at = np.searchsorted(self.owners, numbers)
        inside = at < len(self.owners)
        at, numbers = at[inside], numbers[inside]
        found: Numbers = at[self.owners[at] == numbers]
        return found

    def drop(self, numbers: Numbers) -> None:
        """Record that transactions' rows aren't needed any more.

        Args:
            numbers: which ones, ascending; it need not have them.
        """
        self.sizes[self.find(numbers)] = 0


@dataclass(frozen=True)
class Slices:
    """Rows of transactions in some places, the earlier rows of each first.

    Attributes:
        places: shape (slices,): which of the places, ascending.
        owners: shape (slices,): the numbers of the transactions.
        begins: shape (slices,): where they begin in their place.
        ends: shape (slices,): where they end.
        sizes: shape (slices,): about how many bytes they have.
    """

    places: Numbers
    owners: Numbers
    begins: Numbers
    ends: Numbers
    sizes: Numbers

    def of(self, chosen: NDArray[np.bool_] | slice) -> Slices:
        """Return some of them."""
        arrays = (self.places, self.owners, self.begins, self.ends, self.sizes)
        return Slices(*(one[chosen] for one in arrays))


def needed(places: Sequence[SharedRows]) -> Slices:
    """Return all that is still needed in some places."""
    return _slices(places, [np.flatnonzero(one.sizes) for one in places])


def of_transactions(places: Sequence[SharedRows], numbers: Numbers) -> Slices:
    """Return what belongs to transactions in some places.

    Args:
        places: the places.
        numbers: those of the transactions, ascending.
    """
    return _slices(places, [one.find(numbers) for one in places])


def _slices(places: Sequence[SharedRows], chosen: Sequence[Numbers]) -> Slices:
    def together(arrays: list[Numbers]) -> Numbers:
        return np.concatenate([np.zeros(0, np.int64), *arrays])

    pairs = [(one, some) for one, some in zip(places, chosen, strict=True) if len(some)]
    return Slices(
        np.repeat(np.arange(len(places)), [len(some) for some in chosen]),
        *(
            together([getattr(one, name)[some] for one, some in pairs])
            for name in ("owners", "begins", "ends", "sizes")
        ),
    )


def gathered(slices: Slices, read: Callable[[int, Numbers, Numbers], pa.Table]) -> SharedRows:
    """Return rows of slices, in memory.

    Args:
        slices: at least one.
        read: returns the rows of a place between begins and ends.
    """
    places, first = np.unique(slices.places, return_index=True)
    bounds = [*first.tolist(), len(slices.places)]
    tables = [
        read(place, slices.begins[begin:end], slices.ends[begin:end])
        for place, begin, end in zip(places.tolist(), bounds, bounds[1:], strict=False)
    ]
    rows = pa.concat_tables(tables).combine_chunks()
    counts = slices.ends - slices.begins
    ends = np.cumsum(counts)
    order = np.argsort(slices.owners, kind="stable")
    rows = taken(rows, (ends - counts)[order], ends[order])
    begins = np.flatnonzero(np.diff(slices.owners[order], prepend=-1))
    ends = np.cumsum(np.add.reduceat(counts[order], begins))
    starts = np.concatenate([[0], ends[:-1]])
    return SharedRows(slices.owners[order][begins], starts, ends, np.add.reduceat(slices.sizes[order], begins), rows)


def taken(rows: pa.Table, begins: Numbers, ends: Numbers) -> pa.Table:
    """Return slices of rows, one after the other."""
    if (begins[1:] == ends[:-1]).all():
        return rows.slice(begins[0], ends[-1] - begins[0])
    return rows.take(pa.array(places_of(begins, ends)))


def places_of(begins: Numbers, ends: Numbers) -> Numbers:
    """Return the numbers in ranges, one range after the other.

    Args:
        begins: the first number of each, shape (ranges,).
        ends: the number behind each one's last, shape (ranges,).
    """
    counts = ends - begins
    upto = np.cumsum(counts)
    places: Numbers = np.arange(int(counts.sum())) + np.repeat(begins - (upto - counts), counts)
    return places


def sizes_at(rows: pa.Table, places: Numbers) -> Numbers:
    """Return about how many bytes the rows before each place have.

    Args:
        rows: each column of one chunk.
        places: shape (places,).
    """
    sizes = np.zeros(len(places), np.int64)
    for column in rows.columns if len(rows) else []:
        values = column.chunk(0)
        if pa.types.is_string(values.type):
            sizes += offsets_of(values)[places] + 4 * places
        else:
            sizes += values.type.bit_width // 8 * places
    return sizes
