"""Reads statements by what each of their gaps is found to hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.oracle.redo.gaps import Gaps
from floodmark.connectors.oracle.redo.scanner import LITERAL
from floodmark.connectors.oracle.redo.steps import NOT_BEGUN, Numbers, Steps
from floodmark.connectors.oracle.redo.values import Statements


class Lookup:
    """Looks up the gaps of statements, all first ones, all second ones, and so on.

    Args:
        steps: those of the table.
        gaps: those of the statements.
        found: gets the values.
        rows: shape (statements,): the numbers that the statements have there.
    """

    def __init__(self, steps: Steps, gaps: Gaps, found: Statements, rows: Numbers) -> None:
        self._steps = steps
        self._gaps = gaps
        self._found = found
        self._rows = np.repeat(rows, gaps.counts)

    def read(self) -> Numbers:
        """Read the statements; return the numbers of those that can't be read so."""
        steps, opened = self._scan()
        counts = self._steps.counts[steps]
        for number in range(int(counts.max())):
            self._keep(number, steps, counts, opened)
        return np.unique(self._rows[self._steps.failed[steps]])

    def _scan(self) -> tuple[NDArray[np.int32], Numbers]:
        """Return the step that each gap is, and where the value begins that was not ended before it."""
        gaps = self._gaps
        numbers = self._steps.gaps(gaps.distinct)[gaps.numbers]
        steps, opened = np.empty(len(numbers), np.int32), np.zeros(len(numbers), np.int64)
        left = gaps.counts.copy()
        at = np.cumsum(left) - left
        states, begins = np.full(len(left), Steps.START, np.int32), np.zeros(len(left), np.int64)
        while len(at):
            last = left == 1
            found = self._steps.find(states, numbers[at], last)
            steps[at], opened[at] = found, begins
            begun = self._steps.begins[found]
            begins = np.where(begun == NOT_BEGUN, begins, gaps.begins[at] + begun)
            states = self._steps.states[found]
            at, left = at + 1, left - 1
            if last.any():
                at, left, states, begins = at[~last], left[~last], states[~last], begins[~last]
        return steps, opened

    def _keep(self, number: int, steps: NDArray[np.int32], counts: NDArray[np.int8], opened: Numbers) -> None:
        """Keep where the first, second, ... value is of each gap that has so many."""
        gaps, known = self._gaps, self._steps
        chosen = np.flatnonzero(counts > number)
        which = steps[chosen]
        places = known.slots[number][which] * self._found.forms.shape[2] + self._rows[chosen]
        self._found.forms.reshape(-1)[places] = known.forms[number][which]
        firsts, starts = known.firsts[number][which], gaps.begins[chosen]
        # The first gap of a statement has no literal before it, so no value in it is one.
        begins, ends = gaps.ends[chosen - 1] + 1, starts - 1
        others = np.flatnonzero(firsts != LITERAL)
        first = firsts[others]
        begins[others] = np.where(first >= 0, starts[others] + first, opened[chosen[others]])
        ends[others] = starts[others] + known.lasts[number][which[others]]
        self._found.begins.reshape(-1)[places] = begins
        self._found.ends.reshape(-1)[places] = ends
