"""Compressed parts of the binlog: MySQL's whole transactions, MariaDB's single events.

Capture leaves them in the segments as they are, since decompressing is work for the executors; it only looks
into transactions for the tables that they touch, and into statements.

Source: MySQL's documentation, "Transaction_payload_log_event"; MariaDB's, "Compressing Events to Reduce Size
of the Binary Log".
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.connectors.mysql.log.event_types import HEADER_BYTES, SIZE
from floodmark.connectors.mysql.log.little_endian import packed_number
from floodmark.errors import DecodeError

_END, _SIZE, _METHOD, _PLAIN_SIZE = 0, 1, 2, 3
_ZSTD, _NONE = 0, 255
_ZLIB = 0
_MAX_PLAIN_BYTES = 1 << 32

_WORD = struct.Struct("<I")


def payload_events(body: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the events of a compressed transaction.

    Args:
        body: of a TRANSACTION_PAYLOAD event, without header and checksum.

    Returns:
        The uncompressed bytes, and where each event starts in them. The events have no checksums.

    Raises:
        DecodeError: the body is not what it should be.
    """
    fields = {}
    at = 0
    try:
        while (field := packed_number(body, at))[0] != _END:
            size, at = packed_number(body, field[1])
            fields[field[0]] = packed_number(body, at)[0]
            at += size
        data = body[field[1] : field[1] + fields.get(_SIZE, len(body))]
        method = fields.get(_METHOD, _ZSTD)
        if method == _ZSTD:
            data = _zstd(data, fields[_PLAIN_SIZE])
        elif method != _NONE:
            raise DecodeError(f"A transaction in the binlog is compressed by method {method}, which is not known.")
    except (IndexError, KeyError, struct.error, pa.ArrowException, OSError) as exc:
        raise DecodeError(f"A compressed transaction in the binlog cannot be read: {exc}.") from None
    return np.frombuffer(data, np.uint8), _event_starts(data)


def decompressed(data: bytes) -> bytes:
    """Return what one of MariaDB's compressed events holds: the text of a statement, or rows.

    Args:
        data: from the byte that says how it is compressed, to the end of the event without its checksum.

    Raises:
        DecodeError: the data is not what it should be.
    """
    try:
        sizes = data[0] & 7
        if data[0] >> 4 & 7 != _ZLIB or not sizes:
            raise DecodeError(f"A compressed event in the binlog begins with {data[0]:#x}, which is not known.")
        size = int.from_bytes(data[1 : 1 + sizes], "big")
        inflate = zlib.decompressobj()
        plain = inflate.decompress(data[1 + sizes :], size + 1)
        if len(plain) != size or not inflate.eof:
            raise DecodeError("A compressed event in the binlog is cut off.")
        return plain
    except (IndexError, zlib.error) as exc:
        raise DecodeError(f"A compressed event in the binlog cannot be read: {exc}.") from None


def _zstd(data: bytes, size: int) -> bytes:
    if size >= _MAX_PLAIN_BYTES:
        raise DecodeError(f"A compressed transaction in the binlog announces {size} bytes.")
    plain: bytes = pa.decompress(data, size, "zstd", asbytes=True)
    return plain


def _event_starts(data: bytes) -> NDArray[np.int64]:
    starts = []
    at = 0
    size = len(data)
    while at + HEADER_BYTES <= size:
        starts.append(at)
        length = _WORD.unpack_from(data, at + SIZE)[0]
        if length < HEADER_BYTES:
            break
        at += length
    if at != size:
        raise DecodeError("A compressed transaction in the binlog is cut off.")
    return np.array(starts, np.int64)
