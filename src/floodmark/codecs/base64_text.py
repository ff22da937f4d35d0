"""Encodes whole columns as base64."""

from __future__ import annotations

import binascii

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import lengths_of, strings
from floodmark.events.json_text import value_bytes

_PADS = pa.array([b"", b"\0\0", b"\0"], pa.binary())
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_EQUALS = ord("=")


def encode_base64(values: pa.BinaryArray, url_safe: bool = False) -> pa.StringArray:
    """Return base64 with padding (RFC 4648, sections 4 and 5); null stays null.

    Every value is padded with zeros to a multiple of three bytes, so that all of them are encoded in one call; then
    the characters that encode only padding are replaced by ``=``.
    """
    filled = values.fill_null(b"") if values.null_count else values
    lengths = lengths_of(filled)
    rest = lengths % 3
    if rest.any():
        filled = pc.binary_join_element_wise(filled, _PADS.take(pa.array(rest)), b"")
    text = binascii.b2a_base64(value_bytes(filled).data, newline=False)
    if url_safe:
        text = text.translate(_URL_SAFE)
    ends = ends_of((lengths + 2) // 3 * 4)
    data = np.frombuffer(bytearray(text), np.uint8)
    last = ends[1:]
    data[last[rest != 0] - 1] = _EQUALS
    data[last[rest == 1] - 2] = _EQUALS
    return strings(ends, data, values)


def ends_of(lengths: NDArray[np.integer]) -> NDArray[np.int32]:
    """Return the offsets of values with these lengths, shape (rows + 1,)."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def binary_rows(matrix: NDArray[np.uint8], keep: NDArray[np.bool_], like: pa.Array) -> pa.BinaryArray:
    """Return the kept bytes of each row as its value; nulls as in ``like``.

    Args:
        matrix: shape (rows, width).
        keep: which of its bytes to keep, same shape.
        like: shape (rows,).
    """
    values = strings(ends_of(keep.sum(axis=1)), matrix[keep], like)
    return values.view(pa.binary())
