"""Reads and builds string arrays as a whole, and replaces rare values one by one.

All functions accept sliced arrays, empty ones and ones with nulls. Masks are NumPy booleans, false for nulls.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.events.json_text import value_bytes

Mask = NDArray[np.bool_]

NULL_TEXT = pa.scalar(None, pa.string())


def offsets_of(array: pa.StringArray | pa.BinaryArray) -> NDArray[np.int32]:
    """Return where each value starts in the data buffer, and where the last one ends, shape (rows + 1,)."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(1, np.int32)
    return np.frombuffer(buffer, np.int32)[array.offset : array.offset + len(array) + 1]


def lengths_of(array: pa.StringArray | pa.BinaryArray) -> NDArray[np.int32]:
    """Return the values' lengths in bytes, shape (rows,); 0 for nulls."""
    lengths = np.diff(offsets_of(array))
    return np.where(valid(array), lengths, np.int32(0)) if array.null_count else lengths


def valid(array: pa.Array) -> Mask:
    """Return a mask of the rows that are not null."""
    if not array.null_count:
        return np.ones(len(array), bool)
    return as_mask(pc.is_valid(array))


def as_mask(array: pa.BooleanArray) -> Mask:
    """Return a boolean array as a mask."""
    filled = array.fill_null(False) if array.null_count else array
    mask: Mask = filled.to_numpy(zero_copy_only=False)
    return mask


def byte_at(array: pa.StringArray | pa.BinaryArray, index: int) -> NDArray[np.uint8]:
    """Return the byte at an index of each value, 0 where it is shorter, shape (rows,); negative: from the end."""
    data = array.buffers()[2]
    if data is None or not data.size or not len(array):
        return np.zeros(len(array), np.uint8)
    offsets = offsets_of(array)
    lengths = lengths_of(array)
    where = offsets[:-1] + index if index >= 0 else offsets[1:] + index
    inside = lengths > index if index >= 0 else lengths >= -index
    whole = np.frombuffer(data, np.uint8)
    if inside.all():
        return whole[where]
    return np.where(inside, whole[np.clip(where, 0, len(whole) - 1)], np.uint8(0))


def has_letters(array: pa.StringArray) -> bool:
    """Return whether any value may contain a letter; in most columns of numbers and times, none does."""
    data = value_bytes(array)
    return bool(len(data)) and int(data.max()) >= ord("A")


def int64_values(array: pa.Array) -> NDArray[np.int64]:
    """Return the values of a 64-bit array without a copy, shape (rows,); undefined where it is null."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), np.int64)
    return np.frombuffer(buffer, np.int64)[array.offset : array.offset + len(array)]


def int64_like(values: NDArray[np.int64], like: pa.Array) -> pa.Int64Array:
    """Return numbers as an array with the nulls of ``like``."""
    return pa.array(values, pa.int64(), mask=~valid(like) if like.null_count else None)


def strings(
    offsets: NDArray[np.int32], data: bytes | memoryview | NDArray[np.uint8] | pa.Buffer, like: pa.Array | None = None
) -> pa.StringArray:
    """Return a string array of these buffers.

    Args:
        offsets: shape (rows + 1,).
        data: the bytes of all values, UTF-8.
        like: an array of as many rows, whose nulls are copied.
    """
    nulls = validity(like) if like is not None else None
    return pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data), nulls, -1 if nulls is not None else 0
    )


def validity(array: pa.Array) -> pa.Buffer | None:
    """Return a validity bitmap that starts with the array's first row; None without nulls."""
    if not array.null_count:
        return None
    return pa.py_buffer(np.packbits(valid(array), bitorder="little"))


def without(array: pa.StringArray, mask: Mask) -> pa.StringArray:
    """Return an array with null in the masked rows."""
    return pc.if_else(pa.array(mask), NULL_TEXT, array) if mask.any() else array


def slices(
    buf: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    valid: NDArray[np.bool_] | None,
) -> pa.StringArray:
    """Return pieces of a buffer as a string array without a copy in Python.

    The starts and ends, interleaved, are the offsets of an array twice as long over the same buffer;
    its even elements are the pieces.

    Args:
        buf: shape (bytes,), below 2 GiB.
        starts: shape (rows,), ascending; pieces don't overlap.
        lengths: shape (rows,).
        valid: shape (rows,), false where the result is null; None if nowhere.
    """
    rows = len(starts)
    offsets = np.empty(2 * rows + 1, np.int32)
    offsets[0:-1:2] = starts
    offsets[1::2] = starts + lengths
    offsets[-1] = offsets[-2] if rows else 0
    double = pa.StringArray.from_buffers(2 * rows, pa.py_buffer(offsets), pa.py_buffer(buf))
    indices = pa.array(np.arange(0, 2 * rows, 2, dtype=np.int32), mask=None if valid is None else ~valid)
    return double.take(indices)


def mapped(
    base: pa.StringArray, text: pa.StringArray, mask: Mask, function: Callable[[str], str | None]
) -> pa.StringArray:
    """Replace masked rows with a function's results for their text; it is called once for each distinct text.

    Args:
        base: the result for the other rows.
        text: the function's arguments.
        mask: the rows to replace.
        function: may be slow, but handles every text.
    """
    if not mask.any():
        return base
    chosen = pa.array(mask)
    coded = text.filter(chosen).dictionary_encode()
    values = pa.array([function(one) for one in coded.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(base, chosen, values.take(coded.indices))


def replaced(base: pa.StringArray, mask: Mask, values: pa.StringArray) -> pa.StringArray:
    """Replace masked rows with values, one for each masked row."""
    return pc.replace_with_mask(base, pa.array(mask), values)


def repeated(value: pa.ListScalar, rows: int) -> pa.ListArray:
    """Return a list for each row, the same one; ``pa.repeat`` takes about a hundred times as long for lists."""
    if not value.is_valid:
        return pa.nulls(rows, value.type)
    width = len(value)
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    places = np.tile(np.arange(width, dtype=np.int32), rows)
    return pa.ListArray.from_arrays(pa.array(offsets), value.values.take(pa.array(places)), type=value.type)


def text_of(numbers: NDArray[np.int64]) -> pa.StringArray:
    """Return numbers as decimal text."""
    return pc.cast(pa.array(numbers), pa.string())
