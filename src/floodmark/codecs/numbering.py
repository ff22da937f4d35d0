"""Numbers equal rows of integers or bytes alike, by Arrow's hash tables: sorting rows takes many times as long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Numbering:
    """Which rows are equal.

    Attributes:
        owner: a number for each row, the same for equal rows, shape (rows,); in the order of their first ones.
        first: the index of the first row of each number, shape (numbers,).
    """

    owner: Numbers
    first: Numbers


def number_rows(*columns: Numbers) -> Numbering:
    """Number the rows of columns, each of the shape (rows,)."""
    owner = np.zeros(len(columns[0]), np.int64)
    count = 1
    for column in columns:
        # Columns that have one value are the rule, and looking for others is cheap.
        if not len(column) or (column == column[0]).all():
            continue
        numbers, distinct = _coded(pa.array(column))
        # Numbered again, so that a product can't overflow.
        owner, count = _coded(pa.array(owner * distinct + numbers)) if count > 1 else (numbers, distinct)
    return _with_first(owner, count)


def number_bytes(matrix: NDArray[np.uint8]) -> Numbering:
    """Number the rows of a matrix of bytes, of the shape (rows, width > 0)."""
    rows, width = matrix.shape
    data = pa.py_buffer(np.ascontiguousarray(matrix))
    return _with_first(*_coded(pa.Array.from_buffers(pa.binary(width), rows, [None, data])))


def _coded(values: pa.Array) -> tuple[Numbers, int]:
    coded = values.dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)


def _with_first(owner: Numbers, count: int) -> Numbering:
    if not len(owner):
        return Numbering(owner, owner)
    if count == 1:
        return Numbering(owner, np.zeros(1, np.int64))
    # New numbers rise by one, so a row has one where the highest so far does.
    highest = np.maximum.accumulate(owner)
    return Numbering(owner, np.flatnonzero(np.diff(highest, prepend=-1)))
