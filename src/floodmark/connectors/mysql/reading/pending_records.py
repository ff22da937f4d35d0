"""Records of the binlog that have been received and not yet cut."""

from __future__ import annotations

import numpy as np

from floodmark.connectors.mysql.binlog.queries import Query
from floodmark.connectors.mysql.binlog.records import ORDINARY, Bytes, Indices, Records
from floodmark.connectors.mysql.position import Position


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
        decisions: record and text of statements that end a prepared XA transaction.
    """

    def __init__(self) -> None:
        self.count = 0
        self.cut_count = 0
        self.cut_bytes = 0
        self.cut_place = Position(0, 0, 0)
        self.moves: list[tuple[int, int, bool]] = []
        self.statements: list[tuple[int, Query]] = []
        self.decisions: list[tuple[int, Query]] = []
        self._starts: list[Indices] = []
        self._types: list[Bytes] = []
        self._offsets: list[Indices] = []
        self._inner: list[Indices] = []
        self._inflated: list[Indices] = []

    def add(
        self,
        starts: Indices,
        types: Bytes,
        offsets: Indices,
        inner: Indices | None = None,
        inflated: Indices | None = None,
    ) -> None:
        """Append records.

        Args:
            starts: where they start in the buffer, shape (records,).
            types: of their events, shape (records,).
            offsets: in their file, shape (records,); those of events of a compressed transaction are the payload's.
            inner: where each ends in a compressed transaction, shape (records,); None: they are ordinary ones.
            inflated: bytes that each has more when it is decompressed, shape (records,); None: none is compressed.
        """
        self._starts.append(starts)
        self._types.append(types)
        self._offsets.append(offsets)
        self._inner.append(np.full(len(starts), ORDINARY) if inner is None else inner)
        self._inflated.append(np.zeros(len(starts), np.int64) if inflated is None else inflated)
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

    def inner(self, count: int) -> Indices:
        """Return where the first records end in their compressed transactions, ``ORDINARY`` for others."""
        if len(self._inner) > 1:
            self._inner = [np.concatenate(self._inner)]
        return self._inner[0][:count] if self._inner else np.empty(0, np.int64)

    def inflated(self) -> int:
        """Return how many bytes the records have more when they are decompressed."""
        self._join_inflated()
        return int(self._inflated[0].sum()) if self._inflated else 0

    def records(self, buffer: Bytes, count: int, size: int) -> Records:
        """Return the first records, which take so many bytes of the buffer."""
        self._join_inflated()
        inflated = self._inflated[0][:count] if self._inflated else np.empty(0, np.int64)
        moves = [move for move in self.moves if move[0] < count]
        statements = [one for one in self.statements if one[0] < count]
        decisions = [one for one in self.decisions if one[0] < count]
        return Records(buffer[:size], *self.arrays(count), self.inner(count), inflated, moves, statements, decisions)

    def end(self, count: int, size: int, place: Position) -> None:
        """Say where the last whole transaction ends."""
        self.cut_count, self.cut_bytes, self.cut_place = count, size, place

    def move(self, file: int, checksum: int) -> None:
        """Say that what comes is of another file."""
        if self.moves and self.moves[-1][0] == self.count:
            self.moves.pop()
        self.moves.append((self.count, file, bool(checksum)))

    def last_file(self, count: int) -> tuple[int, int, bool]:
        """Return where among the first records the last one's file begins, its number, and whether it has checksums."""
        return next(move for move in reversed(self.moves) if move[0] < count)

    def drop(self, count: int, size: int) -> None:
        """Take the first records off.

        Args:
            count: how many.
            size: bytes of the buffer that go with them.
        """
        self._keep(slice(count, None))
        self._starts = [self._starts[0] - size]
        self.count -= count
        self.cut_count = max(self.cut_count - count, 0)
        self.cut_bytes = self.cut_bytes - size if self.cut_count else 0
        moves = [(max(record - count, 0), file, checked) for record, file, checked in self.moves]
        begun = sum(record == 0 for record, _, _ in moves)
        self.moves = moves[max(begun - 1, 0) :]
        self.statements = [(record - count, query) for record, query in self.statements if record >= count]
        self.decisions = [(record - count, query) for record, query in self.decisions if record >= count]

    def keep_whole(self) -> None:
        """Drop the records behind the last whole transaction."""
        self._keep(slice(0, self.cut_count))
        self.count = self.cut_count
        self.statements = [one for one in self.statements if one[0] < self.count]
        self.decisions = [one for one in self.decisions if one[0] < self.count]

    def _keep(self, kept: slice) -> None:
        starts, types, offsets = self.arrays()
        inner = self.inner(self.count)
        self._join_inflated()
        self._starts, self._types, self._offsets = [starts[kept]], [types[kept]], [offsets[kept]]
        self._inner, self._inflated = [inner[kept]], [part[kept] for part in self._inflated]

    def _join_inflated(self) -> None:
        if len(self._inflated) > 1:
            self._inflated = [np.concatenate(self._inflated)]
