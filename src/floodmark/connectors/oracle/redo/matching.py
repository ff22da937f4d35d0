"""Finds the statements that have a pattern, and where their values are.

The columns of a pattern are gone through from the last one on, for all statements together. Whether a column has a
value follows from where the gap before its literal would end. What is between the literals is then compared with the
pattern, so that nothing depends on that guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.arrays import offsets_of
from floodmark.connectors.oracle.redo.gaps import Gaps, Numbers, ranges
from floodmark.connectors.oracle.redo.patterns import GROUP, Pattern, Text
from floodmark.connectors.oracle.redo.scanner import NO_COLUMN, Form
from floodmark.connectors.oracle.redo.values import Calls, Statements
from floodmark.events.json_text import value_bytes

_EVERY = slice(None)


@dataclass(frozen=True)
class Matches:
    """Statements that may have a pattern, and in the end those that do.

    Attributes:
        rows: shape (statements,): their numbers.
        present: shape (columns, statements): whether each column has a value.
        literals: the same: the number of the last literal of its value.
        before: shape (statements,): that of the last literal before the pattern.
        begins: the same: where the pattern begins in the text of all gaps without literals.
        bare_ends: by the number of a column that may have an expression without literals, where it would end in the
            text, shape (statements,).
    """

    rows: Numbers
    present: NDArray[np.bool_]
    literals: NDArray[np.int32]
    before: Numbers
    begins: NDArray[np.int32]
    bare_ends: Mapping[int, NDArray[np.int32]]

    def of(self, chosen: NDArray[np.bool_]) -> Matches:
        """Return some of them."""
        if chosen.all():
            return self
        return Matches(
            self.rows[chosen],
            self.present[:, chosen],
            self.literals[:, chosen],
            self.before[chosen],
            self.begins[chosen],
            {number: ends[chosen] for number, ends in self.bare_ends.items()},
        )


def matches(pattern: Pattern, gaps: Gaps, rows: Numbers) -> Matches:
    """Return the statements that have a pattern.

    Args:
        pattern: the one.
        gaps: those of the statements.
        rows: the numbers of those that may have it; each has a gap.
    """
    guessed = _guessed(pattern, gaps, rows)
    first = gaps.firsts[guessed.rows]
    # The gap before the pattern ends here; before the first literal of a statement, that is where the statement begins.
    ends = np.where(guessed.before >= 0, gaps.ends[np.maximum(guessed.before, 0)], 0)
    if pattern.update:
        after = gaps.ends[np.maximum(guessed.before + 1, 0)]
        good = (guessed.before >= first - 1) & (guessed.begins > ends) & (guessed.begins <= after)
    else:
        good = (guessed.before == first - 1) & (guessed.begins == ends)
    good_ones = guessed.of(good)
    return good_ones.of(_verified(pattern, gaps, good_ones)) if len(good_ones.rows) else good_ones


def _guessed(pattern: Pattern, gaps: Gaps, rows: Numbers) -> Matches:
    ends = gaps.ends
    last = gaps.firsts[rows + 1] - 1
    at, literal = ends[last] - np.int32(len(pattern.tail)), last - 1
    present = np.empty((len(pattern.items), len(rows)), np.bool_)
    literals = np.empty(present.shape, np.int32)
    gap_end, bare_ends = np.empty(len(rows), np.int32), {}
    for number in range(len(pattern.items) - 1, -1, -1):
        item = pattern.items[number]
        # Before the first statement there is nothing; the place is checked at the end.
        np.take(ends, literal, out=gap_end, mode="clip")
        gap_end += np.int32(item.value.rest)
        np.equal(gap_end, at, out=present[number])
        literals[number] = literal
        if item.bare.form == Form.EXPRESSION:
            bare_ends[number] = place_in_text(gaps, literal, at)
        np.subtract(literal, present[number] * np.int64(item.value.literals), out=literal)
        at -= np.int32(item.length)
        np.subtract(at, present[number] * np.int32(item.more), out=at)
    return Matches(rows, present, literals, literal, at, bare_ends)


def place_in_text(gaps: Gaps, literal: Numbers, place: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return where something is in the text.

    Args:
        gaps: those of the statements.
        literal: shape (statements,): the number of the literal before the gap that it is in.
        place: the same: where it is in the text of all gaps without literals.
    """
    # A statement that doesn't have the pattern may seem to have more literals than there are.
    gap = np.maximum(literal + 1, 0)
    found: NDArray[np.int32] = gaps.edges[gap, 1] - (gaps.ends[gap] - place)
    return found


