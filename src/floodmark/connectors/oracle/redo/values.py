"""The values of statements of SQL_REDO, as they stand in the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import offsets_of, slices
from floodmark.connectors.oracle.redo.gaps import QUOTE, Gaps, Numbers
from floodmark.connectors.oracle.redo.scanner import Form, Side

Rows = slice | Numbers
"""Some statements: by their numbers, or all of them."""
Slots = int | Numbers
"""That of all values, or that of each."""

_LITERAL, _EXPRESSION = np.uint8(Form.LITERAL), np.uint8(Form.EXPRESSION)
NO_LITERAL = -1
"""The number of a literal that is no value as a whole."""


@dataclass(frozen=True)
class Calls:
    """Expressions that differ only in their literals.

    Attributes:
        rows: the statements that have one, or null.
        text: the expression without the content of literals.
        first: shape (statements,): the number of the first literal of each.
    """

    rows: Rows
    text: bytes
    first: NDArray[np.int32]


@dataclass(frozen=True)
class Statements:
    """The values of statements. The slot of a value is its column, and of new values so many more as there are columns.

    Attributes:
        forms: shape (2, columns, statements): how each has a column's value, by side.
        gaps: those of the statements.
        problems: by the number of the statement, why it can't be read. It has no values.
    """

    forms: NDArray[np.uint8]
    gaps: Gaps
    problems: dict[int, str]
    _literals: NDArray[np.int32]
    """Shape (2 * columns, statements): which literal each value is, or `NO_LITERAL`; only of those with a text."""
    _begins: NDArray[np.int32]
    """The same: where each begins in the text; only of those that are no literals."""
    _ends: NDArray[np.int32]
    _with_spans: set[int]
    """The slots of which some values are no literals."""
    _calls: dict[int, list[Calls]]
    """By slot, those that are known."""

    @classmethod
    def without_values(cls, columns: int, gaps: Gaps) -> Self:
        """Return statements whose values aren't known yet.

        Args:
            columns: how many the table has.
            gaps: those of the statements.
        """
        rows = len(gaps.counts)
        # Only forms are looked at before they are set.
        begins, ends, literals = (np.empty((2 * columns, rows), np.int32) for _ in range(3))
        return cls(np.zeros((2, columns, rows), np.uint8), gaps, {}, literals, begins, ends, set(), {})

    def keep_forms(self, slot: Slots, rows: Rows, forms: NDArray[np.uint8] | int) -> None:
        """Keep in which form statements have a value."""
        self.forms.reshape(-1)[self._places(slot, rows)] = forms

    def keep_literals(self, slot: Slots, rows: Rows, literals: NDArray[np.int32]) -> None:
        """Keep which literals values are."""
        self._literals.reshape(-1)[self._places(slot, rows)] = literals

    def keep_spans(self, slot: Slots, rows: Rows, begins: NDArray[np.int32], ends: NDArray[np.int32]) -> None:
        """Keep where values begin and end that are no literals."""
        self._with_spans.update([slot] if isinstance(slot, int) else np.unique(slot).tolist())
        places = self._places(slot, rows)
        self._literals.reshape(-1)[places] = NO_LITERAL
        self._begins.reshape(-1)[places] = begins
        self._ends.reshape(-1)[places] = ends

    def _places(self, slot: Slots, rows: Rows) -> Rows:
        """Return where values are in arrays of all; one number is faster than two."""
        count = self.forms.shape[2]
        if isinstance(rows, slice):
            return slice(int(slot) * count, (int(slot) + 1) * count)
        places: Numbers = slot * count + rows
        return places

    def keep_calls(self, slot: int, calls: Calls) -> None:
        """Keep which values are calls, so that their arguments needn't be searched for."""
        self._calls.setdefault(slot, []).append(calls)

    def forget_calls(self) -> None:
        """Forget all calls, because statements are read again."""
        self._calls.clear()

    def calls(self, side: Side, column: int) -> Sequence[Calls] | None:
        """Return the calls that a column's values are; None if there are other values, or if it isn't known."""
        calls = self._calls.get(self._slot(side, column), [])
        forms, known = self.forms[side, column], np.zeros(self.forms.shape[2], np.bool_)
        for one in calls:
            known[one.rows] = True
        return calls if calls and not ((forms >= _LITERAL) & ~(known & (forms == _EXPRESSION))).any() else None

    def _slot(self, side: Side, column: int) -> int:
        columns: int = self.forms.shape[1]
        return side * columns + column

    def texts(self, side: Side, column: int) -> pa.StringArray:
        """Return a column's values, shape (statements,).

        That is the content of literals, the text of expressions, and null for what is neither.
        """
        slot = self._slot(side, column)
        valid = self.forms[side, column] >= _LITERAL
        # What is null is left out at first: taking nothing from a text costs more than taking something.
        literals = np.compress(valid, self._literals[slot])
        if slot in self._with_spans and (literals == NO_LITERAL).any():
            return expanded(self._spans(slot, valid, literals), valid)
        values = self.gaps.literals.take(pa.array(literals))
        return expanded(unescaped(values) if self.gaps.escaped else values, valid)

    def _spans(self, slot: int, valid: NDArray[np.bool_], literals: NDArray[np.int32]) -> pa.StringArray:
        """Return the values in the rows that are valid; some of them are no literals."""
        begins, ends = np.compress(valid, self._begins[slot]), np.compress(valid, self._ends[slot])
        whole, edges = np.flatnonzero(literals != NO_LITERAL), self.gaps.edges
        begins[whole], ends[whole] = edges[literals[whole], 1], edges[literals[whole] + 1, 0]
        chosen = slices(np.frombuffer(self.gaps.text, np.uint8), begins, ends - begins, None)
        quoted = np.compress(valid, self.forms.reshape(-1, len(valid))[slot]) == _LITERAL
        return pc.if_else(pa.array(quoted), unescaped(chosen), chosen) if quoted.any() else chosen


def expanded(values: pa.StringArray, valid: NDArray[np.bool_]) -> pa.StringArray:
    """Return values in the rows that are valid, null in the others.

    Args:
        values: shape (valid rows,), without null and offset.
        valid: shape (rows,).
    """
    if len(values) == len(valid):
        return values
    offsets = np.zeros(len(valid) + 1, np.int32)
    np.take(offsets_of(values), np.cumsum(valid), out=offsets[1:], mode="clip")
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.StringArray.from_buffers(len(valid), pa.py_buffer(offsets), values.buffers()[2], bits)


def unescaped(texts: pa.StringArray) -> pa.StringArray:
    """Return what is between the quotes of literals, with each pair of quotes as the quote that it stands for."""
    data = texts.buffers()[2]
    if data is None or not (np.frombuffer(data, np.uint8) == QUOTE).any():
        return texts
    return pc.replace_substring(texts, "''", "'")
