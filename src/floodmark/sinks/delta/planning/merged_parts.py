"""Decides which changes of several parts are the last ones of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.keys import row_codes

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MergedParts:
    """The changes of parts, one after the other.

    Attributes:
        changes: keys and positions.
        lost: which of them a later change of the same key, or a truncate, replaces, shape (changes,).
        offsets: where each part's changes begin, and their number, shape (parts + 1,).
    """

    changes: pa.Table
    lost: Mask
    offsets: Numbers

    @classmethod
    def of(cls, parts: Sequence[Part], truncated: str) -> MergedParts:
        """Merge parts.

        Args:
            parts: of one table with a key; at least one.
            truncated: the position of the table's last truncate; empty without one.
        """
        changes = pa.concat_tables([part.changes for part in parts], promote_options="permissive")
        offsets = np.cumsum([0, *(part.changes.num_rows for part in parts)])
        if truncated:
            lost = np.asarray(pc.less(changes[POSITION], truncated).combine_chunks().to_numpy(zero_copy_only=False))
        else:
            lost = np.zeros(changes.num_rows, np.bool_)
        if len(parts) > 1:
            lost[_replaced(changes)] = True
        return cls(changes, lost, offsets)

    def lost_rows(self, number: int, count: int) -> npt.NDArray[np.uint64]:
        """Return which rows of a part's data file are lost.

        Args:
            number: the part's.
            count: how many rows the file has.
        """
        begin = self.offsets[number]
        return np.flatnonzero(self.lost[begin : begin + count]).astype(np.uint64)

    def deleted(self, counts: Sequence[int]) -> pa.Table:
        """Return the keys and positions of rows that are deleted, and whose deletion isn't lost.

        Args:
            counts: how many rows each part's data file has.
        """
        chosen = ~self.lost
        for begin, count in zip(self.offsets, counts, strict=False):
            chosen[begin : begin + count] = False
        return self.changes.filter(pa.array(chosen))


def _replaced(changes: pa.Table) -> Numbers:
    """Return the changes after which there is another one of the same key."""
    codes = row_codes(changes.drop_columns([POSITION]))
    by_key = np.argsort(codes, kind="stable")
    again = codes[by_key[1:]] == codes[by_key[:-1]]
    several = by_key[np.r_[False, again] | np.r_[again, False]] if len(codes) else by_key
    if not len(several):
        return several
    places = pc.rank(changes[POSITION].take(pa.array(several)), tiebreaker="first").to_numpy()
    order: Numbers = several[np.lexsort((places, codes[several]))]
    followed: Mask = codes[order[1:]] == codes[order[:-1]]
    return order[:-1][followed]
