"""Reads what stands before the conditions of updates: the new values.

Which columns an update sets differs from statement to statement, so its text is known by the template if many
statements have the same one, and gap by gap if not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.arrays import offsets_of, strings
from floodmark.connectors.oracle.redo.gaps import Gaps, Numbers, ranges
from floodmark.connectors.oracle.redo.lookup import Chosen, Lookup
from floodmark.connectors.oracle.redo.patterns import Pattern
from floodmark.connectors.oracle.redo.scanner import State
from floodmark.connectors.oracle.redo.steps import Steps
from floodmark.connectors.oracle.redo.templates import Template, Templates, keep
from floodmark.connectors.oracle.redo.values import Statements
from floodmark.events.json_text import value_bytes

_ALIKE = 64
"""From how many statements on a template is looked for."""
_PART = 16
"""If less than one in so many statements have a template, the others are read gap by gap."""
_CONDITIONS = State("where", "name")


class SetClauses:
    """Reads the new values of updates of one table.

    Args:
        steps: those of the table.
        templates: the same.
    """

    def __init__(self, steps: Steps, templates: Templates) -> None:
        self._steps = steps
        self._templates = templates

    def read(
        self, found: Statements, pattern: Pattern, rows: Numbers, last: Numbers, ends: NDArray[np.int32]
    ) -> Numbers:
        """Read the new values of updates; return the numbers of those that can't be read so.

        Args:
            found: gets the values.
            pattern: of the conditions.
            rows: shape (statements,): the numbers of the statements.
            last: the same: the gaps in which the conditions begin.
            ends: the same: where they begin in the text.
        """
        # A first condition makes a gap end as it does elsewhere: before a literal.
        ending = pattern.items[0].lead + b" = "
        state = self._steps.alone(_CONDITIONS, ending, False).state
        first = found.gaps.firsts[rows]
        clauses = _Clauses(found.gaps, rows, first, last + 1 - first, ends)
        left = np.arange(len(rows))
        while len(left) >= _ALIKE:
            template = self._templates.template(clauses.gaps(int(left[0]), ending), whole=False)
            if template.error is not None or template.state != state:
                break
            same = clauses.have(template, len(ending), left)
            if np.count_nonzero(same) * _PART < len(left):
                break
            _keep(found, template, rows[left[same]])
            left = left[~same]
        if not len(left):
            return rows[:0]
        chosen = Chosen(rows[left], first[left], clauses.counts[left], clauses.all_texts(left), ending)
        return Lookup(self._steps, found, chosen, self._steps.state(state)).read()


def _keep(found: Statements, template: Template, rows: Numbers) -> None:
    first = found.gaps.firsts[rows]
    begins = np.array([found.gaps.edges[first + number, 0] + (number > 0) for number in range(len(template.gaps))])
    keep(found, template, rows, begins, first)


@dataclass(frozen=True)
class _Clauses:
    """The beginnings of updates, up to their conditions.

    Attributes:
        all_gaps: those of all statements.
        rows: shape (statements,): the numbers of these.
        first: the same: their first gaps.
        counts: the same: how many gaps each has here.
        ends: the same: where the last one of these ends in the text.
    """

    all_gaps: Gaps
    rows: Numbers
    first: Numbers
    counts: Numbers
    ends: NDArray[np.int32]

    def gaps(self, number: int, ending: bytes) -> list[bytes]:
        """Return the gaps of one statement without quotes, with a first condition."""
        found = self.all_gaps.alone(int(self.first[number]), int(self.counts[number]), int(self.ends[number]))
        return [*found[:-1], found[-1] + ending]

    def have(self, template: Template, ending: int, chosen: Numbers) -> NDArray[np.bool_]:
        """Return which of some statements have a template.

        Args:
            template: the one.
            ending: how many characters at its end they don't have.
            chosen: the statements.
        """
        text = b"''".join(template.gaps)
        wanted = np.frombuffer(text[: len(text) - ending], np.uint8)
        lengths = np.diff(offsets_of(self._texts))[chosen]
        found: NDArray[np.bool_] = (lengths == len(wanted)) & (self.counts[chosen] == len(template.gaps))
        every = len(chosen) == len(self.rows) and found.all()
        texts = self._texts if every else self._texts.take(pa.array(chosen[found]))
        same = value_bytes(texts).reshape(len(texts), len(wanted)) == wanted
        if not same.all():
            found[found] = same.all(axis=1)
        return found

    def all_texts(self, chosen: Numbers) -> pa.StringArray:
        """Return the gaps of some statements, with the quotes at their sides."""
        if len(chosen) == len(self.rows):
            return self._gap_texts
        first = np.cumsum(self.counts) - self.counts
        return self._gap_texts.take(pa.array(ranges(first[chosen], self.counts[chosen])))

    @cached_property
    def _gap_texts(self) -> pa.StringArray:
        edges = self.all_gaps.edges.copy()
        edges[self.first + self.counts - 1, 1] = self.ends
        return self.all_gaps.texts(ranges(self.first, self.counts), edges)

    @cached_property
    def _texts(self) -> pa.StringArray:
        """Their text without the content of literals, shape (statements,)."""
        offsets = offsets_of(self._gap_texts)[np.concatenate([[0], np.cumsum(self.counts)])]
        return strings(offsets, self._gap_texts.buffers()[2])
