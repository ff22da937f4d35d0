"""The window rule: which of the rows that were read between two watermarks are still valid at the second.

A row that no change in the window touches had the same values all the time, so it can be delivered at the
window's end. A changed row is left out, since its changes are delivered; whether it was read before or after them
doesn't matter. There is one exception: if its last change lacks a value (a large one that was not modified), the row
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
    """The changes in a window's log to the rows of one table, in the log's order.

    A change of a key counts as two: the old key's row is deleted, the new key's row is inserted.

    Attributes:
        keys: keys of the rows, as ``key_texts`` returns them, shape (touches,).
        present: whether the row exists afterwards, shape (touches,).
        made: whether the row didn't exist before, shape (touches,).
        lacking: whether the log lacks a value of the row as it is afterwards, shape (touches,).
        contained: whether the rows that were read are known to contain the change, shape (touches,).
        emptied: whether the table was emptied, such as by a truncate.
    """

    keys: pa.StringArray
    present: NDArray[np.bool_]
    made: NDArray[np.bool_]
    lacking: NDArray[np.bool_]
    contained: NDArray[np.bool_]
    emptied: bool = False


@dataclass(frozen=True)
class Reconciled:
    """Which rows that were read in a window are delivered.

    Attributes:
        kept: indices of the rows to deliver as they were read, shape (kept,).
        completed: rows to deliver with changes applied: the row's index, and the indices of the touches in their order.
    """

    kept: NDArray[np.int64]
    completed: list[tuple[int, list[int]]]


def key_texts(columns: list[pa.StringArray]) -> pa.StringArray:
    """Return each key as one text; different keys have different texts.

    Args:
        columns: the key's columns, each of shape (rows,); a key's value is never null, and no text that a database
            writes holds a NUL character, which separates the columns.
    """
    if len(columns) == 1:
        return columns[0]
    return pc.binary_join_element_wise(*columns, "\0")


def reconcile(keys: pa.StringArray, touches: Touches) -> Reconciled:
    """Decide which rows that were read in a window are delivered.

    Args:
        keys: keys of the rows, as ``key_texts`` returns them, shape (rows,).
        touches: the changes in the window's log.
    """
    if touches.emptied:
        # A row that is in the table afterwards has been inserted in the window, so the log has it.
        return Reconciled(np.empty(0, np.int64), [])
    changed = np.asarray(pc.is_in(keys, touches.keys))
    return Reconciled(np.flatnonzero(~changed), _completed(keys, changed, touches))


def _completed(keys: pa.StringArray, changed: NDArray[np.bool_], touches: Touches) -> list[tuple[int, list[int]]]:
    """Return the changed rows whose last change lacks a value, each with the changes that it doesn't contain."""
    if not touches.lacking.any():
        return []
    # Only keys with a change that lacks a value need a closer look. They are few, so it is done row by row.
    doubtful = pc.unique(touches.keys.filter(pa.array(touches.lacking)))
    rows = np.flatnonzero(changed & np.asarray(pc.is_in(keys, doubtful)))
    names = keys.take(pa.array(rows)).to_pylist()
    changes: dict[str, list[int]] = {name: [] for name in names}
    for index in np.flatnonzero(np.asarray(pc.is_in(touches.keys, pa.array(names, pa.string())))).tolist():
        changes[touches.keys[index].as_py()].append(index)
    result = []
    for row, name in zip(rows.tolist(), names, strict=True):
        last = changes[name][-1]
        missing = [index for index in changes[name] if not touches.contained[index]]
        # A row that was inserted in between is a different one: no value of the row that was read belongs to it.
        same = not any(touches.made[index] or not touches.present[index] for index in missing)
        if touches.lacking[last] and same:
            result.append((row, missing))
    return result
