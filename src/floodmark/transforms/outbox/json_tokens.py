"""Splits columns of JSON texts into tokens, all texts at once.

Source: RFC 8259.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import as_mask, lengths_of, offsets_of, slices
from floodmark.events.json_text import value_bytes

KEY, TEXT, BOOLEAN, NULL_WORD, INT, LONG, DOUBLE, NEITHER = map(ord, "ksbnilfx")
"""Kinds of tokens beside the six structural characters, which are their own kinds: names of fields, texts, booleans,
null, whole numbers of 32 and 64 bits, other numbers, and what is none of these."""
SCALARS = (TEXT, BOOLEAN, NULL_WORD, INT, LONG, DOUBLE, NEITHER)

_QUOTE, _BACKSLASH, _COLON = map(ord, '"\\:')
_STRUCTURAL = np.zeros(256, bool)
_STRUCTURAL[list(b"{}[]:,")] = True
_BLANK = np.zeros(256, bool)
_BLANK[list(b" \t\n\r")] = True
_WELL_FORMED = r'^"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"$'
_HALF = r"\\u[dD][89a-fA-F]"
"""What may be half of a character; whether it has another half isn't looked at."""
_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"
_WHOLE = r"^-?(?:0|[1-9][0-9]*)$"


@dataclass(frozen=True)
class Tokens:
    """The tokens of some texts.

    Attributes:
        text: what they are, shape (tokens,).
        kind: shape (tokens,).
        begins: where those of each text begin, and where those of the last end, shape (texts + 1,).
    """

    text: pa.StringArray
    kind: NDArray[np.uint8]
    begins: NDArray[np.int64]

    @cached_property
    def shapes(self) -> pa.StringArray:
        """What texts are but for their values, of which only the kinds are left, shape (texts,)."""
        kinds = np.ascontiguousarray(self.kind)
        letters = pa.StringArray.from_buffers(
            len(kinds), pa.py_buffer(np.arange(len(kinds) + 1, dtype=np.int32)), pa.py_buffer(kinds)
        )
        shown = pc.if_else(pa.array(np.isin(kinds, SCALARS)), letters, self.text)
        lists = pa.ListArray.from_arrays(pa.array(self.begins.astype(np.int32)), shown)
        return pc.binary_join(lists, "")


def closed_quotes(texts: pa.StringArray) -> NDArray[np.bool_]:
    """Return which texts have as many quotes that open as ones that close, shape (texts,); the texts aren't null."""
    begins = _begins(texts)
    counts = np.concatenate(([0], np.cumsum(_quotes(value_bytes(texts), begins))))
    closed: NDArray[np.bool_] = np.diff(counts[begins]) % 2 == 0
    return closed


def tokens_of(texts: pa.StringArray) -> Tokens:
    """Return the tokens of texts, which needn't be JSON.

    Args:
        texts: of which each closes its quotes; not null.
    """
    data = value_bytes(texts)
    begins = _begins(texts)
    quotes = _quotes(data, begins)
    # Each text closes its quotes, so that their parity doesn't depend on the texts before.
    odd = np.cumsum(quotes) % 2 == 1
    opening = quotes & odd
    outside = ~(odd | quotes)
    structural = outside & _STRUCTURAL[data]
    word = outside & ~structural & ~_BLANK[data]
    edge = np.zeros(len(data) + 1, bool)
    edge[begins] = True
    before, after = np.zeros(len(data), bool), np.zeros(len(data), bool)
    before[1:], after[:-1] = word[:-1], word[1:]
    starts = np.flatnonzero(structural | opening | (word & ~(before & ~edge[:-1])))
    ends = np.flatnonzero(structural | (quotes & ~opening) | (word & ~(after & ~edge[1:]))) + 1
    text = slices(data, starts, ends - starts, None)
    kind = data[starts].copy() if len(starts) else np.empty(0, np.uint8)
    first = np.searchsorted(starts, begins)
    _set_texts(kind, text, first)
    words = ~(_STRUCTURAL[data[starts]] | (data[starts] == _QUOTE)) if len(starts) else np.empty(0, bool)
    kind[words] = _kinds_of_words(text.filter(pa.array(words)))
    return Tokens(text, kind, first)


def _begins(texts: pa.StringArray) -> NDArray[np.int64]:
    """Return where texts begin in ``value_bytes``, and where the last one ends, shape (texts + 1,)."""
    begins = offsets_of(texts).astype(np.int64)
    begins -= begins[0]
    return begins


def _quotes(data: NDArray[np.uint8], begins: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which bytes are quotes that no backslash precedes which counts, shape (bytes,)."""
    quotes: NDArray[np.bool_] = data == _QUOTE
    backslash = data == _BACKSLASH
    if not backslash.any():
        return quotes
    places = np.arange(len(data))
    # A quote is escaped if the row of backslashes before it is odd.
    others = np.where(backslash, -1, places)
    first = begins[begins < len(data)]
    others[first] = np.maximum(others[first], first - 1)
    before = np.concatenate(([0], (places - np.maximum.accumulate(others))[:-1]))
    before[first] = 0
    quotes &= before % 2 == 0
    return quotes


def _set_texts(kind: NDArray[np.uint8], text: pa.StringArray, first: NDArray[np.int64]) -> None:
    """Set the kinds of texts in quotes.

    Args:
        kind: of which texts in quotes have that of their quote, shape (tokens,).
        text: the tokens.
        first: the first token of each text, shape (texts + 1,).
    """
    quoted = kind == _QUOTE
    following = np.zeros(len(kind), bool)
    following[:-1] = kind[1:] == _COLON
    following[first[1:][first[1:] > 0] - 1] = False
    inner = text.filter(pa.array(quoted))
    fine = as_mask(pc.match_substring_regex(inner, _WELL_FORMED)) & ~as_mask(pc.match_substring_regex(inner, _HALF))
    kind[quoted] = np.where(fine, np.where(following[quoted], KEY, TEXT), NEITHER)


def _kinds_of_words(words: pa.StringArray) -> NDArray[np.uint8]:
    """Return the kinds of tokens that are no texts in quotes, shape (words,)."""
    kinds = np.full(len(words), NEITHER, np.uint8)
    if not len(words):
        return kinds
    kinds[as_mask(pc.match_substring_regex(words, _NUMBER))] = DOUBLE
    whole = as_mask(pc.match_substring_regex(words, _WHOLE))
    # Arrow reads a whole number of up to 18 digits without overflow; few have more.
    short = whole & (lengths_of(words) <= 18)
    kinds[whole] = NEITHER
    numbers = words.filter(pa.array(short)).cast(pa.int64()).to_numpy()
    kinds[short] = np.where(np.abs(numbers) <= 0x7FFFFFFF, INT, LONG)
    for at in np.flatnonzero(whole & ~short):
        if -(1 << 63) <= int(words[at].as_py()) < 1 << 63:
            kinds[at] = LONG
    kinds[as_mask(pc.equal(words, "-2147483648"))] = INT
    kinds[as_mask(pc.is_in(words, pa.array(["true", "false"])))] = BOOLEAN
    kinds[as_mask(pc.equal(words, "null"))] = NULL_WORD
    return kinds
