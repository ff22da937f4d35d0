r"""The log of a notebook: a file with one committed transaction a line, in JSON.

The lines are numbered from 1, without holes. ``changes`` is a line's last member, and a tab stands before each change.
JSON text has no other tabs (in strings they are ``\t``), so a line can be split into changes without being parsed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

NUMBER = re.compile(rb'\{"number":(\d+),')
NUMBER_BYTES = 40
"""Enough of a line's beginning to hold its number."""
LIST, COMMA, END = b"[\t", b",\t", b"]}\n"


@dataclass(frozen=True)
class Line:
    """A committed transaction.

    Attributes:
        number: from 1.
        micros: when it was committed, microseconds since the epoch.
        tables: the structures of the tables that it changes, by their numbers, as JSON data.
        changes: JSON text, one change a line.
    """

    number: int
    micros: int
    tables: dict[str, Any]
    changes: bytes

    @classmethod
    def parse(cls, line: bytes) -> Line:
        """Return a line of the log, without parsing its changes."""
        head, _, changes = line.removesuffix(END).partition(LIST)
        members = json.loads(head + b"[]}")
        return cls(members["number"], members["micros"], members["tables"], changes.replace(COMMA, b"\n") + b"\n")


def line_of(number: int, micros: int, tables: dict[str, Any], changes: Sequence[dict[str, Any]]) -> bytes:
    """Return a transaction as a line of the log."""
    head = _dumps({"number": number, "micros": micros, "tables": tables, "changes": []}).removesuffix("[]}")
    return head.encode() + LIST + COMMA.join(_dumps(change).encode() for change in changes) + END


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class LogFile:
    """Finds lines by their numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def first(self) -> int | None:
        """Return the number of the oldest line; None if there is none."""
        with self.path.open("rb") as file:
            return _number_at(file, 0)

    def offset_of(self, number: int) -> int:
        """Return where the first line whose number is at least ``number`` begins; the file's end if there is none."""
        with self.path.open("rb") as file:
            return _offset_of(file, number)

    def open_at(self, number: int) -> BinaryIO:
        """Open the file where ``offset_of`` says."""
        file = self.path.open("rb")
        file.seek(_offset_of(file, number))
        return file

    def size(self) -> int:
        """Return the file's size in bytes."""
        return self.path.stat().st_size

    def is_the_same(self, file: BinaryIO) -> bool:
        """Return whether an open file is still the log, which is replaced when old lines are removed."""
        return os.path.samestat(os.fstat(file.fileno()), self.path.stat())


def _offset_of(file: BinaryIO, number: int) -> int:
    # Everything before `low` has smaller numbers, everything from `high` on has not.
    low, high = 0, file.seek(0, os.SEEK_END)
    while low < high:
        middle = (low + high) // 2
        file.seek(max(middle - 1, 0))
        if middle:
            file.readline()
        start = file.tell()
        found = _number_at(file, start) if start < high else None
        if found is not None and found < number:
            file.seek(start)
            file.readline()
            low = file.tell()
        else:
            high = middle
    return low


def _number_at(file: BinaryIO, offset: int) -> int | None:
    file.seek(offset)
    found = NUMBER.match(file.read(NUMBER_BYTES))
    return None if found is None else int(found[1])
