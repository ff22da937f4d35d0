"""What scanning gaps has found, as arrays, so that all statements of a block look it up together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.oracle.redo.scanner import NO_COLUMN, Found, Scanner, State, Step

T = TypeVar("T", bound=np.generic)

NOT_BEGUN = -1
"""Where a value begins that a gap leaves open: there is none."""
_UNKNOWN = -1
_MOST = 1 << 22
"""How many pairs of a state and a gap are kept. A table with more has gaps that hardly come again."""


class Steps:
    """The steps of a table's statements, by number. They are kept from block to block.

    Args:
        scanner: the table's.
        columns: how many it has.

    Attributes:
        states: shape (steps,): the number of the state after each.
        begins: the same: where a value begins in the gap that goes on after it, or `NOT_BEGUN`.
        failed: the same: whether the statement can't be read.
        counts: the same: how many values end in the gap.
        slots: shape (most values, steps): whose value each is (`slot`).
        forms: the same: the form of each (`scanner.Found`).
        firsts: the same: where it begins.
        lasts: the same: where it ends.
    """

    START = 0
    """The number of the state before a statement."""

    def __init__(self, scanner: Scanner, columns: int) -> None:
        self._scanner = scanner
        self._columns = columns
        self._clear()

    def _clear(self) -> None:
        self._gaps: dict[bytes, int] = {}
        self._texts: list[bytes] = []
        self._known: dict[State, int] = {}
        self._scanned: list[State] = []
        self._size = 0
        # By state, and by gap: that of two which ends a statement, and another.
        self._table = np.full((8, 64, 2), _UNKNOWN, np.int32)
        self.states = np.zeros(64, np.int32)
        self.begins = np.zeros(64, np.int64)
        self.failed = np.zeros(64, np.bool_)
        self.counts = np.zeros(64, np.int8)
        self.slots = np.zeros((1, 64), np.int64)
        self.forms = np.zeros((1, 64), np.uint8)
        self.firsts = np.zeros((1, 64), np.int64)
        self.lasts = np.zeros((1, 64), np.int64)
        self.state(State())

    def gaps(self, distinct: Sequence[bytes]) -> NDArray[np.int32]:
        """Return the numbers of gaps; it may forget what was known."""
        if self._table.size > _MOST:
            self._clear()
        for gap in distinct:
            if gap not in self._gaps:
                self._gaps[gap] = len(self._texts)
                self._texts.append(gap)
        self._table = _grown(self._table, 1, len(self._texts), _UNKNOWN)
        return np.array([self._gaps[gap] for gap in distinct], np.int32)

    def alone(self, state: State, gap: bytes, last: bool) -> Step:
        """Return the step of one gap, which isn't kept (``Scanner.step``), with values of the table only."""
        step = self._scanner.step(state, gap, last)
        found = tuple(one for one in step.found if one.column != NO_COLUMN)
        return step if len(found) == len(step.found) else replace(step, found=found)

    def slot(self, found: Found) -> int:
        """Return whose value one is: the column, and with the side NEW so many more as there are columns."""
        return found.side * self._columns + found.column

    def find(self, states: NDArray[np.int32], gaps: NDArray[np.int32], last: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return the number of the step of each gap.

        Args:
            states: shape (gaps,): the numbers of the states before them.
            gaps: the same: their numbers.
            last: the same: whether each ends its statement.
        """
        ends = last.view(np.int8)
        # One number for the three is looked up faster than they are.
        places = (states * np.int32(self._table.shape[1]) + gaps) * np.int32(2) + ends
        steps: NDArray[np.int32] = self._table.reshape(-1)[places]
        missing = steps == _UNKNOWN
        if missing.any():
            pairs = np.stack([states[missing], gaps[missing], ends[missing]])
            for state, gap, end in np.unique(pairs, axis=1).T.tolist():
                self._add(state, gap, end)
            steps = self._table[states, gaps, ends]
        return steps

    def _add(self, state: int, gap: int, end: int) -> None:
        step, number = self.alone(self._scanned[state], self._texts[gap], bool(end)), self._size
        self._size += 1
        self.states, self.begins = _grown(self.states, 0, self._size), _grown(self.begins, 0, self._size)
        self.failed, self.counts = _grown(self.failed, 0, self._size), _grown(self.counts, 0, self._size)
        for name in ("slots", "forms", "firsts", "lasts"):
            setattr(self, name, _grown(_grown(getattr(self, name), 1, self._size), 0, len(step.found)))
        self.states[number] = self.state(step.state)
        self.begins[number] = NOT_BEGUN if step.begin is None else step.begin
        self.failed[number] = step.error is not None
        self.counts[number] = len(step.found)
        for place, one in enumerate(step.found):
            at = place, number
            self.slots[at], self.forms[at] = self.slot(one), one.form
            self.firsts[at], self.lasts[at] = one.begin, one.end
        self._table[state, gap, end] = number

    def state(self, state: State) -> int:
        """Return the number of a state."""
        number = self._known.setdefault(state, len(self._scanned))
        if number == len(self._scanned):
            self._scanned.append(state)
            self._table = _grown(self._table, 0, len(self._scanned), _UNKNOWN)
        return number


def _grown(array: NDArray[T], axis: int, size: int, fill: int = 0) -> NDArray[T]:
    """Return an array that has room for so many along an axis, and more if it had not."""
    room = array.shape[axis]
    if size <= room:
        return array
    shape = list(array.shape)
    shape[axis] = max(size, 2 * room) - room
    return np.concatenate([array, np.full(shape, fill, array.dtype)], axis)
