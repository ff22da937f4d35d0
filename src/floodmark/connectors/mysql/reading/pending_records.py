"""Holds binlog records that have been received but not yet cut into segments."""

from __future__ import annotations

import numpy as np

from floodmark.connectors.mysql.binlog.queries import Query
from floodmark.connectors.mysql.binlog.records import ORDINARY, Bytes, Indices, Records
from floodmark.connectors.mysql.position import Position


class PendingRecords:
    """Records that wait to be cut, and where the last complete transaction among them ends.

    Attributes:
        count: how many records there are.
        cut_count: how many of them there are up to the last transaction end; 0 if there is none.
        cut_bytes: bytes of the buffer up to there.
        cut_place: position of that end.
        moves: for each file, its first record, its number, and whether its events have checksums. The first entry
            applies from the first record on.
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
            types: their event types, shape (records,).
            offsets: in their file, shape (records,); events of a large compressed transaction have the payload's.
            inner: where each ends in its large compressed transaction, shape (records,); None: all are ordinary.
            inflated: decompressed bytes of each compressed record, shape (records,); None: none is compressed.
        """
        self._starts.append(starts)
        self._types.append(types)
        self._offsets.append(offsets)
        self._inner.append(np.full(len(starts), ORDINARY) if inner is None else inner)
        self._inflated.append(np.zeros(len(starts), np.int64) if inflated is None else inflated)
        self.count += len(starts)

    def arrays(self, count: int | None = None) -> tuple[Indices, Bytes, Indices]:
        """Return starts, types and offsets of the first ``count`` records, or of all."""
        if not self._starts:
            return np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.int64)
        if len(self._starts) > 1:
            self._starts = [np.concatenate(self._starts)]
            self._types = [np.concatenate(self._types)]
            self._offsets = [np.concatenate(self._offsets)]
        return self._starts[0][:count], self._types[0][:count], self._offsets[0][:count]

    def inner(self, count: int) -> Indices:
        """Return where the first records end in their large compressed transactions, ``ORDINARY`` for others."""
        if len(self._inner) > 1:
            self._inner = [np.concatenate(self._inner)]
        return self._inner[0][:count] if self._inner else np.empty(0, np.int64)

    def inflated(self) -> int:
        """Return the total decompressed size of the compressed records."""
        self._join_inflated()
        return int(self._inflated[0].sum()) if self._inflated else 0

    def records(self, buffer: Bytes, count: int, size: int) -> Records:
        """Return the first ``count`` records, which take ``size`` bytes of the buffer."""
        self._join_inflated()
        inflated = self._inflated[0][:count] if self._inflated else np.empty(0, np.int64)
        moves = [move for move in self.moves if move[0] < count]
        statements = [one for one in self.statements if one[0] < count]
        decisions = [one for one in self.decisions if one[0] < count]
        return Records(buffer[:size], *self.arrays(count), self.inner(count), inflated, moves, statements, decisions)

    def end(self, count: int, size: int, place: Position) -> None:
        """Record where the last complete transaction ends."""
        self.cut_count, self.cut_bytes, self.cut_place = count, size, place

    def move(self, file: int, checksum: int) -> None:
        """Record that the records added next are of another file."""
        if self.moves and self.moves[-1][0] == self.count:
            self.moves.pop()
        self.moves.append((self.count, file, bool(checksum)))

    def last_file(self, count: int) -> tuple[int, int, bool]:
        """Return the entry in ``moves`` of the last of the first ``count`` records."""
        return next(move for move in reversed(self.moves) if move[0] < count)

    def drop(self, count: int, size: int) -> None:
        """Remove the first records.

        Args:
            count: how many.
            size: bytes of the buffer that are removed with them.
        """
        self._keep(slice(count, None))
        self._starts = [self._starts[0] - size]
        self.count -= count
        self.cut_count = max(self.cut_count - count, 0)
        self.cut_bytes = self.cut_bytes - size if self.cut_count else 0
        # The files that began in the removed records are all at 0 now; only the last of them applies.
        moves = [(max(record - count, 0), file, checked) for record, file, checked in self.moves]
        begun = sum(record == 0 for record, _, _ in moves)
        self.moves = moves[max(begun - 1, 0) :]
        self.statements = [(record - count, query) for record, query in self.statements if record >= count]
        self.decisions = [(record - count, query) for record, query in self.decisions if record >= count]

    def keep_whole(self) -> None:
        """Remove the records after the last complete transaction."""
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
