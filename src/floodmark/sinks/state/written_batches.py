"""Remembers which micro-batches a query has written to its targets, so that it notices a target that lacks them."""

from __future__ import annotations

import json
import time
from typing import NamedTuple

from floodmark.capture.seals import opened, sealed
from floodmark.config.common import CommonOptions
from floodmark.errors import DamagedFileError
from floodmark.sinks.state.remembered import Remembered

_WRITTEN = "written"
"""The folder of ``state.dir`` for them, below the query's."""
_QUERY = ""
"""The name of the file for the query as a whole; no table has it."""
_LAST = 2
"""How many micro-batches of a table are remembered: the last one may be delivered again, and proves nothing then."""

_REMOTE_EVERY_S = 60.0
"""How much time is at least between two times that a table's file is written to an object store."""
_MOST_AGAIN = 1000
"""Of how many micro-batches it is remembered that they came again."""


class _Written(NamedTuple):
    """A micro-batch.

    Attributes:
        line: the number of the line of micro-batches that it belongs to.
        batch: its own number.
        again: how often it had come again when it was written.
    """

    line: int
    batch: int
    again: int


class WrittenBatches:
    """The last micro-batches of each table: a file for each in ``state.dir``.

    What is remembered may be less than what was written, if ``state.dir`` is lost or an older one, but not more. A
    query that doesn't go on where it ended has another checkpoint, with which its tables may be other ones as well:
    then nothing counts of what was remembered before. So each micro-batch belongs to a line of them without a gap.
    Where the last one comes again, that may be for the same reason, and it doesn't count for other tables any more.

    Args:
        options: the source's options.
        query: the query's id.
    """

    def __init__(self, options: CommonOptions, query: str) -> None:
        self._files = Remembered(options, query, _WRITTEN)
        self._known: dict[str, list[_Written]] = {}
        self._line = -1
        self._again: dict[int, int] = {}
        self._added_at: dict[str, float] = {}

    def begin(self, batch: int) -> None:
        """Called before each micro-batch is written.

        Args:
            batch: its number.

        Raises:
            StateDirError: the state directory can't be read or written.
        """
        starts = self._line < 0
        if starts:
            self._start(batch)
        again = [_Written(self._line, number, times) for number, times in self._again.items()]
        self._write(_QUERY, [_Written(self._line, batch, 0), *again], durable=starts)

    def last(self, table: str) -> int | None:
        """Return the last micro-batch that a table must have; None: it isn't known.

        Raises:
            StateDirError: the state directory can't be read.
        """
        return max((one.batch for one in self._of(table)), default=None)

    def add(self, table: str, batch: int) -> None:
        """Remember that a micro-batch is in a table.

        Raises:
            StateDirError: the state directory can't be written.
        """
        earlier = [one for one in self._of(table) if one.batch < batch]
        self._known[table] = [*earlier, _Written(self._line, batch, self._again.get(batch, 0))][-_LAST:]
        now = time.monotonic()
        if self._files.is_local or now - self._added_at.get(table, -_REMOTE_EVERY_S) >= _REMOTE_EVERY_S:
            # What a power failure takes away is only remembered no more.
            self._write(table, self._known[table], durable=False)
            self._added_at[table] = now

    def forget(self, table: str) -> None:
        """Remember nothing of a table any more, which is made again.

        Raises:
            StateDirError: the state directory can't be written.
        """
        self._files.remove(table)
        self._known.pop(table, None)

    def _start(self, batch: int) -> None:
        last, *others = self._stored(_QUERY) or [_Written(-1, -1, 0)]
        if last.line >= 0 and batch in (last.batch, last.batch + 1) and len(others) < _MOST_AGAIN:
            self._line = last.line
            self._again = {one.batch: one.again for one in others}
            if batch == last.batch:
                self._again[batch] = self._again.get(batch, 0) + 1
        else:
            self._line = time.time_ns()

    def _of(self, table: str) -> list[_Written]:
        if table not in self._known:
            found = self._stored(table)
            self._known[table] = [
                one for one in found if one.line == self._line and one.again == self._again.get(one.batch, 0)
            ]
        return self._known[table]

    def _stored(self, name: str) -> list[_Written]:
        """Return the content of a file; nothing of one that is damaged, by a power failure or otherwise."""
        content = self._files.read(name)
        if content is None:
            return []
        try:
            return [_Written(*map(int, one)) for one in json.loads(opened(name, content))]
        except (DamagedFileError, ValueError, TypeError):
            return []

    def _write(self, name: str, content: list[_Written], durable: bool) -> None:
        self._files.write(name, sealed(name, json.dumps(content).encode() + b"\n"), durable)
