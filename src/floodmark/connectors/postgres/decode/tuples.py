"""Splits the tuples of many rows into columns, with one vectorised pass per column.

Source: PostgreSQL documentation, "Logical Replication Message Formats", TupleData.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.arrays import slices
from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.postgres.wire.frames import be_view
from floodmark.errors import DecodeError

NULL, UNCHANGED, TEXT = ord("n"), ord("u"), ord("t")
LONGEST_NAME = 128
OLD_ROW, OLD_KEY_ROW, NEW_ROW = ord("O"), ord("K"), ord("N")


def split_tuples(
    buf: NDArray[np.uint8], at: NDArray[np.int64], columns: int, ends: NDArray[np.int64]
) -> tuple[list[RawColumn], NDArray[np.int64]]:
    """Split the tuples that begin at ``at`` into their columns.

    Args:
        buf: shape (bytes,).
        at: the offset of each tuple's column count, ascending, shape (rows,).
        columns: how many columns the relation has.
        ends: where each message ends, shape (rows,).

    Returns:
        The columns; where each tuple ends.

    Raises:
        DecodeError: a tuple has another number of columns, an unknown kind of value or goes past its message.
    """
    try:
        counts = be_view(buf, ">u2")[at]
        if (counts != columns).any():
            raise DecodeError(f"A tuple has {int(counts[counts != columns][0])} columns; its relation has {columns}.")
        lengths32 = be_view(buf, ">u4")
        position = at + 2
        result: list[RawColumn] = []
        for _ in range(columns):
            kinds = buf[position]
            text = kinds == TEXT
            if text.all():
                lengths = lengths32[position + 1].astype(np.int64)
                begin = position + 5
                position = begin + lengths
                _check_end(position, ends)
                result.append(RawColumn(slices(buf, begin, lengths, None)))
                continue
            unchanged = kinds == UNCHANGED
            known = text | unchanged | (kinds == NULL)
            if not known.all():
                raise DecodeError(f"A value has the unknown kind {chr(int(kinds[~known][0]))!r}.")
            lengths = np.zeros(len(position), np.int64)
            lengths[text] = lengths32[position[text] + 1]
            begin = np.where(text, position + 5, position + 1)
            position = begin + lengths
            _check_end(position, ends)
            result.append(RawColumn(slices(buf, begin, lengths, text), unchanged if unchanged.any() else None))
    except IndexError:
        raise DecodeError("A tuple is cut off.") from None
    return result, position


def last_tuples(
    buf: NDArray[np.uint8], at: NDArray[np.int64], columns: int, ends: NDArray[np.int64]
) -> list[RawColumn]:
    """Split tuples that end their messages; arguments and errors are those of ``split_tuples``."""
    result, position = split_tuples(buf, at, columns, ends)
    if (position != ends).any():
        raise DecodeError("A message goes on after its last tuple.")
    return result


def tuple_pairs(
    buf: NDArray[np.uint8], at: NDArray[np.int64], columns: int, ends: NDArray[np.int64]
) -> tuple[list[RawColumn], list[RawColumn]]:
    """Split the old and the new tuples of updates that hold both; arguments and errors are as in ``split_tuples``."""
    old, after = split_tuples(buf, at, columns, ends)
    if (after == ends).any() or (buf[after] != NEW_ROW).any():
        raise DecodeError("An Update message lacks its new tuple.")
    return old, last_tuples(buf, after + 1, columns, ends)


def terminated(buf: NDArray[np.uint8], at: NDArray[np.int64]) -> tuple[pa.StringArray, NDArray[np.int64]]:
    """Return the texts that begin at ``at`` and end before a zero byte, and the offset of each zero byte.

    Raises:
        DecodeError: a text goes past the buffer, or is not UTF-8.
    """
    ends = at.copy()
    try:
        # Names are short: a few passes over the unfinished ones cost less than one over the whole buffer.
        running = np.flatnonzero(buf[ends] != 0)
        for _ in range(LONGEST_NAME):
            if not len(running):
                break
            ends[running] += 1
            running = running[buf[ends[running]] != 0]
        if len(running):
            zeros = np.flatnonzero(buf == 0)
            ends[running] = zeros[np.searchsorted(zeros, ends[running])]
    except IndexError:
        raise DecodeError("A name is cut off.") from None
    if (ends[:-1] >= at[1:]).any():
        raise DecodeError("A name goes on into the next message.")
    texts = slices(buf, at, ends - at, None)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as exc:
        raise DecodeError(f"A name is no text: {exc}.") from None
    return texts, ends


def _check_end(position: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
    if (position > ends).any():
        raise DecodeError("A tuple is cut off.")
