"""Records of the binlog that have been received and not yet cut."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.mysql.log.event_types import CHECKSUM_BYTES
from floodmark.connectors.mysql.log.queries import Query
from floodmark.connectors.mysql.position import Position

Bytes = NDArray[np.uint8]
Indices = NDArray[np.int64]


class Waiting:
    """Records that wait to be cut, and where the last whole transaction among them ends.

    Attributes:
        count: how many there are.
        cut_count: how many of them end with a transaction; 0 if none does.
        cut_bytes: bytes of the buffer up to there.
        cut_place: everything before it is done then.
        moves: record that begins a file, the file's number, and whether its events have checksums. The first one
            holds for the first record.
        statements: record and text of statements that may change tables.
    """

    def __init__(self) -> None:
        self.count = 0
        self.cut_count = 0
        self.cut_bytes = 0
        self.cut_place = Position(0, 0, 0)
        self.moves: list[tuple[int, int, bool]] = []
        self.statements: list[tuple[int, Query]] = []
        self._starts: list[Indices] = []
        self._types: list[Bytes] = []
        self._offsets: list[Indices] = []

    def add(self, starts: Indices, types: Bytes, offsets: Indices) -> None:
        """Append records.

        Args:
            starts: where they start in the buffer, shape (records,).
            types: of their events, shape (records,).
            offsets: in their file, shape (records,).
        """
        self._starts.append(starts)
        self._types.append(types)
        self._offsets.append(offsets)
        self.count += len(starts)

    def arrays(self, count: int | None = None) -> tuple[Indices, Bytes, Indices]:
        """Return starts, types and offsets of the first records, or of all."""
        if not self._starts:
            return np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.int64)
        if len(self._starts) > 1:
            self._starts = [np.concatenate(self._starts)]
            self._types = [np.concatenate(self._types)]
            self._offsets = [np.concatenate(self._offsets)]
        return self._starts[0][:count], self._types[0][:count], self._offsets[0][:count]

    def end(self, count: int, size: int, place: Position) -> None:
        """Say where the last whole transaction ends."""
        self.cut_count, self.cut_bytes, self.cut_place = count, size, place

    def move(self, file: int, checksum: int) -> None:
        """Say that what comes is of another file."""
        if self.moves and self.moves[-1][0] == self.count:
            self.moves.pop()
        self.moves.append((self.count, file, bool(checksum)))

    def checksums(self, count: int) -> Indices:
        """Return the sizes of the checksums of the first records, shape (count,)."""
        sizes = np.empty(count, np.int64)
        for record, _, checked in self.moves:
            sizes[record:] = CHECKSUM_BYTES * checked
        return sizes

    def file(self, record: int) -> int:
        """Return the number of a record's file."""
        return next(file for at, file, _ in reversed(self.moves) if at <= record)

    def in_file(self, file: int) -> int:
        """Return how many of the first records are of a file."""
        others = [at for at, number, _ in self.moves if number != file]
        return min(others, default=self.count)

    def drop(self, count: int, size: int) -> None:
        """Take the first records off.

        Args:
            count: how many.
            size: bytes of the buffer that go with them.
        """
        starts, types, offsets = self.arrays()
        left = slice(count, None)
        self._starts, self._types, self._offsets = [starts[left] - size], [types[left]], [offsets[left]]
        self.count -= count
        self.cut_count = max(self.cut_count - count, 0)
        self.cut_bytes = self.cut_bytes - size if self.cut_count else 0
        moves = [(max(record - count, 0), file, checked) for record, file, checked in self.moves]
        begun = sum(record == 0 for record, _, _ in moves)
        self.moves = moves[max(begun - 1, 0) :]
        self.statements = [(record - count, query) for record, query in self.statements if record >= count]

    def keep_whole(self) -> None:
        """Drop the records behind the last whole transaction."""
        starts, types, offsets = self.arrays()
        kept = slice(0, self.cut_count)
        self._starts, self._types, self._offsets = [starts[kept]], [types[kept]], [offsets[kept]]
        self.count = self.cut_count
        self.statements = [one for one in self.statements if one[0] < self.count]
