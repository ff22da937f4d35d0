"""Splits COPY's text format into columns.

Tabs and newlines inside values are escaped, so the delimiters found in the raw bytes are all real, and
every row has the same number of them.

Source: PostgreSQL documentation, "COPY", Text Format.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import slices
from floodmark.codecs.raw_column import RawColumn
from floodmark.errors import DecodeError

TAB, NEWLINE, BACKSLASH = 0x09, 0x0A, 0x5C
NULL = "\\N"

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_CHARACTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def split_rows(buf: NDArray[np.uint8], starts: NDArray[np.int64], columns: int) -> list[RawColumn]:
    """Split rows into columns.

    Args:
        buf: the rows and, before each, bytes that are neither tab nor newline.
        starts: where each row starts, ascending, shape (rows,).
        columns: how many columns a row has.

    Raises:
        DecodeError: a row has another number of columns.
    """
    ends = np.flatnonzero((buf == TAB) | (buf == NEWLINE))
    if columns == 0:
        return []
    if len(ends) != len(starts) * columns:
        raise DecodeError(f"A copied row doesn't have {columns} columns.")
    matrix = ends.reshape(len(starts), columns)
    if (buf[matrix[:, -1]] != NEWLINE).any():
        raise DecodeError(f"A copied row doesn't have {columns} columns.")
    escaped = bool((buf == BACKSLASH).any())
    begins = starts
    result = []
    for i in range(columns):
        stops = matrix[:, i]
        result.append(RawColumn(_column(buf, begins, stops, escaped)))
        begins = stops + 1
    return result


def _column(
    buf: NDArray[np.uint8], begins: NDArray[np.int64], stops: NDArray[np.int64], escaped: bool
) -> pa.StringArray:
    if not escaped:
        return slices(buf, begins, stops - begins, None)
    null = (stops - begins == 2) & (buf[begins] == BACKSLASH)
    null &= buf[np.minimum(begins + 1, len(buf) - 1)] == ord("N")
    text = slices(buf, begins, stops - begins, ~null if null.any() else None)
    affected = pc.match_substring(text, "\\").fill_null(False)
    if not pc.any(affected).as_py():
        return text
    # Each distinct value with an escape is unescaped once; for all other rows `found` is null, so `text` is kept.
    values = pc.unique(text.filter(affected))
    plain = pa.array([_ESCAPE.sub(_unescape, value) for value in values.to_pylist()], pa.string())
    found = pc.index_in(text, values)
    return pc.coalesce(plain.take(found), text)


def _unescape(match: re.Match[str]) -> str:
    return _CHARACTERS.get(match[1], match[1])
