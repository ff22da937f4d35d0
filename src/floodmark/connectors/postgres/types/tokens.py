"""Finds and replaces the words in columns of structured text (arrays, hstore, vectors, geometry).

All functions work on the concatenated bytes of all values, as ``value_bytes`` returns them. A word is a run of bytes
between punctuation; a quoted part belongs to the word, whatever it contains. Inside quotes, a backslash escapes the
next byte.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.arrays import Mask, offsets_of, strings
from floodmark.codecs.base64_text import ends_of
from floodmark.events.json_text import value_bytes

QUOTE, BACKSLASH = ord('"'), ord("\\")

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Words:
    """The words of a column.

    Attributes:
        data: the bytes of all values, shape (bytes,).
        bounds: where each value starts in ``data``, and where the last one ends, shape (rows + 1,).
        start: where each word starts, ascending, shape (words,).
        end: where each word ends, shape (words,).
        text: the words without quotes and escapes, shape (words,); no nulls.
        quoted: which words begin with a quote, shape (words,).
    """

    data: NDArray[np.uint8]
    bounds: Positions
    start: Positions
    end: Positions
    text: pa.StringArray
    quoted: Mask

    def select(self, chosen: Mask) -> Words:
        """Return some of the words."""
        text = self.text.filter(pa.array(chosen))
        return Words(self.data, self.bounds, self.start[chosen], self.end[chosen], text, self.quoted[chosen])

    def row(self) -> Positions:
        """Return the row of each word, shape (words,)."""
        return np.searchsorted(self.bounds, self.start, side="right") - 1


def find_words(text: pa.StringArray, punctuation: bytes) -> Words:
    """Return the words of a column.

    Args:
        text: values of which none is null, each ending in punctuation.
        punctuation: the bytes between words.
    """
    data = value_bytes(text)
    bounds = offsets_of(text).astype(np.int64)
    bounds -= bounds[0]
    inside = ~_table(punctuation)[data]
    quotes = data == QUOTE
    kept = inside
    if quotes.any():
        dropped = _escaping(data)
        quotes[1:] &= ~dropped[:-1]
        # A byte is within quotes if the number of unescaped quotes up to it is odd.
        within = np.cumsum(quotes, dtype=np.int64) % 2 == 1
        inside = inside | within
        kept = inside & ~quotes & ~dropped
    # Each value ends in punctuation, so no run of `inside` crosses from one value into the next.
    edges = np.diff(inside.astype(np.int8), prepend=0, append=0)
    start, end = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    # Kept bytes before each position: their differences are the words' lengths without quotes and escapes.
    sizes = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])
    words = strings(ends_of(sizes[end] - sizes[start]), data[kept])
    return Words(data, bounds, start, end, words, data[start] == QUOTE)


def with_words(words: Words, replacement: pa.StringArray, removed: Mask, swaps: dict[int, int]) -> pa.StringArray:
    """Return the column with its words replaced.

    Args:
        words: the column's words.
        replacement: the text that replaces each word, without nulls, shape (words,).
        removed: bytes to leave out, shape (bytes,).
        swaps: replacements for some of the punctuation bytes.
    """
    data = words.data
    for old, new in swaps.items():
        data = np.where(data == old, np.uint8(new), data)
    offsets = offsets_of(replacement).astype(np.int64)
    lengths = np.diff(offsets)
    # How often each byte is repeated in the result: punctuation once; a word's first byte as often as its replacement
    # has bytes, which reserves the room, and the word's other bytes never.
    times = np.where(removed, 0, 1)
    covered = np.zeros(len(data) + 1, np.int64)
    covered[words.start] += 1
    covered[words.end] -= 1
    times[np.cumsum(covered[:-1]) > 0] = 0
    times[words.start] = lengths
    ends = np.concatenate([[0], np.cumsum(times)])
    out = np.repeat(data, times)
    # For each byte of `replacement`, its index in `out`: the word's start there, plus the offset within the word.
    at = np.repeat(ends[words.start] - (offsets[:-1] - offsets[0]), lengths) + np.arange(int(lengths.sum()))
    out[at] = value_bytes(replacement)
    return strings(ends[words.bounds].astype(np.int32), out)


def _escaping(data: NDArray[np.uint8]) -> Mask:
    """Return which backslashes escape the next byte: in a run of them the first, the third and so on."""
    escaping = np.zeros(len(data), bool)
    at = np.flatnonzero(data == BACKSLASH)
    if len(at):
        first = np.diff(at, prepend=-2) > 1
        number = np.arange(len(at))
        # The running maximum is the index of the run's first backslash; the difference is the index within the run.
        escaping[at] = (number - np.maximum.accumulate(np.where(first, number, 0))) % 2 == 0
    return escaping


def _table(punctuation: bytes) -> Mask:
    table = np.zeros(256, bool)
    table[list(punctuation)] = True
    return table
