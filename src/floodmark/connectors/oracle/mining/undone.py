"""Which changes a transaction has undone itself: LogMiner shows the inverse of each, with ``ROLLBACK`` = 1.

An inverse row undoes the latest change before it of the row with the same ROWID that isn't undone yet. Read from the
end, that is the next one, so of a transaction of any size only the inverse rows must be remembered.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


class UndoneChanges:
    """Finds what is undone in the pieces of a transaction, which are given from the last one to the first."""

    def __init__(self) -> None:
        self._awaited: Counter[str] = Counter()

    def kept(self, row_ids: pa.StringArray, inverse: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which changes of a piece remain, shape (changes,): neither inverse rows nor what they undo.

        Args:
            row_ids: of the rows that are changed, in the log's order, without null.
            inverse: shape (changes,): which are inverse rows.
        """
        kept = ~inverse
        if not inverse.any() and not self._awaited:
            return kept
        # Only rows that something undoes are looked at one by one.
        concerned = pa.array({*self._awaited, *row_ids.filter(pa.array(inverse)).to_pylist()}, pa.string())
        places = np.flatnonzero(pc.is_in(row_ids, concerned).to_numpy(zero_copy_only=False))
        for place, row_id in zip(places[::-1].tolist(), row_ids.take(pa.array(places[::-1])).to_pylist(), strict=True):
            if inverse[place]:
                self._awaited[row_id] += 1
            elif self._awaited[row_id]:
                self._awaited[row_id] -= 1
                kept[place] = False
        self._awaited = +self._awaited
        return kept

    @property
    def unmatched(self) -> list[str]:
        """The ROWIDs of inverse rows for which no change was found."""
        return sorted(self._awaited.elements())
