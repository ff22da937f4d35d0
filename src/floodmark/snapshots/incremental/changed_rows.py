"""The changes of a table in a window, and which of the rows that were read in it they leave valid.

For logs that don't tell which of the changes the rows contain already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.base64_text import encode_base64
from floodmark.codecs.raw_column import RawColumn, take_columns, with_old_values
from floodmark.snapshots.incremental.reconcile import Touches, key_texts, reconcile

Numbers = NDArray[np.int64]


@dataclass
class _Part:
    """Changes of one kind and one version of the table.

    Attributes:
        order: the changes' order in the window, shape (changes,).
        values: the rows as they are afterwards, by the columns' names; None if they are gone.
        lacking: whether the log lacks a value of the row, shape (changes,).
    """

    order: Numbers
    keys: pa.StringArray
    made: bool
    values: dict[str, RawColumn] | None
    lacking: NDArray[np.bool_]


def key_strings(values: Sequence[pa.Array]) -> pa.StringArray:
    """Return one text for each key; no two keys have the same.

    Args:
        values: the key's columns, raw.
    """
    texts = []
    for column in values:
        if pa.types.is_binary(column.type):
            texts.append(encode_base64(column))
        else:
            texts.append(column if pa.types.is_string(column.type) else column.cast(pa.string()))
    return key_texts(texts)


class ChangedRows:
    """The changes of a table's rows in a window.

    Args:
        key: the names of the columns that identify a row.

    Attributes:
        emptied: whether the table was emptied, such as by a truncate.
    """

    def __init__(self, key: Sequence[str]) -> None:
        self._key = key
        self._parts: list[_Part] = []
        self.emptied = False

    def add(
        self, names: Sequence[str], order: Numbers, columns: Sequence[RawColumn], gone: bool = False, made: bool = False
    ) -> None:
        """Add changes of one kind.

        Args:
            names: of the columns.
            order: even numbers in the order of the changes, shape (changes,).
            columns: the rows afterwards, or before if they are gone.
            gone: whether the rows are gone afterwards.
            made: whether they weren't there before.
        """
        if not len(order):
            return
        lacking = np.zeros(len(order), bool)
        for column in columns:
            if column.unchanged is not None and not gone:
                lacking |= column.unchanged
        values = dict(zip(names, columns, strict=True))
        self._parts.append(_Part(order, self._keys(names, columns), made, None if gone else values, lacking))

    def add_updates(
        self, names: Sequence[str], order: Numbers, before: Sequence[RawColumn], after: Sequence[RawColumn]
    ) -> None:
        """Add updates; one that changes the key removes a row and makes another one. See ``add``."""
        old, new = self._keys(names, before), self._keys(names, with_old_values(after, before))
        moved = np.asarray(pc.not_equal(old, new).fill_null(True))
        for index, made in ((np.flatnonzero(~moved), False), (np.flatnonzero(moved), True)):
            rows = with_old_values(take_columns(after, index), take_columns(before, index))
            self.add(names, order[index] + 1, rows, made=made)
        gone = np.flatnonzero(moved)
        self.add(names, order[gone], take_columns(before, gone), gone=True)

    def _keys(self, names: Sequence[str], columns: Sequence[RawColumn]) -> pa.StringArray:
        return key_strings([columns[names.index(name)].values for name in self._key])

    def _touches(self) -> tuple[Touches, Numbers]:
        """Return what the changes do to the table's rows, and for each its part and its index there."""
        if not self._parts:
            none = np.empty(0, bool)
            touches = Touches(pa.array([], pa.string()), none, none, none, none, self.emptied)
            return touches, np.empty((0, 2), np.int64)
        order = np.concatenate([part.order for part in self._parts])
        sort = np.argsort(order, kind="stable")
        sizes = [len(part.order) for part in self._parts]
        owner = np.repeat(np.arange(len(sizes)), sizes)
        within = np.concatenate([np.arange(size) for size in sizes])
        touches = Touches(
            pa.concat_arrays([part.keys for part in self._parts]).take(pa.array(sort)),
            np.array([part.values is not None for part in self._parts])[owner][sort],
            np.array([part.made for part in self._parts])[owner][sort],
            np.concatenate([part.lacking for part in self._parts])[sort],
            # Which of them the rows contain isn't known.
            np.zeros(len(sort), bool),
            self.emptied,
        )
        return touches, np.stack([owner, within], axis=1)[sort]

    def still_right(self, names: Sequence[str], columns: Sequence[RawColumn]) -> list[RawColumn]:
        """Return the rows that are to be delivered, as they are at the window's end.

        Args:
            names: of the columns.
            columns: the rows that were read.
        """
        touches, places = self._touches()
        found = reconcile(self._keys(names, columns), touches)
        kept = list(columns)
        if len(found.kept) != len(columns[0].values):
            kept = take_columns(columns, found.kept)
        if not found.completed:
            return kept
        rows = [self._completed(names, columns, index, places[changes].tolist()) for index, changes in found.completed]
        return [
            RawColumn(pa.concat_arrays([column.values, pa.array([row[name] for row in rows], column.values.type)]))
            for name, column in zip(names, kept, strict=True)
        ]

    def _completed(
        self, names: Sequence[str], columns: Sequence[RawColumn], index: int, changes: Sequence[Sequence[int]]
    ) -> Mapping[str, Any]:
        """Return a row with changes applied; there are few such rows."""
        row = {name: column.values[index].as_py() for name, column in zip(names, columns, strict=True)}
        for number, at in changes:
            values = self._parts[number].values
            assert values is not None
            for name, column in values.items():
                if name in row and (column.unchanged is None or not column.unchanged[at]):
                    row[name] = column.values[at].as_py()
        return row
