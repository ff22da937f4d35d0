"""Statements, or beginnings of them, that differ only in their literals. A template is what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.oracle.redo.gaps import Numbers
from floodmark.connectors.oracle.redo.scanner import BEFORE_GAP, LITERAL, Form, State
from floodmark.connectors.oracle.redo.steps import Steps
from floodmark.connectors.oracle.redo.values import Calls, Rows, Statements

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
        state: after the last gap.
        error: why they can't be read; None if they can.
    """

    gaps: tuple[bytes, ...]
    values: tuple[Value, ...]
    state: State
    error: str | None = None


class Templates:
    """The templates of a table's statements, as they were met.

    Args:
        steps: those of the table.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._known: dict[tuple[bool, tuple[bytes, ...]], Template] = {}

    def template(self, gaps: Sequence[bytes], whole: bool = True) -> Template:
        """Return the template of a statement with these gaps.

        Args:
            gaps: without quotes.
            whole: whether the statement ends with them.
        """
        key = whole, tuple(gaps)
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = self._made(*key)
        return self._known[key]

    def _made(self, whole: bool, gaps: tuple[bytes, ...]) -> Template:
        state, opened, values = State(), (0, 0), []
        for number, gap in enumerate(gaps):
            step = self._steps.alone(state, gap, whole and number == len(gaps) - 1)
            if step.error is not None:
                return Template(gaps, (), step.state, step.error)
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
        return Template(gaps, tuple(values), state)


def keep(
    found: Statements,
    template: Template,
    rows: Rows,
    begins: NDArray[np.int32] | Numbers,
    first: Numbers | None = None,
) -> None:
    """Keep the values of statements that have a template.

    Args:
        found: gets them.
        template: the one.
        rows: the numbers that the statements have there.
        begins: shape (gaps, statements): where each gap begins in the text, without quotes.
        first: shape (statements,): the number of each statement's first gap; None if a value's place can't be found
            by it.
    """
    for one in template.values:
        found.keep_forms(one.slot, rows, one.form)
        (start, after), (last, upto) = one.first, one.last
        if one.form == Form.LITERAL and first is not None:
            found.keep_literals(one.slot, rows, (first + start).astype(np.int32))
        elif one.form >= Form.LITERAL:
            found.keep_spans(one.slot, rows, begins[start] + after, begins[last] + upto)
            if first is not None and start < last:
                text = b"''".join([*template.gaps[start:last], template.gaps[last][:upto]])[after:]
                found.keep_calls(one.slot, Calls(rows, text, (first + start).astype(np.int32)))
