"""Decodes text and bytes of row events: strings, enums, sets, MariaDB's addresses, UUIDs and compressed columns."""

from __future__ import annotations

import ipaddress
import uuid
import zlib
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from floodmark.codecs.arrays import lengths_of
from floodmark.connectors.mysql.values.charsets import to_utf8
from floodmark.connectors.mysql.values.column_bytes import bytes_at, little_endian, nulls, text_array, texts_at
from floodmark.connectors.mysql.values.row_images import Bytes, Pieces
from floodmark.errors import DecodeError
from floodmark.events.json_text import value_bytes

BINARY = "binary"

_ZLIB = 8


def strings(buf: Bytes, pieces: Pieces, charset: str) -> pa.StringArray:
    """Return text in UTF-8."""
    return to_utf8(texts_at(buf, pieces), charset)


def padded(buf: Bytes, pieces: Pieces, width: int) -> pa.BinaryArray:
    """Return ``BINARY(width)`` values, padded with the trailing zeros that the log omits.

    Raises:
        DecodeError: a value is longer than ``width``.
    """
    lengths = pieces.lengths
    if (lengths > width).any():
        raise DecodeError(f"A value of BINARY({width}) has {int(lengths.max())} bytes.")
    rows = len(lengths)
    matrix = np.zeros((rows, width), np.uint8)
    values = texts_at(buf, pieces)
    inside = np.arange(width) < lengths[:, None]
    if pieces.valid is not None:
        inside &= pieces.valid[:, None]
    matrix[inside] = value_bytes(values)
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32) if width else np.zeros(rows + 1, np.int32)
    return text_array(offsets, matrix, pieces.valid).view(pa.binary())


def enums(buf: Bytes, pieces: Pieces, size: int, labels: Sequence[str]) -> pa.StringArray:
    """Return the labels of enum values, which count from 1; 0 is the empty text of an invalid value.

    Raises:
        DecodeError: a value is beyond the labels.
    """
    numbers = little_endian(bytes_at(buf, pieces, size))
    if (numbers > len(labels)).any():
        raise DecodeError(f"An enum of {len(labels)} labels has the value {int(numbers.max())}.")
    return pa.array(["", *labels], pa.string()).take(pa.array(numbers, mask=nulls(pieces.valid)))


def sets(buf: Bytes, pieces: Pieces, size: int, labels: Sequence[str]) -> pa.StringArray:
    """Return the labels of set values, one per bit, separated by commas.

    Raises:
        DecodeError: a value has bits beyond the labels.
    """
    bits = little_endian(bytes_at(buf, pieces, size)).view(np.uint64)
    distinct, which = np.unique(bits, return_inverse=True)
    texts = []
    for value in distinct.tolist():
        if value >> len(labels):
            raise DecodeError(f"A set of {len(labels)} labels has the value {value}.")
        texts.append(",".join(label for place, label in enumerate(labels) if value >> place & 1))
    return pa.array(texts, pa.string()).take(pa.array(which.reshape(-1), mask=nulls(pieces.valid)))


def fixed_names(buf: Bytes, pieces: Pieces, kind: str) -> pa.StringArray:
    """Return MariaDB's ``uuid``, ``inet4`` or ``inet6`` as text, formatting each distinct value once.

    Raises:
        DecodeError: a value is longer than the type's.
    """
    width, name = NAMES[kind]
    coded = padded(buf, pieces, width).dictionary_encode()
    return pa.array([name(raw) for raw in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)


def _inet6(raw: bytes) -> str:
    """Return an address as MariaDB prints it: the first longest run of zero groups is omitted, even a single group."""
    groups = [int.from_bytes(raw[at : at + 2], "big") for at in range(0, 16, 2)]
    embedded = groups[:5] == [0] * 5 and (groups[5] == 0xFFFF or (groups[5] == 0 and groups[6] != 0))
    shown = [f"{group:x}" for group in groups]
    if embedded:
        shown[6:] = [str(ipaddress.IPv4Address(raw[12:]))]
    size, first = max((_zeros(shown, at), -at) for at in range(len(shown)))
    if not size:
        return ":".join(shown)
    return f"{':'.join(shown[:-first])}::{':'.join(shown[size - first :])}"


def _zeros(groups: Sequence[str], at: int) -> int:
    """Return how many consecutive groups are zero from an index on."""
    return next((size for size, group in enumerate(groups[at:]) if group != "0"), len(groups) - at)


NAMES: dict[str, tuple[int, Callable[[bytes], str]]] = {
    "uuid": (16, lambda raw: str(uuid.UUID(bytes=raw))),
    "inet4": (4, lambda raw: str(ipaddress.IPv4Address(raw))),
    "inet6": (16, _inet6),
}
"""Size in bytes, and conversion to text, of the values of each of these MariaDB types."""


def decompressed(buf: Bytes, pieces: Pieces) -> tuple[Bytes, Pieces]:
    """Decompress the values of one of MariaDB's compressed columns into a new buffer.

    Each begins with a byte whose upper half is the method; for zlib, the lower half holds how many bytes the length
    takes, and whether zlib's header is missing.

    Raises:
        DecodeError: a value cannot be decompressed.
    """
    raw = texts_at(buf, pieces).view(pa.binary())
    coded = raw.dictionary_encode()
    plain = pa.array([_inflated(value) for value in coded.dictionary.to_pylist()], pa.binary())
    values = plain.take(coded.indices)
    lengths = lengths_of(values).astype(np.int64)
    return value_bytes(values), Pieces(np.cumsum(lengths) - lengths, lengths, pieces.valid)


def _inflated(value: bytes) -> bytes:
    if not value:
        return b""
    method, rest = value[0] >> 4, value[1:]
    if method == 0:
        return rest
    size = value[0] & 7
    if method != _ZLIB or len(rest) < size:
        raise DecodeError(f"A compressed value has the unknown method {method}.")
    expected = int.from_bytes(rest[:size], "big")
    engine = zlib.decompressobj(-zlib.MAX_WBITS if value[0] & 8 else zlib.MAX_WBITS)
    try:
        plain = engine.decompress(rest[size:], expected + 1)
    except zlib.error as exc:
        raise DecodeError(f"A compressed value cannot be read: {exc}.") from None
    if len(plain) != expected:
        raise DecodeError("A compressed value has another length than it says.")
    return plain
