"""Consecutive binlog records that become a segment, with their types, offsets and statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.mysql.binlog.event_types import CHECKSUM_BYTES, PACKET
from floodmark.connectors.mysql.binlog.queries import Query
from floodmark.connectors.mysql.binlog.segments import event_at
from floodmark.connectors.mysql.position import ALL_ROWS, Position, within_payload

Bytes = NDArray[np.uint8]
Indices = NDArray[np.int64]
ORDINARY = -1
"""Value of ``Records.inner`` for events that don't come from a large compressed transaction."""


@dataclass(frozen=True)
class Records:
    """Records in the log's order.

    Attributes:
        buffer: shape (bytes,).
        starts: where they start in the buffer, shape (records,).
        types: event types, shape (records,).
        offsets: offsets in their file, shape (records,); events of a large compressed transaction have the payload's.
        inner: where each ends in its large compressed transaction, ``ORDINARY`` for others, shape (records,). There
            are no packet headers between such events, so the start of one lies in the record before.
        inflated: decompressed bytes of each compressed record, 0 for others, shape (records,).
        moves: for each run of consecutive offsets, its first record, the number of its file, and whether its events
            have checksums; the first run starts at the first record.
        statements: record and text of statements that may change tables.
        decisions: record and text of statements that end a prepared XA transaction.
        shown: first record, record after the last, and the offset that change events report for these records: where
            an XA transaction was committed, since its records lie elsewhere.
    """

    buffer: Bytes
    starts: Indices
    types: Bytes
    offsets: Indices
    inner: Indices
    inflated: Indices
    moves: Sequence[tuple[int, int, bool]]
    statements: Sequence[tuple[int, Query]] = ()
    decisions: Sequence[tuple[int, Query]] = ()
    shown: Sequence[tuple[int, int, int]] = field(default=())

    def __len__(self) -> int:
        return len(self.starts)

    def checksums(self) -> Indices:
        """Return the sizes of the records' checksums, shape (records,)."""
        sizes = np.empty(len(self), np.int64)
        for record, _, checked in self.moves:
            sizes[record:] = CHECKSUM_BYTES * checked
        sizes[self.inner != ORDINARY] = 0
        return sizes

    def ends(self) -> tuple[Indices, Indices]:
        """Return the positions after the records: the events and the rows in them, shape (records,)."""
        return within_payload(self.offsets, np.where(self.inner == ORDINARY, ALL_ROWS, self.inner))

    def done(self, place: Position) -> int:
        """Return how many leading records a position covers; the records and the position are of one transaction."""
        events, rows = self.ends()
        return int(np.count_nonzero((events < place.event) | ((events == place.event) & (rows <= place.row))))

    def file(self, record: int) -> int:
        """Return the number of a record's file."""
        return next(file for at, file, _ in reversed(self.moves) if at <= record)

    def event(self, record: int) -> bytes:
        """Return the event of a record, without checksum."""
        checked = self.inner[record] == ORDINARY and self.checked(record)
        return event_at(self.buffer, int(self.starts[record]), CHECKSUM_BYTES * checked)

    def checked(self, record: int) -> bool:
        """Return whether ordinary events have checksums in the run of a record."""
        return next(checked for at, _, checked in reversed(self.moves) if at <= record)

    def before(self, file: int, offset: int) -> int:
        """Return how many leading records lie before an offset of a file."""
        ends = [*(at for at, _, _ in self.moves[1:]), len(self)]
        count = 0
        for (at, number, _), end in zip(self.moves, ends, strict=True):
            if number > file:
                break
            count = end if number < file else at + int(np.searchsorted(self.offsets[at:end], offset))
        return count

    def slice(self, first: int, after: int) -> Records:
        """Return the records from ``first`` up to and excluding ``after``; at least one."""
        begin = int(self.starts[first])
        end = len(self.buffer)
        if after < len(self):
            # The start of a record from a compressed transaction lies in the record before, which must stay whole.
            end = int(self.starts[after]) + PACKET * bool(self.inner[after] != ORDINARY)
        # All runs that begin up to ``first`` are at 0 now; only the last of them applies.
        moves = [(max(at - first, 0), file, checked) for at, file, checked in self.moves if at < after]
        begun = sum(at == 0 for at, _, _ in moves)
        return Records(
            self.buffer[begin:end],
            self.starts[first:after] - begin,
            self.types[first:after],
            self.offsets[first:after],
            self.inner[first:after],
            self.inflated[first:after],
            moves[begun - 1 :],
            [(at - first, query) for at, query in self.statements if first <= at < after],
            [(at - first, query) for at, query in self.decisions if first <= at < after],
            [
                (max(low, first) - first, min(high, after) - first, offset)
                for low, high, offset in self.shown
                if low < after and high > first
            ],
        )


def join_records(parts: Sequence[Records]) -> Records:
    """Concatenate records; each part begins a run of offsets."""
    counts = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    sizes = np.cumsum([0, *(len(part.buffer) for part in parts)]).tolist()
    together = list(zip(counts, parts, strict=False))
    return Records(
        np.concatenate([part.buffer for part in parts]),
        np.concatenate([part.starts + size for part, size in zip(parts, sizes, strict=False)]),
        np.concatenate([part.types for part in parts]),
        np.concatenate([part.offsets for part in parts]),
        np.concatenate([part.inner for part in parts]),
        np.concatenate([part.inflated for part in parts]),
        [(base + at, file, checked) for base, part in together for at, file, checked in part.moves],
        [(base + at, query) for base, part in together for at, query in part.statements],
        [(base + at, query) for base, part in together for at, query in part.decisions],
        [(base + low, base + high, offset) for base, part in together for low, high, offset in part.shown],
    )
