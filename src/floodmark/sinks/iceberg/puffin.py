"""Puffin files with deletion vectors.

Format: the Puffin specification (https://iceberg.apache.org/puffin-spec/), sections "File structure", "Footer" and
"deletion-vector-v1"; each vector is as in Delta's files.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

from floodmark._version import __version__
from floodmark.sinks.delta.format.vectors import ANYWHERE, FRAME_BYTES, Descriptor, Rows, VectorFile

_MAGIC = b"PFA1"
_ROW_POSITION = 2147483645
"""The number of the column of rows' places in their file."""
_UNKNOWN = -1
"""Stands for the snapshot and the sequence number, which are not known before the commit."""


class PuffinFile(VectorFile):
    """The file that gets the deletion vectors of one commit.

    Args:
        folder: where it is in the table's folder, with a slash behind it.
        location: returns what Iceberg calls a file of the table.
    """

    def __init__(self, folder: str, location: Callable[[str], str]) -> None:
        super().__init__(_MAGIC)
        self._folder = folder
        self._location = location
        self._blobs: list[dict[str, object]] = []

    @property
    def path(self) -> str:
        """Its path in the table."""
        return f"{self._folder}{self._number}-deletes.puffin"

    @property
    def content(self) -> bytes:
        """What is to be written; empty if it has no vector."""
        if not self._blobs:
            return b""
        payload = json.dumps(
            {"blobs": self._blobs, "properties": {"created-by": f"Floodmark {__version__}"}}, separators=(",", ":")
        ).encode()
        return super().content + _MAGIC + payload + struct.pack("<i", len(payload)) + bytes(4) + _MAGIC

    def add(self, rows: Rows, earlier: bytes = b"", file: str = "") -> Descriptor:
        """Add the vector of a data file (``VectorFile``)."""
        found = super().add(rows, earlier)
        assert found.offset is not None
        self._blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [_ROW_POSITION],
                "snapshot-id": _UNKNOWN,
                "sequence-number": _UNKNOWN,
                "offset": found.offset,
                "length": found.size + FRAME_BYTES,
                "properties": {"referenced-data-file": self._location(file), "cardinality": str(found.rows)},
            }
        )
        return Descriptor(ANYWHERE, self._location(self.path), found.offset, found.size, found.rows)
