"""Writes the watermarks of windows to the signal table, as Debezium 3.6 does."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

from floodmark.config.common import CommonOptions
from floodmark.signals.records import WINDOW_CLOSE, WINDOW_OPEN

C = TypeVar("C")
EXACT = "or set incremental.snapshot.read.points=exact, which writes nothing."
WRITING = "writing a mark to the signal table"


@dataclass(frozen=True)
class Mark:
    """The watermark that opened a window.

    Attributes:
        name: the window's id, from which the ids of its watermarks are derived.
        at: when it was written, as text.
    """

    name: str
    at: str


class Watermarks(ABC, Generic[C]):
    """Writes watermarks to the signal table; a connector implements it for its connections ``C``.

    Attributes:
        table: the signal table, as the options name it.
        what: the beginning of an error message about the table.
        deletes: whether a window is closed by removing the watermark that opened it.
        rights: privileges that the account needs on the table.
    """

    def __init__(self, options: CommonOptions) -> None:
        self.table = options.signal_data_collection[0]
        self.what = f"The signal table '{self.table}', which incremental.snapshot.read.points=watermarks needs,"
        self.deletes = options.incremental_snapshot_watermarking_strategy == "insert_delete"
        self.rights = "INSERT, SELECT, DELETE" if self.deletes else "INSERT"

    def open(self, conn: C) -> Mark:
        """Write the watermark that opens a window."""
        mark = Mark(str(uuid.uuid4()), _now())
        self._insert(conn, f"{mark.name}-open", WINDOW_OPEN, f'{{"openWindowTimestamp": "{mark.at}"}}')
        return mark

    def close(self, conn: C, mark: Mark) -> None:
        """Write the watermark that closes a window, or remove the one that opened it."""
        if self.deletes:
            self._delete(conn, f"{mark.name}-open")
        else:
            text = f'{{"openWindowTimestamp": "{mark.at}", "closeWindowTimestamp": "{_now()}"}}'
            self._insert(conn, f"{mark.name}-close", WINDOW_CLOSE, text)

    @abstractmethod
    def _insert(self, conn: C, name: str, kind: str, data: str) -> None:
        """Insert a row; its first three columns are those of a signal, whatever their names."""

    @abstractmethod
    def _delete(self, conn: C, name: str) -> None:
        """Delete a row."""


def _now() -> str:
    """Return the time as Java's ``Instant`` writes it."""
    seconds, nanos = divmod(time.time_ns(), 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanos:09d}Z"
