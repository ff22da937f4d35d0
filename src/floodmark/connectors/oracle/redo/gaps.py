"""Finds literals and gaps in the text of statements."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.errors import DecodeError

Numbers = NDArray[np.int64]

QUOTE = ord("'")
_NAME = ord('"')


@dataclass(frozen=True)
class Gaps:
    """The gaps of statements, in their order. After each follows a literal, which has the same number.

    What follows a statement's last gap is empty, or statements that have no gaps.

    Attributes:
        text: the text of all statements.
        edges: shape (gaps, 2): where each begins in the text, and where it ends, with the quotes at its sides.
        firsts: shape (statements + 1,): the number of each statement's first gap, and how many gaps there are. A
            statement with an odd number of quotes has none.
        escaped: whether any literal has quotes within, of which two stand for one.
    """

    text: pa.Buffer
    edges: NDArray[np.int32]
    firsts: Numbers
    escaped: bool

    @cached_property
    def counts(self) -> Numbers:
        """How many each statement has, shape (statements,)."""
        return np.diff(self.firsts)

    @cached_property
    def literals(self) -> pa.StringArray:
        """The literals, one after the other, shape (gaps - 1,). A column's values lie closer together there."""
        count = max(len(self.edges) - 1, 0)
        return self._pieces(self.edges).take(pa.array(np.arange(1, 2 * count, 2, dtype=np.int32)))

    def alone(self, first: int, count: int, end: int | None = None) -> list[bytes]:
        """Return some gaps that follow each other in a statement, without quotes.

        Args:
            first: the number of the first one, which begins the statement.
            count: how many.
            end: where the last one ends in the text; None: with the statement.
        """
        edges = self.edges[first : first + count].copy()
        edges[1:, 0] += 1
        edges[:-1, 1] -= 1
        if end is not None:
            edges[-1, 1] = end
        text = memoryview(self.text)
        return [bytes(text[begin:after]) for begin, after in edges.tolist()]

    def texts(self, numbers: NDArray[np.int32], edges: NDArray[np.int32] | None = None) -> pa.StringArray:
        """Return some gaps with the quotes at their sides.

        Args:
            numbers: shape (gaps,): of these.
            edges: of all gaps, if they aren't the usual ones.
        """
        pieces = self._pieces(self.edges if edges is None else edges)
        return pieces.take(pa.array(2 * numbers))

    def have(self, first: Numbers, after: Numbers, edges: NDArray[np.int32], text: pa.Buffer) -> bool:
        """Return whether some gaps, one after the other, are a text that is as long as they are.

        Args:
            first: shape (statements,), ascending: the number of the first of these gaps of each.
            after: the same: that of the gap after the last of them.
            edges: of all gaps.
            text: the text.
        """
        chosen = _between(first, after, len(edges))
        ends = np.cumsum((edges[:, 1] - edges[:, 0]) * chosen, dtype=np.int32)
        offsets = np.zeros(edges.shape, np.int32)
        offsets[:, 1], offsets[1:, 0] = ends, ends[:-1]
        # Arrow compares what isn't null where it stands, so that the gaps needn't be copied.
        valid = np.zeros(edges.shape, np.bool_)
        valid[:, 0] = chosen
        bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
        wanted = pa.StringArray.from_buffers(offsets.size - 1, pa.py_buffer(offsets), text, bits)
        return bool(self._pieces(edges, bits).equals(wanted))

    def _pieces(self, edges: NDArray[np.int32], valid: pa.Buffer | None = None) -> pa.StringArray:
        """Return gaps and literals, in turn."""
        return pa.StringArray.from_buffers(max(edges.size - 1, 0), pa.py_buffer(edges), self.text, valid)

    @cached_property
    def ends(self) -> NDArray[np.int32]:
        """Where gaps end in the text of all gaps without literals, shape (gaps,)."""
        return np.cumsum(self.edges[:, 1] - self.edges[:, 0], dtype=np.int32)


