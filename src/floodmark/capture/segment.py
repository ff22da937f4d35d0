"""Segments: immutable files of consecutive raw log records with a self-contained header.

Layout: ``FMSEG003``, a checksum, the length of the header and that of the compressed payload (each a little-endian
uint32), the header (JSON in UTF-8), the payload (a Zstandard frame), and the index: one little-endian uint32 a record,
its start in the decompressed payload. The checksum is the CRC-32 of the file's name and of all that follows it, so it
also finds a file that lies under another one's name.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.errors import DamagedFileError

MAGIC = b"FMSEG003"
_WORD = struct.Struct("<I")
_LENGTHS = struct.Struct("<II")
_AT_LENGTHS = len(MAGIC) + _WORD.size
_AT_HEADER = _AT_LENGTHS + _LENGTHS.size
_MAX_BYTES = 1 << 32
"""The index can't have larger offsets."""
_LEVEL = -5
"""Compresses more than 1 GB/s to a third, which takes less time than to write the rest and to check its sum."""


@dataclass(frozen=True)
class Segment:
    """Where a segment is and what it covers.

    Attributes:
        name: file name below the run's directory in ``state.dir``.
        after: position just before its first record.
        upto: position of its last record.
        rows: how many records it holds.
        size: bytes of its payload, decompressed.
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
        header: all that the connector needs to decode the records.
        payload: the raw records, shape (bytes,).
        starts: where each record starts in the payload, shape (records,).
    """

    payload: NDArray[np.uint8]
    starts: NDArray[np.uint32]
    header: dict[str, Any] = field(default_factory=dict)

    def to_parts(self, name: str) -> list[bytes | memoryview]:
        """Return the file's content as consecutive pieces.

        Args:
            name: the name that the file will be read under.
        """
        payload = _codec().compress(np.ascontiguousarray(self.payload))
        header = json.dumps({**self.header, "payload_bytes": len(self.payload)}).encode()
        parts: list[bytes | memoryview] = [
            _LENGTHS.pack(len(header), payload.size),
            header,
            memoryview(payload),
            np.ascontiguousarray(self.starts, dtype="<u4").data.cast("B"),
        ]
        checksum = zlib.crc32(name.encode())
        for part in parts:
            checksum = zlib.crc32(part, checksum)
        return [MAGIC, _WORD.pack(checksum), *parts]

    @classmethod
    def from_buffer(cls, data: memoryview, name: str) -> SegmentData:
        """Read a file's content.

        Args:
            data: the content.
            name: the name that the file was written under.

        Raises:
            DamagedFileError: the content is not what was written under that name.
        """
        if bytes(data[: len(MAGIC)]) != MAGIC:
            raise DamagedFileError(f"'{name}' is not a log segment.")
        if len(data) < _AT_HEADER:
            raise DamagedFileError(f"The log segment '{name}' is cut off.")
        checksum = _WORD.unpack(data[len(MAGIC) : _AT_LENGTHS])[0]
        length, stored = _LENGTHS.unpack(data[_AT_LENGTHS:_AT_HEADER])
        if zlib.crc32(data[_AT_LENGTHS:], zlib.crc32(name.encode())) != checksum:
            raise DamagedFileError(f"The log segment '{name}' is damaged: its checksum is wrong.")
        begin = _AT_HEADER + length
        try:
            header = json.loads(bytes(data[_AT_HEADER:begin]))
            size = header["payload_bytes"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise DamagedFileError(f"The header of the log segment '{name}' cannot be read.") from None
        index = len(data) - begin - stored
        if not isinstance(size, int) or not 0 <= size <= _MAX_BYTES or index < 0 or index % 4:
            raise DamagedFileError(f"The log segment '{name}' is cut off.")
        end = begin + stored
        try:
            payload = _codec().decompress(data[begin:end], size)
        except (OSError, pa.ArrowException):
            raise DamagedFileError(f"The records of the log segment '{name}' cannot be decompressed.") from None
        return cls(np.frombuffer(payload, np.uint8), np.frombuffer(data[end:], "<u4"), header)


def _codec() -> pa.Codec:
    return pa.Codec("zstd", compression_level=_LEVEL)
