"""Tells keys apart, and finds the rows of files that have the keys of changes, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]


def row_codes(keys: pa.Table) -> Numbers:
    """Return a number for each row, the same for equal keys."""
    if keys.num_columns == 1 and _is_whole(keys.columns[0]):
        return _integers(keys.columns[0])
    codes = np.zeros(keys.num_rows, np.int64)
    for column in keys.columns:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        numbers = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        # Numbered again, so that a product can't overflow.
        _, codes = np.unique(codes * max(len(encoded.dictionary), 1) + numbers, return_inverse=True)
    return codes.astype(np.int64)


class FileKeys:
    """The keys of a file's rows.

    Args:
        columns: their columns.
    """

    def __init__(self, columns: pa.Table) -> None:
        self.columns = columns
        self.whole = (
            _integers(columns.columns[0]) if columns.num_columns == 1 and _is_whole(columns.columns[0]) else None
        )
        """The numbers that the keys are; None: they are something else."""
        self.ascending = self.whole is not None and bool((self.whole[1:] > self.whole[:-1]).all())
        """Whether the file is sorted by key and has each once, so that keys are found by looking for them."""

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        return int(self.columns.nbytes)


class KeyIndex:
    """The keys of changes, each once.

    Args:
        keys: their columns.
    """

    def __init__(self, keys: pa.Table) -> None:
        self.names: Sequence[str] = keys.column_names
        self._keys = keys
        self._whole = keys.num_columns == 1 and _is_whole(keys.columns[0])
        codes = _integers(keys.columns[0]) if self._whole else self._codes(keys)
        self._order = np.argsort(codes, kind="stable")
        self._sorted = codes[self._order]
        self._texts: dict[str, frozenset[str | None]] = {}

    def may_be_between(self, low: Any, high: Any) -> bool:
        """Return whether any key may be in a range.

        Args:
            low, high: bounds of the first column, as JSON has them.
        """
        column = self._keys.columns[0]
        if not (pa.types.is_integer(column.type) and type(low) is int and type(high) is int):
            return True
        if not self._whole:
            inside = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
            return bool(pc.any(inside).as_py())
        begin, end = self._between(low, high)
        return bool(begin < end)

    def has_text(self, name: str, text: str) -> bool:
        """Return whether any key has a value in a column.

        Args:
            text: the value as text.
        """
        if name not in self._texts:
            distinct = self._distinct[self.names.index(name)]
            self._texts[name] = frozenset(distinct.cast(pa.string()).to_pylist())
        return text in self._texts[name]

    def find(self, keys: FileKeys) -> tuple[Numbers, Numbers]:
        """Return which rows of a file have such a key, ascending, and which key each of them has."""
        values = keys.whole
        if not len(self._sorted) or not keys.columns.num_rows:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if self._whole and values is not None:
            if not keys.ascending:
                return self._looked_up(values)
            begin, end = self._between(values[0], values[-1])
            if end - begin < len(values):
                looked_for = self._sorted[begin:end]
                rows = np.searchsorted(values, looked_for)
                found = np.flatnonzero(values[np.minimum(rows, len(values) - 1)] == looked_for)
                return rows[found], self._order[begin:end][found]
            return self._looked_up(values)
        codes = self._codes(keys.columns)
        return self._looked_up(codes)

    def _looked_up(self, codes: Numbers) -> tuple[Numbers, Numbers]:
        places = np.minimum(np.searchsorted(self._sorted, codes), len(self._sorted) - 1)
        rows = np.flatnonzero(self._sorted[places] == codes)
        return rows, self._order[places[rows]]

    def _between(self, low: int, high: int) -> tuple[int, int]:
        return int(np.searchsorted(self._sorted, low, "left")), int(np.searchsorted(self._sorted, high, "right"))

    @cached_property
    def _distinct(self) -> list[pa.Array]:
        return [pc.unique(column) for column in self._keys.columns]

    def _codes(self, keys: pa.Table) -> Numbers:
        """Return a number for each key; -1 where one of its values is not among those of the changes."""
        codes = np.zeros(keys.num_rows, np.int64)
        for name, distinct in zip(self.names, self._distinct, strict=True):
            found = pc.fill_null(pc.index_in(keys[name], distinct), -1)
            number = np.asarray(found.to_numpy(), dtype=np.int64)
            codes = np.where((number < 0) | (codes < 0), -1, codes * len(distinct) + number)
        return codes


def _is_whole(column: pa.ChunkedArray) -> bool:
    """Return whether a column holds integers, none of them null."""
    return pa.types.is_integer(column.type) and not column.null_count


def _integers(column: pa.ChunkedArray) -> Numbers:
    return np.asarray(column.to_numpy(), dtype=np.int64)