def _verified(pattern: Pattern, gaps: Gaps, guessed: Matches) -> NDArray[np.bool_]:
    """Return which statements have the pattern's text outside of their literals."""
    edges, first, after = gaps.edges, gaps.firsts[guessed.rows], gaps.firsts[guessed.rows + 1]
    if pattern.update:
        first, edges = guessed.before + 1, edges.copy()
        edges[first, 0] = place_in_text(gaps, guessed.before, guessed.begins)
    expected = pattern.texts.take(pa.array(_texts_of(pattern, guessed.present)))
    good = np.ones(len(first), np.bool_)
    if gaps.have(first, after, edges, expected.buffers()[2]):
        return good
    # As far as guessed, a statement's text is as long as the pattern's.
    found = gaps.texts(ranges(first, after - first), edges)
    content, wanted = (value_bytes(one) for one in (found, expected))
    ends = offsets_of(found)[np.cumsum(after - first)]
    good[np.searchsorted(ends, np.flatnonzero(content != wanted), "right")] = False
    return good


def _texts_of(pattern: Pattern, present: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return which of the pattern's texts statements have, one for each group of columns."""
    bits = present.view(np.uint8)
    found = np.empty((present.shape[1], pattern.groups), np.int32)
    for group in range(pattern.groups):
        number = np.zeros(present.shape[1], np.uint8)
        for place, one in enumerate(bits[group * GROUP : (group + 1) * GROUP]):
            number |= one << np.uint8(place)
        np.add(number, np.int32(group << GROUP), out=found[:, group])
    return found.reshape(-1)


def keep_matches(found: Statements, pattern: Pattern, matched: Matches) -> None:
    """Keep the values of statements that have a pattern."""
    rows: slice | Numbers = _EVERY if len(matched.rows) == found.forms.shape[2] else matched.rows
    edges = found.gaps.edges
    for number, item in enumerate(pattern.items):
        if item.column == NO_COLUMN:
            continue
        slot, present = item.side * found.forms.shape[1] + item.column, matched.present[number]
        # A difference below 0 wraps around, and its sum too.
        more = np.uint8((item.value.form - item.bare.form) % 256)
        forms = present.view(np.uint8) * more + np.uint8(item.bare.form)
        found.keep_forms(slot, rows, forms)
        if item.value.form == Form.LITERAL:
            found.keep_literals(slot, rows, matched.literals[number])
        else:
            first = matched.literals[number] - np.int32(item.value.literals - 1)
            found.keep_spans(slot, rows, *_spans(item.value, edges, first, matched.literals[number]))
            if item.bare.form < Form.LITERAL:
                found.keep_calls(slot, Calls(rows, item.value.text, first))
        if item.bare.form == Form.EXPRESSION:
            others = np.flatnonzero(~present)
            ends = matched.bare_ends[number][others]
            found.keep_spans(slot, matched.rows[others], ends - np.int32(len(item.bare.text)), ends)


def _spans(
    value: Text, edges: NDArray[np.int32], first: NDArray[np.int32], last: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return where values begin and end in the text; it isn't of use where there is none.

    Args:
        value: how they are written.
        edges: of all gaps.
        first: the number of the first literal of each.
        last: that of the last one.
    """
    begins = edges[np.maximum(first, 0), 1] - np.int32(1 + value.call)
    return begins, edges[last + 1, 0] + np.int32(value.rest)
