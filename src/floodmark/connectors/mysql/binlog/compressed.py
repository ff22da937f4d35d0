"""Decompresses compressed parts of the binlog: whole transactions on MySQL, single events on MariaDB.

Capture leaves small ones compressed in the segments, since decompressing is work for the executors; it only reads
the TABLE_MAP events of transactions, and statements. Large transactions become records (``inflation``).

Source: MySQL's documentation, "Transaction_payload_log_event"; MariaDB's, "Compressing Events to Reduce Size
of the Binary Log".
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.connectors.mysql.binlog import event_types as kinds
from floodmark.connectors.mysql.binlog.event_types import AT_BODY, HEADER_BYTES, SIZE
from floodmark.connectors.mysql.binlog.little_endian import numbers, packed_number
from floodmark.errors import DecodeError

_END, _SIZE, _METHOD, _PLAIN_SIZE = 0, 1, 2, 3
ZSTD, NONE = 0, 255
_ZLIB = 0
HEAD_BYTES = 128
"""More bytes than a payload's header has."""
MAX_EVENT_BYTES = (1 << 30) + (1 << 20)
"""An event is at most as long as the largest packet that a server can send (``max_allowed_packet``)."""
MAX_PLAIN_BYTES = 1 << 46
"""More than the largest event can hold: a zstd block takes at least 3 bytes for at most 128 KiB of data."""
_ROWS_HEAD, _ROWS_EXTRA = 8, 2
_WIDE_COLUMNS = 251

_WORD = struct.Struct("<I")


@dataclass(frozen=True)
class PayloadHeader:
    """The header of a TRANSACTION_PAYLOAD event.

    Attributes:
        method: ``ZSTD`` or ``NONE``.
        begin: where its data begins in the body.
        size: bytes of the data.
        plain: bytes of the decompressed transaction.
    """

    method: int
    begin: int
    size: int
    plain: int


def payload_header(body: bytes, total: int) -> PayloadHeader:
    """Parse the header of a compressed transaction.

    Args:
        body: of a TRANSACTION_PAYLOAD event, without header, or its first ``HEAD_BYTES``.
        total: bytes of the whole body, without checksum.

    Raises:
        DecodeError: the body is malformed.
    """
    fields = {}
    at = 0
    try:
        while (field := packed_number(body, at))[0] != _END:
            size, at = packed_number(body, field[1])
            fields[field[0]] = packed_number(body, at)[0]
            at += size
        begin = field[1]
        method = fields.get(_METHOD, ZSTD)
        length = fields.get(_SIZE, total - begin)
        plain = length if method == NONE else fields[_PLAIN_SIZE]
    except (IndexError, KeyError) as exc:
        raise DecodeError(f"A compressed transaction in the binlog cannot be read: {exc!r}.") from None
    if method not in (ZSTD, NONE):
        raise DecodeError(f"A transaction in the binlog is compressed by method {method}, which is not known.")
    if plain > MAX_PLAIN_BYTES:
        raise DecodeError(f"A compressed transaction in the binlog announces {plain} bytes.")
    if begin + length > total:
        raise DecodeError("A compressed transaction in the binlog is cut off.")
    return PayloadHeader(method, begin, length, plain)


