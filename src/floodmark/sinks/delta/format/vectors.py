"""Deletion vectors: which rows of a data file are deleted.

Format: the Delta protocol, sections "Deletion Vectors" and "Deletion Vector Format"
(https://github.com/delta-io/delta/blob/master/PROTOCOL.md).
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID, uuid4

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, BitMap64

from floodmark.errors import TargetDamagedError
from floodmark.json_data import Json, JsonObject

Rows = npt.NDArray[np.uint64]
"""Numbers of rows in a data file, from 0, sorted, each once."""
ReadBytes = Callable[[str, int, int], bytes]
"""Reads from a file, given its path in the table or its URI, where to begin and how many bytes."""

_MAGIC = struct.pack("<I", 1681511377)
"""A 64-bit roaring bitmap in the portable format of RoaringFormatSpec."""
_EARLIER_MAGIC = struct.pack(">I", 1681511376)
"""A count of 32-bit bitmaps and these, each after its size; Delta's first releases, and the protocol's example."""
_FILE_VERSION = b"\x01"
_IN_TABLE, ANYWHERE, _INLINE = "u", "p", "i"
"""Kinds of storage: a file that is named by a UUID, one that is named by its URI, and the descriptor itself."""
FRAME_BYTES = 8
"""Bytes around a vector in a file: its size before it, and a checksum behind it."""
_UUID_LENGTH = 20
"""Characters of a UUID in Z85."""
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_TO_Z85, _FROM_Z85 = bytes.maketrans(_B85, _Z85), bytes.maketrans(_Z85, _B85)


@dataclass(frozen=True)
class Descriptor:
    """Where a deletion vector is.

    Attributes:
        storage: the kind of storage.
        place: the UUID in Z85 behind a prefix of the path; the URI; or the vector in Z85.
        offset: where its entry in the file begins; None if it is in the descriptor.
        size: bytes of the vector itself.
        rows: how many rows are deleted.
    """

    storage: str
    place: str
    offset: int | None
    size: int
    rows: int

    @classmethod
    def from_json(cls, data: Json) -> Descriptor:
        """Create a descriptor from the transaction log.

        Raises:
            TargetDamagedError: it is something else.
        """
        given = JsonObject(data, "A deletion vector of the Delta log", damaged)
        storage = given.text("storageType")
        if storage not in (_IN_TABLE, ANYWHERE, _INLINE):
            raise given.wrong("storageType", f"'{_IN_TABLE}', '{ANYWHERE}' or '{_INLINE}'")
        offset = None if storage == _INLINE else given.integer("offset")
        size, rows = given.integer("sizeInBytes"), given.integer("cardinality")
        return cls(storage, given.text("pathOrInlineDv"), offset, size, rows)

    def to_json(self) -> dict[str, Json]:
        """Return it as the transaction log has it."""
        offset: dict[str, Json] = {} if self.offset is None else {"offset": self.offset}
        return {
            "storageType": self.storage,
            "pathOrInlineDv": self.place,
            **offset,
            "sizeInBytes": self.size,
            "cardinality": self.rows,
        }

    @property
    def identity(self) -> str:
        """What tells two vectors of a file apart (the protocol's ``uniqueId``)."""
        return f"{self.storage}{self.place}" + ("" if self.offset is None else f"@{self.offset}")

    @property
    def path(self) -> str:
        """The path of its file in the table, or the file's URI.

        Raises:
            TargetDamagedError: it doesn't name a file.
        """
        if self.storage == ANYWHERE:
            return self.place
        prefix, text = self.place[:-_UUID_LENGTH], self.place[-_UUID_LENGTH:]
        try:
            number = UUID(bytes=_from_z85(text))
        except ValueError as error:
            raise damaged(f"The deletion vector '{self.place}' of the Delta log names no file") from error
        return f"{prefix}/{_file_name(number)}" if prefix else _file_name(number)


class VectorFile:
    """The file that gets the deletion vectors of one commit.

    Args:
        header: what it begins with.
    """

    def __init__(self, header: bytes = _FILE_VERSION) -> None:
        self._number = uuid4()
        self._header = header
        self._content = bytearray(header)

    @property
    def path(self) -> str:
        """Its path in the table."""
        return _file_name(self._number)

    @property
    def content(self) -> bytes:
        """What is to be written; empty if it has no vector."""
        return bytes(self._content) if len(self._content) > len(self._header) else b""

    def add(self, rows: Rows, earlier: bytes = b"", file: str = "") -> Descriptor:  # noqa: ARG002
        """Add the vector of a data file.

        Args:
            rows: those that get deleted now.
            file: the data file's path, as the table has it.
            earlier: the vector of those that are deleted already. It is cheaper to add to than their numbers.
        """
        bitmap, offset = BitMap64(rows), len(self._content)
        if earlier:
            bitmap |= _bitmap(earlier)
        vector = encoded(bitmap)
        self._content += struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
        return Descriptor(_IN_TABLE, _to_z85(self._number.bytes), offset, len(vector), len(bitmap))


@dataclass(frozen=True)
class Vector:
    """A deletion vector.

    Attributes:
        content: as it is stored.
        rows: the rows that are deleted.
    """

    content: bytes
    rows: Rows

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return len(self.content) + self.rows.nbytes


NO_VECTOR = Vector(b"", np.zeros(0, np.uint64))


def read_vector(descriptor: Descriptor, read: ReadBytes) -> Vector:
    """Read a deletion vector.

    Raises:
        TargetDamagedError: it is damaged, or in a format that the protocol doesn't have.
    """
    if descriptor.storage == _INLINE:
        vector = _from_z85(descriptor.place)[: descriptor.size]
    else:
        path = descriptor.path
        entry = read(path, descriptor.offset or 0, descriptor.size + FRAME_BYTES)
        vector = entry[4:-4]
        framed = len(entry) == descriptor.size + FRAME_BYTES and struct.unpack(">I", entry[:4])[0] == descriptor.size
        if not framed or zlib.crc32(vector) != struct.unpack(">I", entry[-4:])[0]:
            raise damaged(f"The deletion vector at byte {descriptor.offset} of '{path}' has been changed")
    rows = decoded(vector)
    if len(rows) != descriptor.rows:
        raise damaged(f"A deletion vector has {len(rows)} rows where the Delta log says {descriptor.rows}")
    return Vector(vector, rows)


def encoded(bitmap: BitMap64) -> bytes:
    """Return row numbers as a deletion vector."""
    bitmap.run_optimize()
    return _MAGIC + bytes(bitmap.serialize())


def decoded(vector: bytes) -> Rows:
    """Return the row numbers of a deletion vector.

    Raises:
        TargetDamagedError: it is no such vector.
    """
    return np.array(_bitmap(vector).to_array(), dtype=np.uint64)


def _bitmap(vector: bytes) -> BitMap64:
    try:
        if vector[:4] == _MAGIC:
            return BitMap64.deserialize(vector[4:])
        if vector[:4] == _EARLIER_MAGIC:
            return BitMap64(_decoded_earlier(vector))
    except (ValueError, IndexError, struct.error) as error:
        raise damaged("A deletion vector holds no roaring bitmap") from error
    raise damaged(f"A deletion vector begins with the bytes {vector[:4].hex()}, not {_MAGIC.hex()}")


def _decoded_earlier(vector: bytes) -> Rows:
    (count,), at, parts = struct.unpack_from(">I", vector, 4), 8, [np.zeros(0, np.uint64)]
    for high in range(count):
        (size,) = struct.unpack_from(">I", vector, at)
        low = BitMap.deserialize(vector[at + 4 : at + 4 + size]).to_array()
        parts.append(np.array(low, dtype=np.uint64) + np.uint64(high << 32))
        at += 4 + size
    return np.concatenate(parts)


def damaged(what: str) -> TargetDamagedError:
    """Return the error for a table's files that are not what they should be, from a sentence without its full stop."""
    return TargetDamagedError(
        f"{what}.", "Restore the table to an earlier version, or remove it and let the mirror load it again."
    )


def _file_name(number: UUID) -> str:
    return f"deletion_vector_{number}.bin"


def _to_z85(data: bytes) -> str:
    """Return bytes, a multiple of 4, as text (https://rfc.zeromq.org/spec/32/)."""
    return base64.b85encode(data).translate(_TO_Z85).decode("ascii")


def _from_z85(text: str) -> bytes:
    return base64.b85decode(text.encode("ascii").translate(_FROM_Z85))
