"""Encodes whole columns in Avro's binary encoding.

Source: the specification of Apache Avro 1.11, "Binary encoding". Every function returns one byte string a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import Mask, lengths_of, offsets_of, valid
from floodmark.codecs.base64_text import ends_of

Cells: TypeAlias = bytes | pa.BinaryArray
"""The same bytes for all rows, or those of each, shape (rows,), without nulls."""

_GROUP = 7
"""A byte of a variable-length integer holds so many bits."""
_MORE = np.uint8(0x80)
_LOW = np.uint64(0x7F)
END = b"\0"
"""What follows the last block of an array or map."""


def long_bytes(value: int) -> bytes:
    """Return one integer of 64 bits."""
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= _GROUP
    encoded.append(rest)
    return bytes(encoded)


def longs(
    values: NDArray[np.int64], lead: bytes = b"", absent: Mask | None = None, null: bytes = b""
) -> pa.BinaryArray:
    """Return integers, zigzag and of variable length.

    Args:
        values: shape (rows,).
        lead: a byte before each of them, or none.
        absent: the rows that have the byte ``null`` instead; None: there are none.
        null: that byte.
    """
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    largest = int(zigzag.max(initial=0))
    width = max(1, -(-largest.bit_length() // _GROUP))
    sizes = np.ones(len(values), np.uint8)
    for place in range(1, width):
        sizes += zigzag >= np.uint64(1) << np.uint64(_GROUP * place)
    matrix = np.empty((len(values), len(lead) + width), np.uint8)
    if lead:
        matrix[:, 0] = lead[0]
    for place in range(width):
        part = (zigzag >> np.uint64(_GROUP * place) & _LOW).astype(np.uint8)
        if place + 1 < width:
            part[sizes > place + 1] |= _MORE
        matrix[:, len(lead) + place] = part
    return _rows(matrix, sizes + np.uint8(len(lead)), absent, null)


def fixed(
    matrix: NDArray[np.uint8], lead: bytes = b"", absent: Mask | None = None, null: bytes = b""
) -> pa.BinaryArray:
    """Return values of a fixed size.

    Args:
        matrix: their bytes, shape (rows, size).
        lead: see ``longs``.
        absent: see ``longs``.
        null: see ``longs``.
    """
    if lead:
        matrix = np.concatenate([np.full((len(matrix), 1), lead[0], np.uint8), matrix], axis=1)
    return _rows(matrix, np.full(len(matrix), matrix.shape[1], np.uint8), absent, null)


def sized(content: pa.BinaryArray, lead: bytes = b"", null: bytes = b"") -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Return texts or bytes as two columns, which follow each other: the lengths, and what has them.

    Args:
        content: nulls have the byte ``null`` in the place of all.
        lead: see ``longs``.
        null: see ``longs``.
    """
    absent = ~valid(content) if content.null_count else None
    lengths = longs(lengths_of(content).astype(np.int64), lead, absent, null)
    return lengths, content.fill_null(b"") if content.null_count else content


def blocks(counts: NDArray[np.int64], items: pa.BinaryArray) -> list[Cells]:
    """Return arrays or maps as columns that follow each other: the number of items, the items, and the end.

    Args:
        counts: how many items each row has, shape (rows,).
        items: of all rows, in their order; of maps, each with its key.
    """
    lengths = longs(counts)
    empty = counts == 0
    if empty.any():
        # An empty one has no block, only the end.
        lengths = pc.if_else(pa.array(empty), pa.scalar(b"", pa.binary()), lengths)
    ends = offsets_of(items)
    starts = ends[ends_of(counts)]
    data = items.buffers()[2] or pa.py_buffer(b"")
    content = pa.BinaryArray.from_buffers(pa.binary(), len(counts), [None, pa.py_buffer(starts), data])
    return [lengths, content, END]


def joined(pieces: Sequence[Cells], rows: int) -> pa.BinaryArray:
    """Return columns that follow each other as one, shape (rows,)."""
    merged: list[Cells] = []
    for piece in pieces:
        if isinstance(piece, bytes) and merged and isinstance(merged[-1], bytes):
            merged[-1] += piece
        elif not isinstance(piece, bytes) or piece:
            merged.append(piece)
    if not any(isinstance(piece, pa.Array) for piece in merged):
        return pa.repeat(pa.scalar(b"".join(bytes(piece) for piece in merged), pa.binary()), rows)
    if len(merged) == 1:
        return merged[0]
    return pc.binary_join_element_wise(*merged, b"")


def spread(cells: pa.BinaryArray, present: Mask, null: bytes) -> pa.BinaryArray:
    """Return the cells of the rows that have one, and the byte ``null`` for the others, shape (rows,).

    Args:
        cells: in the order of their rows.
        present: which rows have one, shape (rows,).
        null: that byte.
    """
    places = pa.array(np.cumsum(present) - 1, mask=~present)
    return cells.take(places).fill_null(null)


def _rows(matrix: NDArray[np.uint8], sizes: NDArray[np.uint8], absent: Mask | None, null: bytes) -> pa.BinaryArray:
    """Return the first bytes of each row of a matrix, shape (rows, width); how many: ``sizes``, shape (rows,)."""
    if absent is not None and absent.any():
        matrix[absent, 0] = null[0]
        sizes[absent] = 1
    width = matrix.shape[1]
    if bool((sizes == width).all()):
        content = matrix.ravel()
    else:
        content = matrix[np.arange(width, dtype=np.uint8) < sizes[:, None]]
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(matrix), [None, pa.py_buffer(ends_of(sizes)), pa.py_buffer(content)]
    )
