"""Statements that differ only in their literals: most of a table's, if few of its columns are ever null.

A template is what they have in common. Which statements have one is found out by comparing their text with it, eight
bytes at a time, so that nothing is looked up for each gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.oracle.redo.scanner import BEFORE_GAP, LITERAL, State
from floodmark.connectors.oracle.redo.steps import Numbers, Steps
from floodmark.connectors.oracle.redo.values import Statements

_WORD = 8
_MOST = 1024
"""How many templates of a table are kept."""


@dataclass(frozen=True)
class Value:
    """A value of a statement with a template.

    Attributes:
        slot: whose it is (``Steps.slot``).
        form: how the statement has it.
        first: the gap in which it begins, and where in it.
        last: the gap in which it ends, and where in it.
    """

    slot: int
    form: int
    first: tuple[int, int]
    last: tuple[int, int]


@dataclass(frozen=True)
class Template:
    """What statements have in common.

    Attributes:
        gaps: what is outside of their literals.
        values: those that they have.
        error: why they can't be read; None if they can.
    """

    gaps: tuple[bytes, ...]
    values: tuple[Value, ...]
    error: str | None = None


class Templates:
    """The templates of a table's statements, as they were met.

    Args:
        steps: those of the table.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._known: dict[tuple[bytes, ...], Template] = {}

    def template(self, gaps: Sequence[bytes]) -> Template:
        """Return the template of a statement with these gaps."""
        key = tuple(gaps)
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = self._made(key)
        return self._known[key]

    def _made(self, gaps: tuple[bytes, ...]) -> Template:
        state, opened, values = State(), (0, 0), []
        for number, gap in enumerate(gaps):
            step = self._steps.alone(state, gap, number == len(gaps) - 1)
            if step.error is not None:
                return Template(gaps, (), step.error)
            for one in step.found:
                if one.begin == LITERAL:
                    # Between the quote that ends the gap before it and the one that begins this gap.
                    first, last = (number - 1, len(gaps[number - 1]) + 1), (number, -1)
                else:
                    first, last = (number, one.begin), (number, one.end)
                    if one.begin == BEFORE_GAP:
                        first = opened
                values.append(Value(self._steps.slot(one), one.form, first, last))
            if step.begin is not None:
                opened = (number, step.begin)
            state = step.state
        return Template(gaps, tuple(values))


def matching(template: Template, content: NDArray[np.uint8], begins: Numbers, ends: Numbers) -> NDArray[np.bool_]:
    """Return which statements have a template, shape (statements,).

    Args:
        template: the one.
        content: the text that holds the statements.
        begins: shape (gaps, statements): where each gap begins in the text.
        ends: the same: where it ends.
    """
    lengths = np.array([[len(gap)] for gap in template.gaps])
    found: NDArray[np.bool_] = ((ends - begins) == lengths).all(axis=0)
    every = bool(found.all())
    places = begins if every else begins[:, found]
    same = np.ones(places.shape[1], np.bool_)
    words = np.ndarray(max(len(content) - _WORD + 1, 0), np.dtype("<u8"), content, strides=(1,))
    for gap, at in zip(template.gaps, places, strict=True):
        if len(gap) < _WORD:
            for number, byte in enumerate(gap):
                same &= content[at + number] == byte
            continue
        # The last word may overlap the one before it.
        for first in [*range(0, len(gap) - _WORD, _WORD), len(gap) - _WORD]:
            same &= words[at + first] == int.from_bytes(gap[first : first + _WORD], "little")
    found[found] = same
    return found


def keep(found: Statements, template: Template, rows: Numbers, begins: Numbers) -> None:
    """Keep the values of statements that have a template.

    Args:
        found: gets them.
        template: the one.
        rows: shape (statements,): the numbers that the statements have there.
        begins: shape (gaps, statements): where each gap begins in the text.
    """
    shape = (-1, found.forms.shape[2])
    # Slices are faster than lists of numbers.
    chosen = slice(None) if len(rows) == shape[1] else rows
    for one in template.values:
        (first, after), (last, upto) = one.first, one.last
        found.forms.reshape(shape)[one.slot, chosen] = one.form
        found.begins.reshape(shape)[one.slot, chosen] = begins[first] + after
        found.ends.reshape(shape)[one.slot, chosen] = begins[last] + upto
