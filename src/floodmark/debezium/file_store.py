"""Debezium's offsets in a file: Kafka Connect's ``FileOffsetBackingStore``."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.debezium.java_objects import JavaDataError, read_bytes_map, write_bytes_map
from floodmark.debezium.kept_file import KeptFile
from floodmark.debezium.offsets import STORE_CURE
from floodmark.errors import OffsetError

MAX_BYTES = 64 << 20
"""A connector's offset has some hundred bytes, and some thousand per incremental snapshot."""


class FileOffsets(KeptFile):
    """An ``OffsetStore`` in the file that ``offset.storage.file.filename`` names."""

    def read(self) -> Mapping[bytes, bytes | None]:
        """Return all values by their keys."""
        try:
            size = self._path.stat().st_size
            data = self._path.read_bytes() if size <= MAX_BYTES else b""
        except OSError as exc:
            raise OffsetError(f"Cannot read {self.place}: {exc.strerror}.", STORE_CURE) from None
        if size > MAX_BYTES:
            raise OffsetError(f"Cannot use {self.place}: it has {size} bytes, more than offsets need.", STORE_CURE)
        if not data:
            return {}  # Kafka Connect makes an empty file, and fills it at the first flush
        try:
            found = read_bytes_map(data)
        except JavaDataError as exc:
            raise OffsetError(
                f"{self.place.capitalize()} holds no offsets of Kafka Connect: {exc}.", STORE_CURE
            ) from None
        return {key: value for key, value in found.items() if key is not None}

    def write(self, key: bytes, value: bytes) -> str:
        """Set one value; the former file is copied beside it, and the new one has its mode."""
        found = dict(self.read()) if self._path.exists() else {}
        found[key] = value
        return self.replace([write_bytes_map(found.items())])
