"""Debezium's offsets in a file: Kafka Connect's ``FileOffsetBackingStore``."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from pyarrow import fs

from floodmark.capture.files import write_durably
from floodmark.debezium.java_objects import JavaDataError, read_bytes_map, write_bytes_map
from floodmark.debezium.offsets import STORE_CURE
from floodmark.errors import OffsetError

MAX_BYTES = 64 << 20
"""A connector's offset has some hundred bytes, and some thousand per incremental snapshot."""


class FileOffsets:
    """An ``OffsetStore`` in the file that ``offset.storage.file.filename`` names.

    Args:
        path: the file.
        stamp: what the name of a copy ends with.
    """

    def __init__(self, path: Path, stamp: str = "") -> None:
        self._path = path
        self._stamp = stamp

    @property
    def place(self) -> str:
        """Names the file."""
        return f"the file {self._path}"

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
        copy = ""
        try:
            if self._path.exists():
                copy = f"{self._path}.backup-{self._stamp}"
                shutil.copy2(self._path, copy)
            write_durably(fs.LocalFileSystem(), os.path.abspath(self._path), [write_bytes_map(found.items())])
            if copy:
                os.chmod(self._path, stat.S_IMODE(os.stat(copy).st_mode))
        except OSError as exc:
            raise OffsetError(f"Cannot write {self.place}: {exc}.", "Check its directory's permissions.") from None
        return copy
