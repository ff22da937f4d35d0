"""What is done with the parts of either side, and where: in Spark's tasks or in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from floodmark.sinks.verifiable import DividedRows, as_they_are
from floodmark.verification.candidates import refined
from floodmark.verification.hashes import Hashes, row_hashes
from floodmark.verification.sums import Mask, Sums, sums_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
_SLICES = 4
"""How many of Spark's tasks there are for each core, which balances parts of different sizes."""


class Part(Protocol):
    """A part of one side's rows: ``TargetPart``, or a chunk of the source."""

    def rows(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows, with these columns."""


@dataclass(frozen=True)
class Compared:
    """What is compared.

    Attributes:
        columns: names and types.
        key: the columns of the key, which are among them.
        shape: makes of the source's rows what the target can hold, and changes nothing of the target's.
    """

    columns: pa.Schema
    key: tuple[str, ...]
    shape: Callable[[pa.Table], pa.Table] = as_they_are

    def rows_of(self, part: Part) -> Iterator[pa.Table]:
        """Yield the rows of a part of either side."""
        return map(self.shape, part.rows(self.columns))


@dataclass(frozen=True)
class Summing:
    """Adds up all rows of a part."""

    compared: Compared
    bits: int

    def __call__(self, part: Part) -> Sums:
        """Return the part's sums."""
        return sums_of(self.compared.rows_of(part), self.compared.key, self.bits)


@dataclass(frozen=True)
class Refining:
    """Finds keys and hashes of the rows in some ranges of a part."""

    compared: Compared
    bits: int
    wanted: Mask

    def __call__(self, part: Part) -> list[pa.Table]:
        """Return the refined rows."""
        return [refined(self.compared.rows_of(part), self.compared.columns, self.compared.key, self.bits, self.wanted)]


@dataclass(frozen=True)
class Picking:
    """Finds the rows of a part whose keys have some hashes.

    Attributes:
        keys: the hashes, ascending.
    """

    compared: Compared
    keys: Hashes

    def __call__(self, part: Part) -> list[pa.Table]:
        """Return the rows."""
        return [one for table in self.compared.rows_of(part) if (one := self.of(table)).num_rows]

    def keys_of(self, table: pa.Table) -> Hashes:
        """Return which of the keys some rows have, ascending."""
        return np.intersect1d(self.keys, row_hashes(table, self.compared.key))

    def of(self, table: pa.Table) -> pa.Table:
        """Return those of some rows."""
        hashes = row_hashes(table, self.compared.key)
        at = np.minimum(np.searchsorted(self.keys, hashes), max(len(self.keys) - 1, 0))
        chosen = np.flatnonzero(self.keys[at] == hashes) if len(self.keys) else at[:0]
        return table.take(pa.array(chosen))


class Runner:
    """Does work on parts.

    Args:
        session: Spark's, whose tasks do it; None: this process does.
    """

    def __init__(self, session: SparkSession | None) -> None:
        self._session = session

    def run(self, work: Callable[[Any], T], parts: Sequence[Any], merge: Callable[[T, T], T], first: T) -> T:
        """Return what the work makes of all parts, merged.

        Args:
            work: can be pickled.
            parts: can be pickled, or all of them are ``local``, or divided where they are read.
            merge: likewise; may change its first argument.
            first: what there is without any part.
        """
        if any(isinstance(part, DividedRows) for part in parts):
            return reduce(merge, chain.from_iterable(part.each(work) for part in parts), first)
        bound = any(getattr(part, "local", False) for part in parts)
        here, there = (parts, []) if self._session is None or bound else ([], parts)
        if self._session is not None and there:
            context = self._session.sparkContext
            slices = min(len(there), _SLICES * context.defaultParallelism)
            made = context.parallelize(there, slices).mapPartitions(_Merged(work, merge)).collect()
            first = reduce(merge, made, first)
        # What is bound to this process reads over connections that it opened, one after the other.
        with ThreadPoolExecutor(1 if bound else os.cpu_count()) as pool:
            return reduce(merge, pool.map(work, here), first)


@dataclass(frozen=True)
class _Merged:
    """Does work on the parts that one of Spark's tasks has."""

    work: Callable[[Any], Any]
    merge: Callable[[Any, Any], Any]

    def __call__(self, parts: Iterable[Any]) -> Iterator[Any]:
        made = [self.work(part) for part in parts]
        return iter([reduce(self.merge, made)] if made else [])


def add_sums(one: Sums, other: Sums) -> Sums:
    """Return the sums of both."""
    return one.merge(other)


def add_rows(one: list[pa.Table], other: list[pa.Table]) -> list[pa.Table]:
    """Return the rows of both."""
    return [*one, *other]
