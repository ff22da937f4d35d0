"""Debezium's schema history in a file: ``FileSchemaHistory``, a JSON object a line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pyarrow import fs

from floodmark.capture.files import write_durably
from floodmark.errors import OffsetError
from floodmark.json_data import Json

HISTORY_CURE = "Give the file that schema.history.internal.file.filename of the connector names, after it was stopped."


RECORD_MEMBERS = {"source", "position"}
"""The members that each record has."""


class HistoryStore(Protocol):
    """Where a connector keeps its schema history."""

    @property
    def place(self) -> str:
        """Names it in texts."""

    def read(self) -> Iterator[Mapping[str, Json]]:
        """Yield the records, the oldest first.

        Raises:
            OffsetError: it can't be read, or holds something else.
        """

    def write(self, records: Sequence[Mapping[str, Json]]) -> str:
        """Write records that hold all structures; return where the former ones were copied to, if they were replaced.

        Raises:
            OffsetError: it can't be written.
        """


class FileHistory:
    """A ``HistoryStore`` in a file.

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

    def read(self) -> Iterator[Mapping[str, Json]]:
        """Yield the records, the oldest first."""
        try:
            with self._path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    if line.strip():
                        yield self._record(line, number)
        except OSError as exc:
            raise OffsetError(f"Cannot read {self.place}: {exc.strerror}.", HISTORY_CURE) from None

    def write(self, records: Sequence[Mapping[str, Json]]) -> str:
        """Replace the records, and return where the former file was copied to; empty if there was none."""
        lines = [json.dumps(one, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" for one in records]
        copy = ""
        try:
            if self._path.exists():
                copy = f"{self._path}.backup-{self._stamp}"
                shutil.copy2(self._path, copy)
            write_durably(fs.LocalFileSystem(), str(self._path.absolute()), lines)
        except OSError as exc:
            raise OffsetError(f"Cannot write {self.place}: {exc}.", "Check its directory's permissions.") from None
        return copy

    def _record(self, line: bytes, number: int) -> Mapping[str, Json]:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, Mapping) or not found.keys() >= RECORD_MEMBERS:
            raise OffsetError(f"Line {number} of {self.place} is no record of Debezium's schema history.", HISTORY_CURE)
        return found
