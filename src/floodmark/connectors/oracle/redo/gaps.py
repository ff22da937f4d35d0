"""Finds literals and gaps in the text of statements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.arrays import slices
from floodmark.connectors.oracle.redo.steps import Numbers
from floodmark.errors import DecodeError

QUOTE = ord("'")
_NAME = ord('"')


@dataclass(frozen=True)
class Quotes:
    """The quotes that begin and end the literals of statements.

    Attributes:
        places: shape (quotes,): where they are in the text.
        counts: shape (statements,): how many each statement has.
    """

    places: Numbers
    counts: Numbers

    def of(self, chosen: NDArray[np.bool_]) -> Quotes:
        """Return those of some statements."""
        if chosen.all():
            return self
        return Quotes(self.places[np.repeat(chosen, self.counts)], self.counts[chosen])


def quotes_in(content: NDArray[np.uint8], bounds: NDArray[np.int32]) -> Quotes:
    """Find the quotes of literals.

    Args:
        content: the text.
        bounds: where statements begin, and where the last one ends.
    """
    places = np.flatnonzero(content[bounds[0] : bounds[-1]] == QUOTE) + bounds[0]
    firsts = np.searchsorted(places, bounds)
    return Quotes(*_without_escapes(places, firsts, np.diff(firsts)))


def _without_escapes(quotes: Numbers, firsts: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    """Return the quotes that begin or end literals, and how many a statement has.

    Two of them, of which the first would end a literal and the other one begins right after it, stand for one.

    Args:
        quotes: the places of all.
        firsts: the number of each statement's first, and how many there are.
        counts: how many each statement has.
    """
    after = np.flatnonzero(np.diff(quotes) == 1) + 1
    if not len(after):
        return quotes, counts
    # Within a statement, an opening quote has an even number. The first of a statement follows no other.
    row = np.searchsorted(firsts, after, "right") - 1
    number = after - firsts[row]
    escapes = after[(number % 2 == 0) & (number > 0)]
    if not len(escapes):
        return quotes, counts
    kept = np.ones(len(quotes), np.bool_)
    kept[escapes] = kept[escapes - 1] = False
    removed = np.bincount(np.searchsorted(firsts, escapes, "right") - 1, minlength=len(counts))
    return quotes[kept], counts - 2 * removed


@dataclass(frozen=True)
class Gaps:
    """The gaps of statements, in their order.

    Attributes:
        counts: shape (statements,): how many each has.
        begins: shape (gaps,): where each begins in the text, after the quote before it.
        ends: the same: where it ends, before the quote after it.
        numbers: the same: which of the distinct ones it is.
        distinct: those.
    """

    counts: Numbers
    begins: Numbers
    ends: Numbers
    numbers: NDArray[np.int32]
    distinct: list[bytes]


def gaps_between(quotes: Quotes, begins: NDArray[np.int32], ends: NDArray[np.int32], text: pa.Buffer) -> Gaps:
    """Find the gaps.

    Args:
        quotes: those of the statements, an even number of each.
        begins: shape (statements,): where each begins in the text.
        ends: the same: where it ends.
        text: the text.
    """
    # The gaps of a statement begin with it and after its closing quotes; they end at its opening quotes and with it.
    counts = quotes.counts // 2 + 1
    last = np.cumsum(counts) - 1
    first = last - counts + 1
    firsts, lasts = np.empty(last[-1] + 1, np.int64), np.empty(last[-1] + 1, np.int64)
    inner = np.ones(len(firsts), np.bool_)
    inner[first] = False
    firsts[first], firsts[inner] = begins, quotes.places[1::2] + 1
    inner[first] = True
    inner[last] = False
    lasts[last], lasts[inner] = ends, quotes.places[::2]
    encoded = slices(np.frombuffer(text, np.uint8), firsts, lasts - firsts, None).view(pa.binary()).dictionary_encode()
    return Gaps(counts, firsts, lasts, encoded.indices.to_numpy(), encoded.dictionary.to_pylist())


def split(statement: bytes) -> list[tuple[int, int]]:
    """Return where the gaps of one statement begin and end, also where names have quotes.

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
