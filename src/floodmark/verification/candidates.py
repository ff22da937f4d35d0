"""Finds the keys in which two sides differ, among the rows of the ranges that differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from floodmark.verification.hashes import Hashes, row_hashes
from floodmark.verification.sums import Mask, ranges_of

KEY_HASH, ROW_HASH = "_key_hash", "_row_hash"
"""Columns of refined rows."""


def no_rows(columns: pa.Schema, key: Sequence[str]) -> pa.Table:
    """Return refined rows of which there are none."""
    hashes = [(KEY_HASH, pa.uint64()), (ROW_HASH, pa.uint64())]
    return pa.schema([*(columns.field(name) for name in key), *hashes]).empty_table()


def refined(tables: Iterable[pa.Table], columns: pa.Schema, key: Sequence[str], bits: int, wanted: Mask) -> pa.Table:
    """Return hashes and keys of the rows in some ranges.

    Args:
        tables: rows.
        columns: what the rows have: the compared columns.
        key: the columns of the key.
        bits: into how many ranges keys are divided.
        wanted: the ranges.
    """
    found = [no_rows(columns, key)]
    for table in tables:
        keys = row_hashes(table, key)
        chosen = np.flatnonzero(wanted[ranges_of(keys, bits)])
        if len(chosen):
            rows = table.take(pa.array(chosen))
            hashes = row_hashes(rows, columns.names)
            values = [*(rows[name] for name in key), pa.array(keys[chosen]), pa.array(hashes)]
            found.append(pa.table(values, schema=found[0].schema))
    return pa.concat_tables(found).combine_chunks()


def differing_keys(source: pa.Table, target: pa.Table) -> pa.Table:
    """Return the keys in which refined rows of two sides differ, each once, with their hashes.

    Args:
        source: refined rows; all of the ranges that they are from.
        target: refined rows of the same ranges, with the same columns.
    """
    both = pa.concat_tables([source, target])
    keys, rows = _numbers(both[KEY_HASH]), _numbers(both[ROW_HASH])
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    count, at = len(first), source.num_rows
    sides = [(number[:at], rows[:at]), (number[at:], rows[at:])]
    (left, left_sums), (right, right_sums) = (_sums(numbers, hashes, count) for numbers, hashes in sides)
    same = (left == 1) & (right == 1) & (left_sums == right_sums)
    return both.take(pa.array(first[~same])).drop_columns([ROW_HASH])


def _numbers(column: pa.ChunkedArray) -> Hashes:
    return np.asarray(column.to_numpy(), dtype=np.uint64)


def _sums(numbers: npt.NDArray[np.int64], hashes: Hashes, count: int) -> tuple[npt.NDArray[np.int64], Hashes]:
    sums = np.zeros(count, np.uint64)
    np.add.at(sums, numbers, hashes)
    return np.bincount(numbers, minlength=count), sums