def gaps_in(content: NDArray[np.uint8], bounds: NDArray[np.int32], text: pa.Buffer) -> Gaps:
    """Find the gaps of statements.

    Args:
        content: the text.
        bounds: shape (statements + 1,): where each begins in the text, and where the last one ends.
        text: the same as the content.
    """
    places, firsts = _places(content, bounds)
    counts = np.diff(firsts)
    odd = counts % 2 == 1
    if odd.any():
        places = places[np.repeat(~odd, counts)]
        firsts = np.concatenate([[0], np.cumsum(np.where(odd, 0, counts))])
    edges = places.reshape(-1, 2)
    # A gap ends after its opening quote, the last one of a statement after its last byte.
    edges[:, 1] += 1
    return Gaps(text, *_without_escapes(edges, firsts // 2))


def _places(content: NDArray[np.uint8], bounds: NDArray[np.int32]) -> tuple[NDArray[np.int32], Numbers]:
    """Return the places of all quotes, and of the first and the last byte of each statement.

    With them comes the number of each statement's first place, and how many places there are.
    """
    begins, lasts = bounds[:-1], bounds[1:] - np.int32(1)
    if (
        not len(begins)
        or (lasts <= begins).any()
        or (content[begins] == QUOTE).any()
        or (content[lasts] == QUOTE).any()
    ):
        return _places_of_any(content, bounds)
    found = content[bounds[0] : bounds[-1]] == QUOTE
    found[begins - bounds[0]] = found[lasts - bounds[0]] = True
    places = np.flatnonzero(found).astype(np.int32)
    places += bounds[0]
    return places, np.concatenate([np.searchsorted(places, begins), [len(places)]])


def _places_of_any(content: NDArray[np.uint8], bounds: NDArray[np.int32]) -> tuple[NDArray[np.int32], Numbers]:
    """Return the same of statements that may be empty, and begin or end with quotes."""
    quotes = np.flatnonzero(content[bounds[0] : bounds[-1]] == QUOTE).astype(np.int32) + bounds[0]
    firsts = np.searchsorted(quotes, bounds) + 2 * np.arange(len(bounds))
    places = np.empty(firsts[-1], np.int32)
    inner = np.ones(len(places), np.bool_)
    inner[firsts[:-1]] = inner[firsts[1:] - 1] = False
    places[inner], places[firsts[:-1]], places[firsts[1:] - 1] = quotes, bounds[:-1], bounds[1:] - 1
    return places, firsts


def _without_escapes(edges: NDArray[np.int32], firsts: Numbers) -> tuple[NDArray[np.int32], Numbers, bool]:
    """Remove gaps between two quotes that stand for one: they are empty, and within a statement.

    With the others comes whether there were any.
    """
    empty = edges[:, 1] - edges[:, 0] == 2
    counted = np.flatnonzero(np.diff(firsts))
    empty[firsts[counted]] = empty[firsts[counted + 1] - 1] = False
    if not empty.any():
        return edges, firsts, False
    removed = np.concatenate([[0], np.cumsum(empty)])
    return edges[~empty], firsts - removed[firsts], True


def _between(first: Numbers, after: Numbers, count: int) -> NDArray[np.bool_]:
    """Return which of so many numbers lie in a range, shape (count,).

    Args:
        first: shape (ranges,), ascending: the first number of each.
        after: the same: the number after its last.
        count: how many numbers there are.
    """
    borders = np.empty(2 * len(first) + 2, np.int64)
    borders[0], borders[1:-1:2], borders[2::2], borders[-1] = 0, first, after, count
    inside = np.zeros(len(borders) - 1, np.bool_)
    inside[1::2] = True
    return np.repeat(inside, np.diff(borders))


def ranges(firsts: Numbers, counts: Numbers) -> NDArray[np.int32]:
    """Return the numbers from each first one on, so many of each, shape (sum of counts,)."""
    ends = np.cumsum(counts)
    numbers = np.arange(ends[-1] if len(ends) else 0, dtype=np.int32)
    numbers += np.repeat((firsts - ends + counts).astype(np.int32), counts)
    return numbers


def split(statement: bytes) -> list[tuple[int, int]]:
    """Return where the gaps of one statement begin and end, without quotes, also where names have quotes.

    Raises:
        DecodeError: a literal has no end.
    """
    gaps, first, at, named = [], 0, 0, False
    while at < len(statement):
        char = statement[at]
        if char == _NAME:
            named = not named
        elif char == QUOTE and not named:
            gaps.append((first, at))
            at = statement.find(b"'", at + 1)
            while at >= 0 and statement[at + 1 : at + 2] == b"'":
                at = statement.find(b"'", at + 2)
            if at < 0:
                raise DecodeError("A statement of SQL_REDO has a text literal without an end.")
            first = at + 1
        at += 1
    return [*gaps, (first, len(statement))]
