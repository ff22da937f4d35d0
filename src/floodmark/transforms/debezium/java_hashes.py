"""Hashes of whole columns as Java computes them, and those of Debezium's ``MurmurHash3``.

Sources: the documentation of ``hashCode`` in ``java.lang`` (String, Long, Double, Float, Boolean), ``java.math``
(BigDecimal, BigInteger) and ``java.nio.ByteBuffer``; MurmurHash3 as Infinispan had it, of which Debezium has a copy.
"""

from __future__ import annotations

import binascii

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import lengths_of, offsets_of
from floodmark.events.json_text import FOUR_BYTES, value_bytes

Hashes = NDArray[np.uint32]
"""Hashes, as Java's ``int`` without its sign, shape (rows,)."""

_WORD, _BLOCK = 8, 16
_SEED = 9001
_SHIFTS = np.arange(_WORD, dtype=np.uint64) * np.uint64(8)


def hash_longs(numbers: NDArray[np.int64]) -> Hashes:
    """Return the hashes of 64-bit numbers."""
    bits = numbers.view(np.uint64)
    return (bits ^ (bits >> np.uint64(32))).astype(np.uint32)


def hash_booleans(values: NDArray[np.bool_]) -> Hashes:
    """Return the hashes of booleans."""
    return np.where(values, 1231, 1237).astype(np.uint32)


def hash_doubles(numbers: NDArray[np.float64]) -> Hashes:
    """Return the hashes of floating-point numbers of 64 bits."""
    return hash_longs(np.where(np.isnan(numbers), np.nan, numbers).view(np.int64))


def hash_floats(numbers: NDArray[np.float32]) -> Hashes:
    """Return the hashes of floating-point numbers of 32 bits."""
    return np.where(np.isnan(numbers), np.float32(np.nan), numbers).astype(np.float32).view(np.uint32)


def hash_texts(texts: pa.StringArray) -> Hashes:
    """Return the hashes of texts, which aren't null: of their UTF-16 units."""
    data = value_bytes(texts)
    if not len(data) or int(data.max()) < 0x80:
        return _polynomial(data.astype(np.uint32), lengths_of(texts))
    begins = offsets_of(texts).astype(np.int64)
    fours = np.concatenate(([0], np.cumsum(data >= FOUR_BYTES)))[begins - begins[0]]
    units = np.frombuffer(data.tobytes().decode().encode("utf-16-le"), "<u2").astype(np.uint32)
    return _polynomial(units, pc.utf8_length(texts).to_numpy() + np.diff(fours))


def hash_bytes(values: pa.BinaryArray) -> Hashes:
    """Return the hashes of byte buffers, which aren't null."""
    lengths = lengths_of(values)
    # Unlike a text's, its last byte counts most, and bytes have a sign.
    signed = value_bytes(values).view(np.int8).astype(np.int64).astype(np.uint32)
    return _polynomial(signed, lengths, backwards=True) + _powers(int(lengths.max(initial=0)))[lengths]


def hash_decimals(unscaled: pa.BinaryArray, scale: int) -> Hashes:
    """Return the hashes of decimals.

    Args:
        unscaled: their unscaled values, as two's complement of big-endian bytes; not null.
        scale: how many digits are behind the point.
    """
    found = np.zeros(len(unscaled), np.uint32)
    lengths = lengths_of(unscaled)
    small = lengths <= _WORD
    numbers = _whole_numbers(unscaled.filter(pa.array(small)))
    magnitudes = np.abs(numbers).view(np.uint64)
    # A BigInteger's hash is that of its 32-bit words; the highest number is its own magnitude's bits.
    hashes = (magnitudes >> np.uint64(32)).astype(np.uint32) * np.uint32(31) + magnitudes.astype(np.uint32)
    found[small] = np.where(numbers < 0, -hashes, hashes)
    for at in np.flatnonzero(~small):
        # Few decimals have more than 18 digits.
        found[at] = _hash_of_integer(int.from_bytes(unscaled[at].as_py(), "big", signed=True))
    return found * np.uint32(31) + np.uint32(scale)


def murmur_texts(texts: pa.StringArray) -> Hashes:
    """Return Debezium's MurmurHash3 of texts, which aren't null."""
    begins = offsets_of(texts).astype(np.int64)[:-1]
    return _murmur(value_bytes(texts), begins - (begins[0] if len(begins) else 0), lengths_of(texts).astype(np.int64))


def murmur_hashes(hashes: Hashes) -> Hashes:
    """Return Debezium's MurmurHash3 of values of which it takes the hash that Java has."""
    data = np.ascontiguousarray(hashes).view(np.uint8)
    return _murmur(data, np.arange(len(hashes), dtype=np.int64) * 4, np.full(len(hashes), 4, np.int64))


def decoded_base64(text: pa.StringArray) -> pa.BinaryArray:
    """Return the bytes of base64 texts, which aren't null, all decoded in one call."""
    pads = pc.count_substring(text, "=").to_numpy()
    raw = np.frombuffer(binascii.a2b_base64(value_bytes(pc.replace_substring(text, "=", "A")).data), np.uint8)
    ends = offsets_of(text).astype(np.int64)
    ends = (ends - ends[0]) // 4 * 3
    keep = np.ones(len(raw), bool)
    for count in (1, 2):
        keep[ends[1:][pads >= count] - count] = False
    offsets = np.concatenate(([0], np.cumsum(np.diff(ends) - pads))).astype(np.int32)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(text), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(raw[keep]))]
    )


