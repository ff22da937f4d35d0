"""What the values of statements mean: text, or what a function's call makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import slices
from floodmark.connectors.oracle.redo.gaps import Gaps, gaps_in, ranges
from floodmark.connectors.oracle.redo.national_text import decoded
from floodmark.connectors.oracle.redo.scanner import Form, Side
from floodmark.connectors.oracle.redo.values import Calls, Statements, expanded, unescaped


class Kind(IntEnum):
    """What the content of a value is."""

    NONE = 0
    """There is none: the value is null, can't be shown, or isn't in the statement."""
    TEXT = 1
    DATE = 2
    TIMESTAMP = 3
    ZONED_TIMESTAMP = 4
    DAY_INTERVAL = 5
    MONTH_INTERVAL = 6
    HEX = 7
    EMPTY_CLOB = 8
    EMPTY_BLOB = 9
    OTHER = 10
    """An expression as it stands in the statement, such as a number."""


_CALLS = {
    b"TO_DATE('": Kind.DATE,
    b"TO_TIMESTAMP('": Kind.TIMESTAMP,
    b"TO_TIMESTAMP_TZ('": Kind.ZONED_TIMESTAMP,
    b"TO_DSINTERVAL('": Kind.DAY_INTERVAL,
    b"TO_YMINTERVAL('": Kind.MONTH_INTERVAL,
    b"HEXTORAW('": Kind.HEX,
    b"UNISTR('": Kind.TEXT,
    b"EMPTY_CLOB()": Kind.EMPTY_CLOB,
    b"EMPTY_BLOB()": Kind.EMPTY_BLOB,
}
"""By how they begin, calls of which the first literal is the content, and others as a whole."""
_NATIONAL_GAPS = {b"UNISTR('", b"') || UNISTR('", b"')"}


@dataclass(frozen=True)
class Contents:
    """A column's values.

    Attributes:
        kinds: shape (statements,): of each.
        texts: the same: their content; null where there is none.
    """

    kinds: NDArray[np.uint8]
    texts: pa.StringArray


def contents(statements: Statements, side: Side, column: int) -> Contents:
    """Return the content of a column's values.

    Raises:
        DecodeError: a text of ``UNISTR`` is no text.
    """
    forms = statements.forms[side, column]
    calls = statements.calls(side, column)
    known = _of_calls(statements, forms, calls) if calls else None
    if known is not None:
        return known
    texts = statements.texts(side, column)
    kinds = np.where(forms == Form.LITERAL, np.uint8(Kind.TEXT), np.uint8(Kind.NONE))
    rows = np.flatnonzero(forms == Form.EXPRESSION)
    if not len(rows):
        return Contents(kinds, texts)
    found, values = _of_expressions(texts if len(rows) == len(forms) else texts.take(pa.array(rows)))
    if len(rows) == len(forms):
        return Contents(found, values)
    kinds[rows] = found
    places = np.arange(len(forms))
    places[rows] = len(forms) + np.arange(len(rows))
    return Contents(kinds, pa.concat_arrays([texts, values]).take(pa.array(places)))


def _of_calls(statements: Statements, forms: NDArray[np.uint8], calls: Sequence[Calls]) -> Contents | None:
    """Return the content of values that all are calls; None if it isn't always their first literal."""
    kinds, first = np.zeros(len(forms), np.uint8), np.zeros(len(forms), np.int32)
    for one in calls:
        kind = _CALLS.get(one.text[: one.text.index(b"''") + 1], Kind.OTHER)
        if kind in (Kind.OTHER, Kind.TEXT):
            return None
        kinds[one.rows], first[one.rows] = kind, one.first
    valid = forms >= np.uint8(Form.LITERAL)
    kinds *= valid
    values = statements.gaps.literals.take(pa.array(np.compress(valid, first)))
    return Contents(kinds, expanded(values, valid))


def _of_expressions(expressions: pa.StringArray) -> tuple[NDArray[np.uint8], pa.StringArray]:
    """Return kinds and contents of expressions, of which none is null."""
    _, offsets, text = expressions.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(expressions) + 1, expressions.offset * 4)
    content = np.frombuffer(text, np.uint8)
    gaps = gaps_in(content, bounds, text)
    if not gaps.counts.all():
        return _of_even(expressions, gaps.counts > 0)
    coded = gaps.texts(np.arange(len(gaps.edges), dtype=np.int32)).view("binary").dictionary_encode()
    numbers, texts = coded.indices.to_numpy(), coded.dictionary.to_pylist()
    calls = np.array([_CALLS.get(text, Kind.OTHER) for text in texts], np.uint8)
    first = gaps.firsts[:-1]
    kinds = calls[numbers[first]]
    national = np.array([text in _NATIONAL_GAPS for text in texts])
    kinds[(kinds == Kind.TEXT) & ~np.logical_and.reduceat(national[numbers], first)] = Kind.OTHER
    # The content of a call is its first literal; the rest is a format.
    called = (kinds != Kind.OTHER) & (gaps.counts > 1)
    begins = np.where(called, gaps.edges[first, 1], bounds[:-1])
    ends = np.where(called, gaps.edges[:, 0].take(first + 1, mode="clip"), bounds[1:])
    values = slices(content, begins, ends - begins, None)
    if (kinds == Kind.TEXT).any():
        values = _with_national(values, gaps, kinds == Kind.TEXT)
    return kinds, values


def _of_even(expressions: pa.StringArray, even: NDArray[np.bool_]) -> tuple[NDArray[np.uint8], pa.StringArray]:
    """Return the same for expressions of which some have an odd number of quotes, and no literals that are known."""
    kinds = np.full(len(even), Kind.OTHER, np.uint8)
    if not even.any():
        return kinds, expressions
    mask = pa.array(even)
    kinds[even], values = _of_expressions(expressions.filter(mask))
    return kinds, pc.replace_with_mask(expressions, mask, values)


def _with_national(values: pa.StringArray, gaps: Gaps, national: NDArray[np.bool_]) -> pa.StringArray:
    """Return values, of which some are what all literals of their expression say together."""
    rows = np.flatnonzero(national)
    counts = gaps.counts[rows] - 1
    literal = ranges(gaps.firsts[rows], counts)
    literals = unescaped(gaps.literals.take(pa.array(literal)))
    ends = np.cumsum(counts)
    lists = pa.ListArray.from_arrays(pa.array(np.concatenate([[0], ends]).astype(np.int32)), literals)
    places = np.arange(len(values))
    places[rows] = len(values) + np.arange(len(rows))
    # The halves of a character may stand in two calls.
    joined = decoded(pc.binary_join(lists, ""))
    return pa.concat_arrays([values, joined]).take(pa.array(places))
