"""The values of columns before they are encoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


@dataclass
class RawColumn:
    """One column's values of many rows, in the form that the connector uses for the column's type.

    Attributes:
        values: shape (rows,), null where the value is NULL or not in the log.
        unchanged: shape (rows,), true where the log doesn't hold the value; None if it holds all.
    """

    values: pa.Array
    unchanged: NDArray[np.bool_] | None = None

    def take(self, index: NDArray[np.int64]) -> RawColumn:
        """Return the values of some of the rows."""
        return RawColumn(self.values.take(pa.array(index)), None if self.unchanged is None else self.unchanged[index])


def with_old_values(new: Sequence[RawColumn], old: Sequence[RawColumn]) -> list[RawColumn]:
    """Fill in values that new rows lack from the old rows, as far as these have them."""
    result = []
    for after, before in zip(new, old, strict=True):
        if after.unchanged is None:
            result.append(after)
            continue
        lacking = after.unchanged & np.asarray(before.values.is_valid())
        values = pc.if_else(pa.array(lacking), before.values, after.values)
        rest = after.unchanged & ~lacking
        result.append(RawColumn(values, rest if rest.any() else None))
    return result


def take_columns(columns: Sequence[RawColumn], index: NDArray[np.int64]) -> list[RawColumn]:
    """Return the columns' values of some of the rows."""
    return [column.take(index) for column in columns]
