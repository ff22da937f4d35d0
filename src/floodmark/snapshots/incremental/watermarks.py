"""Marks of windows in the signal table, as Debezium 3.6 writes them."""

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
    """An open window's mark.

    Attributes:
        name: the window's id, of which the marks' ids are made.
        at: when it was written, as text.
    """

    name: str
    at: str


class Marks(ABC, Generic[C]):
    """Writes marks to the signal table; a connector says how, over its connections ``C``.

    Attributes:
        table: the signal table, as the options name it.
        what: the same for the beginning of an error.
        deletes: whether a window is closed by removing the mark that opened it.
        rights: which the account needs on the table.
    """

    def __init__(self, options: CommonOptions) -> None:
        self.table = options.signal_data_collection[0]
        self.what = f"The signal table '{self.table}', which incremental.snapshot.read.points=watermarks needs,"
        self.deletes = options.incremental_snapshot_watermarking_strategy == "insert_delete"
        self.rights = "INSERT, SELECT, DELETE" if self.deletes else "INSERT"

    def open(self, conn: C) -> Mark:
        """Write the mark that opens a window."""
        mark = Mark(str(uuid.uuid4()), _now())
        self._insert(conn, f"{mark.name}-open", WINDOW_OPEN, f'{{"openWindowTimestamp": "{mark.at}"}}')
        return mark

    def close(self, conn: C, mark: Mark) -> None:
        """Write the mark that closes a window, or remove the one that opened it."""
        if self.deletes:
            self._delete(conn, f"{mark.name}-open")
        else:
            text = f'{{"openWindowTimestamp": "{mark.at}", "closeWindowTimestamp": "{_now()}"}}'
            self._insert(conn, f"{mark.name}-close", WINDOW_CLOSE, text)

    @abstractmethod
    def _insert(self, conn: C, name: str, kind: str, data: str) -> None:
        """Write a row; whatever they are called, the first three columns are those of a signal."""

    @abstractmethod
    def _delete(self, conn: C, name: str) -> None:
        """Remove a row."""


def _now() -> str:
    """Return the time as Java's ``Instant`` writes it."""
    seconds, nanos = divmod(time.time_ns(), 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanos:09d}Z"