def _powers(most: int) -> NDArray[np.uint32]:
    """Return the powers of 31 up to an exponent, shape (most + 1,)."""
    powers = np.full(most + 1, 31, np.uint32)
    powers[0] = 1
    return np.cumprod(powers, dtype=np.uint32)


def _polynomial(units: NDArray[np.uint32], lengths: NDArray[np.integer], backwards: bool = False) -> Hashes:
    """Return sums of each row's units times powers of 31.

    Args:
        units: of all rows, one behind the other.
        lengths: how many units each row has, shape (rows,).
        backwards: whether the first unit of a row gets the lowest power, not the last.
    """
    found = np.zeros(len(lengths), np.uint32)
    if not len(units):
        return found
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    place = np.arange(len(units)) - np.repeat(starts, lengths)
    exponent = place if backwards else np.repeat(lengths, lengths) - 1 - place
    filled = lengths > 0
    products = units * _powers(int(lengths.max()))[exponent]
    found[filled] = np.add.reduceat(products, starts[filled], dtype=np.uint32)
    return found


def _whole_numbers(values: pa.BinaryArray) -> NDArray[np.int64]:
    """Return numbers of up to 8 big-endian bytes, shape (rows,)."""
    lengths = lengths_of(values).astype(np.int64)
    begins = offsets_of(values).astype(np.int64)[:-1]
    begins = begins - (begins[0] if len(begins) else 0)
    data = value_bytes(values)
    numbers = np.zeros(len(values), np.uint64)
    if not len(data):
        return numbers.view(np.int64)
    numbers[data[np.minimum(begins, len(data) - 1)] >= 0x80] = ~np.uint64(0)
    for place in range(int(lengths.max())):
        rows = np.flatnonzero(lengths > place)
        numbers[rows] = (numbers[rows] << np.uint64(8)) | data[begins[rows] + place]
    return numbers.view(np.int64)


def _hash_of_integer(number: int) -> int:
    magnitude, found = abs(number), 0
    words = [(magnitude >> shift) & 0xFFFFFFFF for shift in range(0, max(magnitude.bit_length(), 1), 32)]
    for word in reversed(words):
        found = (31 * found + word) & 0xFFFFFFFF
    return -found & 0xFFFFFFFF if number < 0 else found


class _State:
    """MurmurHash3's state for many rows: arrays of 64-bit numbers, which overflow as Java's do."""

    def __init__(self, rows: int) -> None:
        self.h1 = np.full(rows, 0x9368E53C2F6AF274 ^ _SEED, np.uint64)
        self.h2 = np.full(rows, 0x586DCD208F7CD3FD ^ _SEED, np.uint64)
        self.c1 = np.full(rows, 0x87C37B91114253D5, np.uint64)
        self.c2 = np.full(rows, 0x4CF5AD432745937F, np.uint64)

    def mix(self, at: NDArray[np.int64], k1: NDArray[np.uint64], k2: NDArray[np.uint64]) -> None:
        """Mix two words into the states of some rows."""
        h1, h2, c1, c2 = self.h1[at], self.h2[at], self.c1[at], self.c2[at]
        h1 = (h1 ^ (_rotated(k1 * c1, 23) * c2)) + h2
        h2 = (_rotated(h2, 41) ^ (_rotated(k2 * c2, 23) * c1)) + h1
        self.h1[at] = h1 * np.uint64(3) + np.uint64(0x52DCE729)
        self.h2[at] = h2 * np.uint64(3) + np.uint64(0x38495AB5)
        self.c1[at] = c1 * np.uint64(5) + np.uint64(0x7B7D159C)
        self.c2[at] = c2 * np.uint64(5) + np.uint64(0x6BCE6396)

    def finish(self, lengths: NDArray[np.int64]) -> Hashes:
        """Return the hashes of rows of these lengths."""
        h2 = self.h2 ^ lengths.view(np.uint64)
        h1 = self.h1 + h2
        h2 = h2 + h1
        return ((_finished(h1) + _finished(h2)) >> np.uint64(32)).astype(np.uint32)


def _murmur(data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> Hashes:
    state = _State(len(begins))
    blocks = lengths // _BLOCK
    for block in range(int(blocks.max(initial=0))):
        rows = np.flatnonzero(blocks > block)
        places = begins[rows, None] + block * _BLOCK + np.arange(_BLOCK)
        words = np.ascontiguousarray(data[places]).view("<u8")
        state.mix(rows, words[:, 0], words[:, 1])
    rest = lengths % _BLOCK
    rows = np.flatnonzero(rest)
    tail = np.zeros((len(rows), 2), np.uint64)
    for place in range(int(rest.max(initial=0))):
        longer = np.flatnonzero(rest[rows] > place)
        # What doesn't fill a block has signs.
        signed = data[begins[rows[longer]] + blocks[rows[longer]] * _BLOCK + place].view(np.int8).astype(np.int64)
        tail[longer, place // _WORD] ^= signed.view(np.uint64) << _SHIFTS[place % _WORD]
    state.mix(rows, tail[:, 0], tail[:, 1])
    return state.finish(lengths)


def _rotated(words: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _finished(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = words ^ (words >> np.uint64(33))
    words = words * np.uint64(0xFF51AFD7ED558CCD)
    words = words ^ (words >> np.uint64(33))
    words = words * np.uint64(0xC4CEB9FE1A85EC53)
    return words ^ (words >> np.uint64(33))
