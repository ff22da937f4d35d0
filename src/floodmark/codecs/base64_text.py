"""Encodes whole columns as base64, and decodes them."""

from __future__ import annotations

import binascii

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import byte_at, lengths_of, strings
from floodmark.events.json_text import value_bytes

_PADS = pa.array([b"", b"\0\0", b"\0"], pa.binary())
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_EQUALS = ord("=")
_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=", np.uint8)
"""RFC 4648, section 4, and the padding."""
_PAD = 64
_LONG = 8
_CHARACTERS = np.array([(8 * size + 5) // 6 for size in range(_LONG + 1)], np.uint8)
"""By the size in bytes: how many characters hold it, and below how many there are with the padding."""
_LENGTHS = np.array([(size + 2) // 3 * 4 for size in range(_LONG + 1)], np.int32)
_SHIFTS = np.array([8 * (_LONG - size) for size in range(_LONG + 1)], np.uint64)


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


def decode_base64(text: pa.StringArray) -> pa.BinaryArray:
    """Return the bytes of base64 with padding (RFC 4648, section 4); null stays null.

    All of them are decoded in one call, with zeros in the place of the padding, which are left out afterwards.

    Raises:
        ValueError: a text is no base64.
    """
    filled = text.fill_null("") if text.null_count else text
    lengths = lengths_of(filled)
    if (lengths % 4).any():
        raise ValueError("a text is no base64: its length isn't a multiple of 4")
    ends = ends_of(lengths)
    padding = (byte_at(filled, -1) == _EQUALS).astype(np.int32) + (byte_at(filled, -2) == _EQUALS)
    plain = value_bytes(filled).tobytes().replace(b"=", b"A")
    data = np.frombuffer(binascii.a2b_base64(plain, strict_mode=True), np.uint8)
    sizes = lengths // 4 * 3 - padding
    if padding.any():
        kept = np.ones(len(data), bool)
        last = ends[1:] // 4 * 3
        kept[last[padding >= 1] - 1] = False
        kept[last[padding == 2] - 2] = False
        data = data[kept]
    return strings(ends_of(sizes), data, text).view(pa.binary())


def encode_integers(values: NDArray[np.int64], like: pa.Array) -> pa.StringArray:
    """Return base64 with padding of integers' shortest big-endian two's complement.

    Args:
        values: shape (rows,).
        like: its nulls are copied.
    """
    # Inverted, a negative number needs as many bits besides the sign as its two's complement.
    sizes = bytes_needed(values ^ (values >> 63))
    first = values.view(np.uint64) << _SHIFTS[sizes]
    characters, lengths = _CHARACTERS[sizes], _LENGTHS[sizes]
    width = int(lengths.max(initial=0))
    padded_from = int(characters.min(initial=width))
    text = np.empty((len(values), width), np.uint8)
    for place in range(width):
        shift = 58 - 6 * place
        bits = first >> np.uint64(shift) if shift >= 0 else first << np.uint64(-shift)
        codes = bits.astype(np.uint8) & np.uint8(63)
        if place >= padded_from:
            codes[place >= characters] = _PAD
        text[:, place] = _ALPHABET[codes]
    kept = text.ravel() if (lengths == width).all() else text[np.arange(width) < lengths[:, None]]
    return strings(ends_of(lengths), kept, like)


def bytes_needed(magnitudes: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return how many bytes hold numbers >= 0 and a sign bit, shape (rows,)."""
    largest = int(magnitudes.max(initial=0))
    needed = np.ones(len(magnitudes), np.uint8)
    for bits in range(7, 63, 8):
        if largest >> bits == 0:
            break
        needed += magnitudes >= np.int64(1) << bits
    return needed


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
