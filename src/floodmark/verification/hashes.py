"""Hashes of rows, 64 bits each, column by column.

Two rows have the same hash if their values are the same in each column, whatever the order of the columns and the Arrow
layout is. Floats are compared as SQL does: all NaN are one value, and so are both zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

SLICE_ROWS = 1 << 14
"""Rows that are hashed together: small slices keep the working set in the processor's caches."""
SLICE_BYTES = 1 << 22
"""Bytes of texts that are hashed together, unless one is longer."""

# The constants of splitmix64, whose output function spreads each bit of a number over all bits.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_NULL = np.uint64(0x5851F42D4C957F2D)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def row_hashes(rows: pa.Table, names: Sequence[str]) -> Hashes:
    """Return the hashes of rows, shape (rows,).

    Args:
        rows: with at least the named columns.
        names: the columns that count.
    """
    parts = []
    for batch in rows.select(list(names)).to_batches(max_chunksize=SLICE_ROWS):
        total = np.zeros(batch.num_rows, np.uint64)
        for name, column in zip(names, batch.columns, strict=True):
            total += _mixed(_values(column) + _seed(name))
        parts.append(_mixed(total))
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def column_hashes(rows: pa.Table, name: str) -> Hashes:
    """Return the hashes of a column's values, shape (rows,)."""
    return row_hashes(rows, [name])


@lru_cache(maxsize=4096)
def _seed(name: str) -> np.uint64:
    return np.uint64(int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little"))


def _mixed(numbers: Hashes) -> Hashes:
    """Return numbers with each bit spread over all others; the argument is overwritten."""
    numbers ^= numbers >> np.uint64(30)
    numbers *= _FIRST
    numbers ^= numbers >> np.uint64(27)
    numbers *= _SECOND
    numbers ^= numbers >> np.uint64(31)
    return numbers


def _values(column: pa.Array) -> Hashes:
    """Return a hash of each value, nulls included."""
    hashes = _present(column)
    if column.null_count:
        hashes[np.asarray(pc.is_null(column).to_numpy(zero_copy_only=False))] = _NULL
    return hashes


def _present(column: pa.Array) -> Hashes:
    """Return a hash of each value; nulls have any."""
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return _present(column.storage)
    if pa.types.is_dictionary(kind):
        return _present(column.dictionary_decode())
    if pa.types.is_null(kind):
        return np.full(len(column), _NULL, np.uint64)
    if pa.types.is_floating(kind):
        return _floats(column)
    if pa.types.is_decimal(kind):
        return _decimals(column)
    if pa.types.is_struct(kind):
        return _structures(column)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        return _lists(column)
    if _is_bytes(kind):
        return _bytes(column)
    return _numbers(column)


def _is_bytes(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_string_view,
        pa.types.is_binary_view,
    )
    return any(test(kind) for test in tests)


def _numbers(column: pa.Array) -> Hashes:
    """Hash whole numbers, booleans, dates and times."""
    if pa.types.is_date32(column.type) or pa.types.is_time32(column.type):
        column = column.cast(pa.int32())
    numbers = column if pa.types.is_uint64(column.type) else column.cast(pa.int64())
    filled = pc.fill_null(numbers, 0) if numbers.null_count else numbers
    return _mixed(np.asarray(filled.to_numpy(zero_copy_only=False)).astype(np.uint64))


def _floats(column: pa.Array) -> Hashes:
    values = column.cast(pa.float64())
    filled = pc.fill_null(values, 0.0) if values.null_count else values
    # Adding 0.0 makes a negative zero a positive one.
    numbers = np.asarray(filled.to_numpy(zero_copy_only=False)) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return _mixed(numbers.view(np.uint64).copy())


def _decimals(column: pa.Array) -> Hashes:
    words = column.type.bit_width // 64
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.zeros(len(column), np.uint64)
    begin = column.offset * words
    held = np.frombuffer(buffer, np.uint64, len(column) * words, begin * 8).reshape(-1, words)
    total = np.zeros(len(column), np.uint64)
    for number in range(words):
        total = _mixed(total * _GOLDEN + held[:, number])
    return total


def _structures(column: pa.Array) -> Hashes:
    total = np.zeros(len(column), np.uint64)
    for field, values in zip(column.type, column.flatten(), strict=True):
        total += _mixed(_values(values) + _seed(field.name))
    return _mixed(total)


def _lists(column: pa.Array) -> Hashes:
    # ``flatten`` leaves out what nulls hide, as do the lengths.
    if pa.types.is_map(column.type):
        lists = pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)]))
        column = column.cast(lists)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False), np.int64)
    return _joined(_values(column.flatten()), lengths, lengths)


def _bytes(column: pa.Array) -> Hashes:
    """Hash texts and binary values, eight bytes at a time."""
    plain = column.cast(pa.large_binary())
    filled = pc.fill_null(plain, b"") if plain.null_count else plain
    offsets = np.frombuffer(filled.buffers()[1], np.int64, len(filled) + 1, filled.offset * 8)
    parts = []
    begin = 0
    while begin < len(filled):
        # As many values as the slice has room for, but at least one.
        end = int(np.searchsorted(offsets, offsets[begin] + SLICE_BYTES, "right")) - 1
        end = min(max(end, begin + 1), len(filled))
        parts.append(_slice_of_bytes(filled.buffers()[2], offsets[begin : end + 1]))
        begin = end
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _slice_of_bytes(buffer: pa.Buffer | None, offsets: Integers) -> Hashes:
    first, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    held = np.zeros(size // 8 + 2, np.uint64)
    if size:
        assert buffer is not None
        held.view(np.uint8)[:size] = np.frombuffer(buffer, np.uint8, size, first)
    lengths = np.diff(offsets)
    counts = (lengths + 7) >> 3
    ends = np.cumsum(counts)
    total = int(ends[-1])
    # A value may begin anywhere, so its words are put together from two of the buffer's.
    at = np.repeat(offsets[:-1] - first - 8 * (ends - counts), counts) + 8 * np.arange(total)
    shift = ((at & 7) << 3).astype(np.uint64)
    at >>= 3
    words = held[at] >> shift
    at += 1
    words |= held[at] << np.uint64(1) << (np.uint64(63) - shift)
    filled = np.flatnonzero(counts)
    words[ends[filled] - 1] &= _ALL >> ((8 * counts[filled] - lengths[filled]).astype(np.uint64) << np.uint64(3))
    return _joined(words, counts, lengths)


def _joined(elements: Hashes, counts: Integers, lengths: Integers) -> Hashes:
    """Return a hash of each value from those of its consecutive elements.

    Args:
        elements: of all values; overwritten.
        counts: how many each value has.
        lengths: what else tells values apart.
    """
    ends = np.cumsum(counts)
    # What is added tells the places of a value's elements apart.
    elements += np.arange(len(elements), dtype=np.uint64) * _GOLDEN
    elements -= np.repeat((ends - counts).astype(np.uint64) * _GOLDEN, counts)
    elements *= _FIRST
    elements ^= elements >> np.uint64(32)
    elements *= _SECOND
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(elements, dtype=np.uint64)])
    total = sums[ends] - sums[ends - counts]
    return _mixed(total + lengths.astype(np.uint64) * _GOLDEN)
