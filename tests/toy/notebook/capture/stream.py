"""The ``LogStream`` of a notebook: reads the log's file and cuts it into segments, without parsing changes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np

from floodmark.capture.log_stream import Cut
from floodmark.capture.segment import SegmentData
from floodmark.errors import ConnectError
from tests.toy.notebook.continuity import Continuity
from tests.toy.notebook.database.log_file import Line
from tests.toy.notebook.database.notebook import Notebook
from tests.toy.notebook.decode.decoder import signals_in
from tests.toy.notebook.decode.records import starts_of
from tests.toy.notebook.options import NotebookOptions
from tests.toy.notebook.position import after_transaction, parse, position

BURST_BYTES = 64 << 10
POLL_S = 0.005


@dataclass(frozen=True)
class _Part:
    """Changes of a transaction that wait to be cut.

    Attributes:
        line: the transaction; ``changes`` are those that wait.
        done: how many came before.
        ends: whether they are its last.
    """

    line: Line
    done: int
    ends: bool = True

    @property
    def size(self) -> int:
        return len(self.line.changes)

    @property
    def count(self) -> int:
        return self.line.changes.count(b"\n")

    @property
    def after(self) -> str:
        return position(self.line.number, self.done)

    @property
    def upto(self) -> str:
        return after_transaction(self.line.number) if self.ends else position(self.line.number, self.done + self.count)

    def split(self, size: int) -> tuple[_Part, _Part]:
        """Return the first changes, of up to ``size`` bytes but at least one, and the rest."""
        changes = self.line.changes
        at = changes.rfind(b"\n", 0, size) + 1 or changes.index(b"\n") + 1
        first = _Part(replace(self.line, changes=changes[:at]), self.done, self.ends and at == self.size)
        return first, _Part(replace(self.line, changes=changes[at:]), self.done + first.count, self.ends)


class NotebookStream:
    """A ``LogStream``."""

    def __init__(self, options: NotebookOptions, notebook: Notebook, continuity: Continuity) -> None:
        self._options = options
        self._log = notebook.log
        self._continuity = continuity
        self._file: BinaryIO | None = None
        self._waiting: list[_Part] = []
        self._bytes = 0
        self._received = ""

    def open(self, position: str) -> None:
        """Prove that the log has what follows a position, and start to read there."""
        self._continuity.prove(position)
        self._received = position
        self._file = self._opened(position)

    def _opened(self, position: str) -> BinaryIO:
        try:
            return self._log.open_at(parse(position)[0])
        except OSError as exc:
            raise ConnectError(f"The notebook's log cannot be read: {exc}.") from None

    def read(self, timeout: float) -> int:
        """Read lines, waiting up to ``timeout`` seconds for the first one; return how many bytes."""
        if self.full:
            return 0
        deadline = time.monotonic() + timeout
        got = 0
        while got < BURST_BYTES:
            line = self._line()
            if line:
                got += len(line)
                self._take(Line.parse(line))
            elif got or time.monotonic() > deadline:
                break
            else:
                time.sleep(POLL_S)
        return got

    def _line(self) -> bytes:
        """Return the next line; empty if there is none, or it isn't complete."""
        file = self._file
        assert file is not None
        start = file.tell()
        line = file.readline()
        if line.endswith(b"\n"):
            return line
        file.seek(start)
        try:
            replaced = not line and not self._log.is_the_same(file)
        except OSError as exc:
            raise ConnectError(f"The notebook's log cannot be read: {exc}.") from None
        if replaced:
            # Old lines were removed; those that follow are in another file.
            self.close()
            self.open(self._received)
        return b""

    def _take(self, line: Line) -> None:
        part = _Part(line, 0)
        # Only the first line can belong to the transaction that the position lies in.
        number, change = parse(self._received)
        if number == line.number and change:
            part = _skipped(part, change)
        self._received = part.upto
        if part.size:
            self._waiting.append(part)
            self._bytes += part.size

    def tend(self) -> None:
        """Do nothing: a file stays open."""

    @property
    def full(self) -> bool:
        """Whether a segment's worth of records has been received."""
        return self._bytes >= self._options.segment_bytes

    def cut(self, force: bool) -> Cut | None:
        """Cut a segment; inside a transaction if that is larger than a segment."""
        parts: list[_Part] = []
        size = 0
        while self._waiting and size + self._waiting[0].size <= self._options.segment_bytes:
            parts.append(self._waiting.pop(0))
            size += parts[-1].size
        if not parts and self._waiting and force:
            first, rest = self._waiting[0].split(self._options.segment_bytes)
            parts = [first]
            self._waiting[:1] = [rest] if rest.size else []
        if not parts:
            return None
        self._bytes -= sum(part.size for part in parts)
        return self._cut(parts)

    def _cut(self, parts: list[_Part]) -> Cut:
        payload = np.frombuffer(b"".join(part.line.changes for part in parts), np.uint8)
        header = {
            "transactions": [[part.line.number, part.line.micros, part.count, part.done] for part in parts],
            "tables": {number: table for part in parts for number, table in part.line.tables.items()},
        }
        data = SegmentData(payload, starts_of(payload), header)
        after, upto = parts[0].after, parts[-1].upto
        signals = signals_in(data, after, upto, self._options)
        return Cut(data, after, upto, len(data.starts), parts[-1].line.micros / 1e6, signals)

    @property
    def spooled_bytes(self) -> int:
        """Nothing: the log has no undecided transactions."""
        return 0

    @property
    def received(self) -> str:
        """The position that the next cut reaches."""
        return self._received

    @property
    def idle_position(self) -> str | None:
        """The position up to which all has been cut; None if records wait."""
        return None if self._waiting else self._received

    def confirm(self, position: str) -> None:
        """Do nothing: the log is kept however far it was delivered."""
        del position

    def ping(self) -> None:
        """Do nothing: the file's end is seen at once."""

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _skipped(part: _Part, count: int) -> _Part:
    """Return a transaction without its first changes."""
    changes = part.line.changes.split(b"\n", count)[count]
    return _Part(replace(part.line, changes=changes), count)
