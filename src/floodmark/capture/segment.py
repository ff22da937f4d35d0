"""Segments: immutable files of consecutive raw log records with a self-contained header.

Layout: ``FMSEG001``, the header's length (little-endian uint32), the header (JSON in UTF-8), the payload,
and the index: one little-endian uint32 a record, its start in the payload.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from floodmark.errors import DecodeError

MAGIC = b"FMSEG001"
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Segment:
    """Where a segment is and what it covers.

    Attributes:
        name: file name below the run's directory in ``state.dir``.
        after: position just before its first record.
        upto: position of its last record.
        rows: how many records it holds.
        size: bytes of its payload.
        last_commit_s: when its last transaction was committed, seconds since the epoch; 0 if unknown.
        signals: rows inserted into the signal table, each with its position: ``id``, ``type``, ``data``.
    """

    name: str
    after: str
    upto: str
    rows: int
    size: int
    last_commit_s: float = 0.0
    signals: tuple[tuple[str, dict[str, str]], ...] = ()


@dataclass
class SegmentData:
    """A segment's content.

    Attributes:
        header: what the connector needs to decode the records without anything else.
        payload: the raw records, shape (bytes,).
        starts: where each record starts in the payload, shape (records,).
    """

    payload: NDArray[np.uint8]
    starts: NDArray[np.uint32]
    header: dict[str, Any] = field(default_factory=dict)

    def to_parts(self) -> list[bytes | memoryview]:
        """Return the file's content as consecutive pieces."""
        header = json.dumps({**self.header, "payload_bytes": len(self.payload)}).encode()
        return [
            MAGIC,
            _LENGTH.pack(len(header)),
            header,
            np.ascontiguousarray(self.payload).data,
            np.ascontiguousarray(self.starts, dtype="<u4").data.cast("B"),
        ]

    @classmethod
    def from_buffer(cls, data: memoryview, name: str) -> SegmentData:
        """Read a file's content without copying the payload.

        Raises:
            DecodeError: the content is not a whole segment.
        """
        if bytes(data[:8]) != MAGIC:
            raise DecodeError(f"'{name}' is not a log segment.")
        try:
            (length,) = _LENGTH.unpack(data[8:12])
            header = json.loads(bytes(data[12 : 12 + length]))
            size = header["payload_bytes"]
        except (struct.error, ValueError, LookupError, TypeError, RecursionError):
            raise DecodeError(f"The header of the log segment '{name}' cannot be read.") from None
        begin = 12 + length
        if not isinstance(size, int) or not 0 <= size <= len(data) - begin or (len(data) - begin - size) % 4:
            raise DecodeError(f"The log segment '{name}' is cut off.")
        end = begin + size
        raw = np.frombuffer(data, np.uint8)
        return cls(raw[begin:end], np.frombuffer(data[end:], "<u4"), header)
