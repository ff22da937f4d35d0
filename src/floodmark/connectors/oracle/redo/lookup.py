"""Reads statements by what each of their gaps is found to hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.connectors.oracle.redo.gaps import Numbers, ranges
from floodmark.connectors.oracle.redo.scanner import LITERAL, Form
from floodmark.connectors.oracle.redo.steps import NOT_BEGUN, Steps
from floodmark.connectors.oracle.redo.values import NO_LITERAL, Statements


@dataclass(frozen=True)
class Chosen:
    """Statements, or beginnings of them, that are read gap by gap.

    Attributes:
        rows: shape (statements,): their numbers.
        first: the same: their first gaps.
        counts: the same: how many gaps of each are read.
        texts: shape (gaps,): these gaps, with the quotes at their sides.
        ending: what is read as if it stood at the end of each; empty: they end with the statements.
    """

    rows: Numbers
    first: Numbers
    counts: Numbers
    texts: pa.StringArray
    ending: bytes = b""


class Lookup:
    """Looks up the gaps of statements, all first ones, all second ones, and so on.

    Args:
        steps: those of the table.
        found: gets the values.
        chosen: the statements.
        state: the number of the state in which beginnings of statements must end.
    """

    def __init__(self, steps: Steps, found: Statements, chosen: Chosen, state: int | None = None) -> None:
        self._steps = steps
        self._found = found
        self._chosen = chosen
        self._state = state
        self._rows = np.repeat(chosen.rows, chosen.counts)
        self._gaps = ranges(chosen.first, chosen.counts)
        # After the quote, which a statement doesn't begin with.
        self._begins = found.gaps.edges[self._gaps, 0] + np.int32(1)
        self._begins[np.cumsum(chosen.counts) - chosen.counts] -= 1

    def read(self) -> Numbers:
        """Read the statements; return the numbers of those that can't be read so."""
        steps = self._scan()
        counts = self._steps.counts[steps]
        for number in range(int(counts.max())):
            self._keep(number, steps, counts)
        failed = self._steps.failed[steps]
        if self._state is not None:
            last = np.cumsum(self._chosen.counts) - 1
            failed[last] |= self._steps.states[steps[last]] != self._state
        return np.unique(self._rows[failed])

    def _numbers(self) -> NDArray[np.int32]:
        """Return the number of each gap's text."""
        coded = self._chosen.texts.view(pa.binary()).dictionary_encode()
        # The last gap has no quote at its end.
        texts = [
            text.strip(b"'") + (b"" if text.endswith(b"'") else self._chosen.ending)
            for text in coded.dictionary.to_pylist()
        ]
        numbers: NDArray[np.int32] = self._steps.gaps(texts)[coded.indices.to_numpy()]
        return numbers

    def _scan(self) -> NDArray[np.int32]:
        """Return the step that each gap is."""
        numbers = self._numbers()
        steps = np.empty(len(numbers), np.int32)
        left = self._chosen.counts.copy()
        at = np.cumsum(left) - left
        states = np.full(len(left), Steps.START, np.int32)
        while len(at):
            more = left > 1
            last = ~more & (self._state is None)
            found = self._steps.find(states, numbers[at], last)
            steps[at] = found
            states = self._steps.states[found]
            at, left = at + 1, left - 1
            if not more.all():
                at, left, states = at[more], left[more], states[more]
        return steps

    def _keep(self, number: int, steps: NDArray[np.int32], counts: NDArray[np.int8]) -> None:
        """Keep where the first, second, ... value is of each gap that has so many."""
        known = self._steps
        chosen = np.flatnonzero(counts > number)
        which = steps[chosen]
        slots, rows, forms = known.slots[number][which], self._rows[chosen], known.forms[number][which]
        firsts = known.firsts[number][which]
        literal = firsts == LITERAL
        self._found.keep_forms(slots, rows, forms)
        literals = np.where(literal, self._gaps[chosen] - np.int32(1), np.int32(NO_LITERAL))
        self._found.keep_literals(slots, rows, literals)
        others = np.flatnonzero(~literal & (forms >= np.uint8(Form.LITERAL)))
        if not len(others):
            return
        first, at = firsts[others], chosen[others]
        begins = np.where(first >= 0, self._begins[at] + first, 0)
        earlier = np.flatnonzero(first < 0)
        if len(earlier):
            begins[earlier] = self._opened(steps)[at[earlier]]
        ends = self._begins[at] + known.lasts[number][which[others]]
        self._found.keep_spans(slots[others], rows[others], begins.astype(np.int32), ends.astype(np.int32))

    def _opened(self, steps: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return where the value begins that the gaps before each gap have begun and not ended, shape (gaps,)."""
        begun = self._steps.begins[steps]
        last = np.maximum.accumulate(np.where(begun == NOT_BEGUN, 0, np.arange(len(steps))))
        before = np.maximum(np.arange(len(steps)) - 1, 0)
        found: NDArray[np.int32] = (self._begins + begun)[last[before]]
        return found
