"""Values of Arrow columns as text, column by column, for the languages of databases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BLOCK_BYTES = 1 << 24
"""About how many bytes of rows become text at a time."""


_DIGITS_128, _MOST_DIGITS = 38, 76
"""Of Arrow's decimal numbers."""


def decimal_type(precision: int, scale: int) -> pa.DataType | None:
    """Return the type of decimal numbers; None: Arrow has none."""
    if precision > _MOST_DIGITS or not 0 <= scale <= precision:
        return None
    return pa.decimal128(precision, scale) if precision <= _DIGITS_128 else pa.decimal256(precision, scale)


def plain(column: pa.Array) -> pa.StringArray:
    """Return numbers, dates, times and texts as Arrow writes them."""
    return column.cast(pa.string())


def escaped(text: pa.StringArray, replaced: Mapping[str, str]) -> pa.StringArray:
    """Return texts with some characters replaced, in this order.

    Args:
        replaced: the characters, and what stands for them.
    """
    if not holds_any(text, "".join(replaced)):
        return text
    for found, instead in replaced.items():
        text = pc.replace_substring(text, found, instead)
    return text


def holds_any(text: pa.StringArray | pa.BinaryArray, characters: str) -> bool:
    """Return whether any of the texts has one of some ASCII characters."""
    data = text.buffers()[2]
    if data is None:
        return False
    # A slice may share its buffer with other values, for which this only costs time.
    return re.search(b"[" + re.escape(characters.encode()) + b"]", memoryview(data)) is not None


def hexadecimal(column: pa.BinaryArray) -> pa.StringArray:
    """Return bytes as hexadecimal digits."""
    column = pc.cast(column, pa.binary()) if column.type != pa.binary() else column
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    data = column.buffers()[2]
    start, end = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    digits = b"" if data is None else bytes(memoryview(data)[start:end]).hex().encode()
    doubled = pa.py_buffer(((offsets - start).astype(np.int64) * 2).astype(np.int64))
    made = pa.Array.from_buffers(pa.large_string(), len(column), [None, doubled, pa.py_buffer(digits)])
    return pc.if_else(pc.is_valid(column), made.cast(pa.string()), pa.scalar(None, pa.string()))


def unhexlified(digits: pa.StringArray) -> pa.BinaryArray:
    """Return the bytes that hexadecimal digits stand for; null stays null.

    Args:
        digits: an even number of digits in each text.
    """
    offsets = np.frombuffer(digits.buffers()[1], np.int32)[digits.offset : digits.offset + len(digits) + 1]
    data = bytes.fromhex(bytes(content(digits)).decode("ascii")) if len(digits) else b""
    halves = pa.py_buffer(((offsets - offsets[0]) // 2).astype(np.int32))
    made = pa.Array.from_buffers(pa.binary(), len(digits), [None, halves, pa.py_buffer(data)])
    return pc.if_else(pc.is_valid(digits), made, pa.scalar(None, pa.binary()))


def joined_lists(column: pa.ListArray, elements: pa.StringArray, null: str) -> pa.StringArray:
    """Return lists as texts with commas between the elements; null for a list that is null.

    Args:
        column: the lists.
        elements: the texts of ``column.flatten()``.
        null: what stands for an element that is null.
    """
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(column) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    lists = pa.ListArray.from_arrays(pa.array(offsets), pc.fill_null(elements, null))
    return pc.if_else(pc.is_valid(column), pc.binary_join(lists, ","), pa.scalar(None, pa.string()))


def wrapped(before: str, text: pa.StringArray, after: str) -> pa.StringArray:
    """Return texts between two others; null stays null."""
    return pc.binary_join_element_wise(before, text, after, "")


def blocks(rows: pa.Table) -> Iterator[Sequence[pa.Array]]:
    """Yield the columns of rows in pieces whose texts fit into one array."""
    width = max(rows.nbytes // max(rows.num_rows, 1), 1)
    step = max(BLOCK_BYTES // width, 1)
    for begin in range(0, rows.num_rows, step):
        piece = rows.slice(begin, step)
        yield [column.combine_chunks() for column in piece.columns]


def content(text: pa.StringArray) -> memoryview:
    """Return the texts of an array, one after the other."""
    offsets = np.frombuffer(text.buffers()[1], np.int32)[text.offset : text.offset + len(text) + 1]
    data = text.buffers()[2]
    return memoryview(b"" if data is None else data)[int(offsets[0]) : int(offsets[-1])]
