"""The window rule: which of the rows that were read between two marks in the log are still right at the second.

A row that no change in the window touches had the same values all the time, so it can be delivered at the
window's end. One that was touched is left out, since its changes are delivered: whether it was read before or after
them is not asked. There is one exception. If its last change lacks a value (a large one that stayed as it was), the row
may hold the only copy, and is delivered after all, with the changes that it doesn't contain applied to it.

Source: DDD-3 and "DBLog: A Watermark Based Change-Data-Capture Framework"; the exception is Floodmark's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


@dataclass(frozen=True)
class Touches:
    """What a window's log does to the rows of one table, in the log's order.

    A change of a key is two: the old key's row goes, the new key's row is made.

    Attributes:
        keys: of the rows, as ``key_texts`` returns them, shape (touches,).
        present: whether the row is there afterwards, shape (touches,).
        made: whether the row wasn't there before, shape (touches,).
        lacking: whether the log lacks a value of the row as it is afterwards, shape (touches,).
        contained: whether the rows that were read are known to contain the change, shape (touches,).
        emptied: whether the table was emptied.
    """

    keys: pa.StringArray
    present: NDArray[np.bool_]
    made: NDArray[np.bool_]
    lacking: NDArray[np.bool_]
    contained: NDArray[np.bool_]
    emptied: bool = False


@dataclass(frozen=True)
class Reconciled:
    """What becomes of rows that were read in a window.

    Attributes:
        kept: indices of the rows to deliver as they were read, shape (kept,).
        completed: rows to deliver with changes applied: the row's index, and the touches' in their order.
    """

    kept: NDArray[np.int64]
    completed: list[tuple[int, list[int]]]


def key_texts(columns: list[pa.StringArray]) -> pa.StringArray:
    """Return one text for each key; no two keys have the same.

    Args:
        columns: the key's columns, each of shape (rows,); a key's value is never null, and no text that a database
            writes holds a zero character.
    """
    if len(columns) == 1:
        return columns[0]
    return pc.binary_join_element_wise(*columns, "\0")


def reconcile(keys: pa.StringArray, touches: Touches) -> Reconciled:
    """Decide about rows that were read in a window.

    Args:
        keys: of the rows, as ``key_texts`` returns them, shape (rows,).
        touches: what the window's log does to them.
    """
    if touches.emptied:
        # A row that is in the table afterwards has been inserted in the window.
        return Reconciled(np.empty(0, np.int64), [])
    touched = np.asarray(pc.is_in(keys, touches.keys))
    return Reconciled(np.flatnonzero(~touched), _completed(keys, touched, touches))


def _completed(keys: pa.StringArray, touched: NDArray[np.bool_], touches: Touches) -> list[tuple[int, list[int]]]:
    """Return the touched rows whose last change lacks a value, each with the changes that it doesn't contain."""
    if not touches.lacking.any():
        return []
    doubtful = pc.unique(touches.keys.filter(pa.array(touches.lacking)))
    rows = np.flatnonzero(touched & np.asarray(pc.is_in(keys, doubtful)))
    names = keys.take(pa.array(rows)).to_pylist()
    changes: dict[str, list[int]] = {name: [] for name in names}
    for index in np.flatnonzero(np.asarray(pc.is_in(touches.keys, pa.array(names, pa.string())))).tolist():
        changes[touches.keys[index].as_py()].append(index)
    result = []
    for row, name in zip(rows.tolist(), names, strict=True):
        last = changes[name][-1]
        missing = [index for index in changes[name] if not touches.contained[index]]
        # A row that was made anew in between is another one: nothing of the one that was read belongs to it.
        same = not any(touches.made[index] or not touches.present[index] for index in missing)
        if touches.lacking[last] and same:
            result.append((row, missing))
    return result
