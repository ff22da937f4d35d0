"""Tells keys apart, and finds the rows of files that have the keys of changes, in columns."""

from __future__ import annotations

from collections.abc import Sequence

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


class KeyIndex:
    """The keys of changes, each once.

    Args:
        keys: their columns.
    """

    def __init__(self, keys: pa.Table) -> None:
        self.names: Sequence[str] = keys.column_names
        self._distinct = [pc.unique(column) for column in keys.columns]
        self._whole = len(self.names) == 1 and _is_whole(keys.columns[0])
        codes = _integers(keys.columns[0]) if self._whole else self._codes(keys)
        self._order = np.argsort(codes, kind="stable")
        self._sorted = codes[self._order]

    def find(self, keys: pa.Table) -> tuple[Numbers, Numbers]:
        """Return which rows of a file have such a key, ascending, and which key each of them has.

        Args:
            keys: the file's columns of the key.
        """
        if not len(self._sorted):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if self._whole and _is_whole(keys.columns[0]):
            values = _integers(keys.columns[0])
            if len(values) and bool((values[1:] > values[:-1]).all()):
                # The file is sorted and has each key once, which makes it cheaper to look for the changes in it.
                rows = np.minimum(np.searchsorted(values, self._sorted), len(values) - 1)
                found = np.flatnonzero(values[rows] == self._sorted)
                return rows[found], self._order[found]
            places = np.minimum(np.searchsorted(self._sorted, values), len(self._sorted) - 1)
            rows = np.flatnonzero(self._sorted[places] == values)
            return rows, self._order[places[rows]]
        codes = self._codes(keys)
        places = np.minimum(np.searchsorted(self._sorted, codes), len(self._sorted) - 1)
        rows = np.flatnonzero((codes >= 0) & (self._sorted[places] == codes))
        return rows, self._order[places[rows]]

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
