"""Debezium's schema history in a file: ``FileSchemaHistory``, a JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from floodmark.debezium.kept_file import KeptFile
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


class FileHistory(KeptFile):
    """A ``HistoryStore`` in a file."""

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
        return self.replace(lines)

    def _record(self, line: bytes, number: int) -> Mapping[str, Json]:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, Mapping) or not found.keys() >= RECORD_MEMBERS:
            raise OffsetError(f"Line {number} of {self.place} is no record of Debezium's schema history.", HISTORY_CURE)
        return found