def payload_events(body: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Decompress a whole compressed transaction; return its events.

    Args:
        body: of a TRANSACTION_PAYLOAD event, without header and checksum.

    Returns:
        The uncompressed bytes, and where each event starts in them. The events have no checksums.

    Raises:
        DecodeError: the body is malformed.
    """
    header = payload_header(body, len(body))
    data = body[header.begin : header.begin + header.size]
    if header.plain > MAX_EVENT_BYTES:
        raise DecodeError(f"A compressed transaction in the binlog announces {header.plain} bytes.")
    if header.method == ZSTD:
        try:
            data = pa.decompress(data, header.plain, "zstd", asbytes=True)
        except (pa.ArrowException, OSError) as exc:
            raise DecodeError(f"A compressed transaction in the binlog cannot be read: {exc}.") from None
    plain = np.frombuffer(data, np.uint8)
    starts, end = event_starts(data)
    if end != len(data):
        raise DecodeError("A compressed transaction in the binlog is cut off.")
    refuse_strangers(plain, starts)
    return plain, starts


def event_starts(data: bytes | memoryview) -> tuple[NDArray[np.int64], int]:
    """Return where the complete events at the start of the data start, and where the last one ends.

    Raises:
        DecodeError: an event is shorter than its header, or longer than events can be.
    """
    starts = []
    at = 0
    size = len(data)
    while at + HEADER_BYTES <= size:
        length = _WORD.unpack_from(data, at + SIZE)[0]
        if not HEADER_BYTES <= length <= MAX_EVENT_BYTES:
            raise DecodeError(f"A compressed transaction in the binlog has an event of {length} bytes.")
        if at + length > size:
            break
        starts.append(at)
        at += length
    return np.array(starts, np.int64), at


_INSIDE = np.zeros(256, bool)
"""Types of the events that can be in a compressed transaction."""
_INSIDE[[kinds.QUERY, kinds.INTVAR, kinds.RAND, kinds.USER_VAR, kinds.XID, kinds.TABLE_MAP, kinds.IGNORABLE]] = True
_INSIDE[[kind for kind in (*kinds.ROWS, kinds.ROWS_QUERY) if kind not in kinds.COMPRESSED_ROWS]] = True
_INSIDE[[kinds.TRANSACTION_CONTEXT, kinds.VIEW_CHANGE, kinds.XA_PREPARE]] = True


def refuse_strangers(buf: NDArray[np.uint8], starts: NDArray[np.int64]) -> None:
    """Verify that a compressed transaction holds only events that can be in one: no compressed ones, for example.

    Args:
        buf: the bytes.
        starts: where events start in them, shape (events,).

    Raises:
        DecodeError: there is another event, which isn't ignorable.
    """
    strange = ~_INSIDE[buf[starts + kinds.TYPE]] & (buf[starts + kinds.FLAGS] & kinds.IGNORABLE_FLAG == 0)
    if strange.any():
        kind = int(buf[starts[strange][0] + kinds.TYPE])
        raise DecodeError(
            f"A compressed transaction in the binlog holds an event of type {kind}, which can't be in one."
        )


_PACKED = np.zeros(256, bool)
_PACKED[[kinds.TRANSACTION_PAYLOAD, *kinds.COMPRESSED_ROWS]] = True


def inflated_bytes(
    buf: NDArray[np.uint8], starts: NDArray[np.int64], types: NDArray[np.uint8]
) -> NDArray[np.int64] | None:
    """Return the decompressed sizes that compressed records announce; None if none is compressed.

    Args:
        buf: the records.
        starts: where they start, shape (records,).
        types: their event types, shape (records,).

    Returns:
        Shape (records,); 0 for uncompressed records.

    Raises:
        DecodeError: a record is malformed.
    """
    packed = np.flatnonzero(_PACKED[types])
    if not len(packed):
        return None
    found = np.zeros(len(starts), np.int64)
    payloads = types[packed] == kinds.TRANSACTION_PAYLOAD
    try:
        sizes = numbers(buf, starts[packed] + kinds.AT_SIZE, 4)
        for index, size in zip(packed[payloads].tolist(), sizes[payloads].tolist(), strict=True):
            at = int(starts[index]) + AT_BODY
            found[index] = payload_header(bytes(buf[at : at + HEAD_BYTES]), size - HEADER_BYTES).plain
        rows = packed[~payloads]
        if len(rows):
            found[rows] = _rows_bytes(buf, starts[rows] + AT_BODY, types[rows])
    except IndexError:
        raise DecodeError("A compressed event in the binlog is cut off.") from None
    return found


def _rows_bytes(buf: NDArray[np.uint8], at: NDArray[np.int64], types: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the decompressed sizes that MariaDB's compressed rows events announce; ``at``: where the bodies begin."""
    at = at + _ROWS_HEAD
    extra = np.flatnonzero(~np.isin(types, kinds.ROWS_V1))
    at[extra] += numbers(buf, at[extra], _ROWS_EXTRA)
    columns = buf[at].astype(np.int64)
    at += 1
    for wide in np.flatnonzero(columns >= _WIDE_COLUMNS).tolist():
        columns[wide], after = packed_number(bytes(buf[at[wide] - 1 : at[wide] + 8]), 0)
        at[wide] += after - 1
    at += (columns + 7) // 8 * np.where(np.isin(types, kinds.UPDATES), 2, 1)
    # The low 3 bits give the width of the size that follows, which is big-endian.
    widths = (buf[at] & 7).astype(np.int64)
    found = np.zeros(len(at), np.int64)
    for width in np.unique(widths).tolist():
        chosen = widths == width
        for place in range(1, width + 1):
            found[chosen] = found[chosen] << 8 | buf[at[chosen] + place]
    return found


def decompressed(data: bytes) -> bytes:
    """Decompress the contents of a compressed MariaDB event: the text of a statement, or rows.

    Args:
        data: from the byte that names the compression to the end of the event, without its checksum.

    Raises:
        DecodeError: the data is malformed.
    """
    try:
        sizes = data[0] & 7
        if data[0] >> 4 & 7 != _ZLIB or not sizes:
            raise DecodeError(f"A compressed event in the binlog begins with {data[0]:#x}, which is not known.")
        size = int.from_bytes(data[1 : 1 + sizes], "big")
        if size > MAX_EVENT_BYTES:
            raise DecodeError(f"A compressed event in the binlog announces {size} bytes.")
        inflate = zlib.decompressobj()
        plain = inflate.decompress(data[1 + sizes :], size + 1)
        if len(plain) != size or not inflate.eof:
            raise DecodeError("A compressed event in the binlog is cut off.")
        return plain
    except (IndexError, zlib.error) as exc:
        raise DecodeError(f"A compressed event in the binlog cannot be read: {exc}.") from None
