"""Delivers the changes of XA transactions with XA COMMIT, and not at all after XA ROLLBACK.

A prepared branch is taken out of the log's records and put into the transaction spool. At XA COMMIT its changes are
inserted between that transaction's GTID event and the statement, as if the log had them there: they get the commit's
time, and offsets from the statement's own on, which no other event of this transaction has. A branch that is larger
than a segment gets segments of its own.

MySQL compresses a branch as it does other transactions; XA COMMIT comes uncompressed. A compressed branch takes that
offset as its payload's, whether it comes as one record or, if it is large, as the events in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from floodmark.capture.spool import Piece, Spooled, TransactionSpool
from floodmark.connectors.mysql.binlog.boundaries import BoundaryFinder
from floodmark.connectors.mysql.binlog.compressed import inflated_bytes
from floodmark.connectors.mysql.binlog.event_types import (
    AT_LOG_POS,
    AT_SIZE,
    AT_TIMESTAMP,
    AT_TYPE,
    CHECKSUM_BYTES,
    PACKET,
    TRANSACTION_PAYLOAD,
)
from floodmark.connectors.mysql.binlog.packets import le_view
from floodmark.connectors.mysql.binlog.records import ORDINARY, Bytes, Indices, Records, join_records
from floodmark.connectors.mysql.binlog.segments import OpenTransaction
from floodmark.connectors.mysql.binlog.transactions import parse_gtid
from floodmark.connectors.mysql.binlog.xa import BranchStep, Step, branch_name, starts_branch
from floodmark.connectors.mysql.position import Position
from floodmark.logger import get_logger

log = get_logger(__name__)

RECEIVING = b"receiving"
"""Placeholder key of the branch that is being received: its name comes at its end."""
_NUMBER_BYTES = 4
_CHECKED, _PAYLOAD = 1, 2
"""Forms of pieces: the events have checksums; they come from a large compressed transaction."""

Search = Callable[[bytes, Position], bool]


@dataclass(frozen=True)
class _Place:
    """Where a branch is committed.

    Attributes:
        file: number of the file.
        checked: whether the events there have checksums.
        at: the offset that the next record gets.
        shown: the offset that change events report.
        stamp: seconds since the epoch, as bytes; empty: the records keep their own times and offsets.
        inner: where the next record begins in a large compressed transaction.
    """

    file: int
    checked: bool
    at: int
    shown: int
    stamp: bytes
    inner: int = 0

    def behind(self, part: Records) -> _Place:
        """Return the place of the record that follows some records."""
        if part.inner[-1] != ORDINARY:
            return replace(self, inner=int(part.inner[-1]))
        # A payload counts with its decompressed size, so that the next record has the same offset in both forms.
        sizes = np.where(part.types == TRANSACTION_PAYLOAD, part.inflated, _sizes(part.buffer, part.starts))
        return replace(self, at=self.at + int(sizes.sum()))

    @property
    def end(self) -> _Place:
        """The place after a large compressed transaction."""
        return replace(self, at=self.at + self.inner, inner=0)


class Delivery:
    """The records of a large branch, a segment's worth at a time.

    Args:
        begin: the GTID event.
        pieces: the branch's pieces.
        end: the statement XA COMMIT; None: the last piece has the end.
        place: where the branch is committed.
        key: the branch, as returned by ``branch_key``.
        upto: position after the transaction.
    """

    def __init__(
        self, begin: Records, pieces: Iterator[Piece], end: Records | None, place: _Place, key: bytes, upto: Position
    ) -> None:
        self.key = key
        self.upto = upto
        self._begin: Records | None = begin
        self._pieces = pieces
        self._end = end
        self._place = place
        self._next = next(pieces, None)

    @property
    def over(self) -> bool:
        """Whether all records were returned."""
        return self._next is None

    def take(self) -> Records:
        """Return the next records."""
        assert self._next is not None
        part = _placed(self._next, self._place)
        self._place = self._place.behind(part)
        parts = [part] if self._begin is None else [self._begin, part]
        self._begin = None
        self._next = next(self._pieces, None)
        if self._next is None and self._end is not None:
            parts.append(_committed(self._end, self._place))
        return join_records(parts)


class Branches:
    """Moves prepared branches from the log's records to the spool, and from there to where they are committed.

    Args:
        spool: keeps them meanwhile.
        segment_bytes: larger branches get segments of their own.
        search: searches the log before a position for a branch that isn't in the spool, and spools it; returns
            whether it was found. None: don't search.
    """

    def __init__(self, spool: TransactionSpool, segment_bytes: int, search: Search | None = None) -> None:
        self.spool = spool
        self._segment_bytes = segment_bytes
        self._search = search
        self.receiving = False

    def abandon(self) -> None:
        """Forget the branch that is being received."""
        self.spool.abandon()
        self.receiving = False

    def receive(self, records: Records, opened: OpenTransaction, place: str, token: str) -> bool:
        """Spool records of an unfinished transaction, if it is a branch; return whether it is.

        Args:
            records: all of the transaction.
            opened: the transaction, as it is after the records.
            place: position of its start.
            token: the GTIDs before it.
        """
        if not self.receiving:
            if not (starts_branch(opened.begin) or parse_gtid(opened.gtid).prepared):
                return False
            self.receiving = True
            first = 1
        else:
            first = 0
        if first < len(records):
            self.spool.append(RECEIVING, place, token, _piece(records.slice(first, len(records))))
        return True

    def keep(self, records: Records, step: BranchStep, place: str, token: str) -> None:
        """Spool the end of a prepared branch, or all of it.

        Args:
            records: the records that hold it.
            step: the branch's step in these records.
            place: position of its start.
            token: the GTIDs before it.
        """
        first = step.first + (not self.receiving)
        # Omit a last record that only prepares the branch; keep it if it commits the branch or holds all of it.
        whole = step.step is Step.ONE_PHASE or records.types[step.last] == TRANSACTION_PAYLOAD
        after = step.last + whole
        if first < after:
            self.spool.append(RECEIVING, place, token, _piece(records.slice(first, after)))
        else:
            self.spool.append(RECEIVING, place, token, Piece(np.empty(0, np.uint8), np.empty(0, np.uint32)))
        self.spool.complete(RECEIVING, step.key, branch_name(step.key))
        self.receiving = False

    def find(self, step: BranchStep, place: Position) -> Spooled | None:
        """Return the branch that a step commits, from the spool or the log; None if its changes aren't found."""
        found = self.spool.get(step.key)
        if found is None and self._search is not None and self._search(step.key, place):
            found = self.spool.get(step.key)
        return found

    def is_large(self, branch: Spooled) -> bool:
        """Return whether a branch gets segments of its own."""
        return branch.size > self._segment_bytes

    def inline(self, records: Records, step: BranchStep, branch: Spooled | None) -> list[Records]:
        """Return the records of a commit with the branch's changes inserted."""
        parts = [records.slice(step.first, step.last)]
        if branch is None:
            return [*parts, records.slice(step.last, step.last + 1)]
        place = _place(records, step)
        for piece in self.spool.pieces(branch):
            if len(piece.starts):
                parts.append(_placed(piece, place))
                place = place.behind(parts[-1])
        return [*parts, _committed(records.slice(step.last, step.last + 1), place)]

    def deliver(self, records: Records, step: BranchStep, branch: Spooled, upto: Position) -> Delivery:
        """Return the delivery of a large branch that a statement commits."""
        begin = records.slice(step.first, step.last)
        end = records.slice(step.last, step.last + 1)
        return Delivery(begin, self._filled(branch), end, _place(records, step), step.key, upto)

    def deliver_one_phase(
        self, records: Records, step: BranchStep, opened: OpenTransaction, upto: Position
    ) -> Delivery:
        """Return the delivery of a large branch that was committed in one phase: its changes stay where they are."""
        branch = self.spool.get(step.key)
        assert branch is not None
        checked = records.checked(step.last)
        event = bytes(PACKET) + opened.gtid + bytes(CHECKSUM_BYTES * checked)
        buffer = np.frombuffer(event, np.uint8)
        file = records.file(step.last)
        starts, types = np.zeros(1, np.int64), buffer[AT_TYPE : AT_TYPE + 1]
        begin = Records(
            buffer,
            starts,
            types,
            np.array([opened.start]),
            np.array([ORDINARY]),
            np.zeros(1, np.int64),
            [(0, file, checked)],
        )
        at = opened.start + int(_sizes(buffer, starts)[0])
        place = _Place(file, checked, at, at, b"")
        return Delivery(begin, self._filled(branch), None, place, step.key, upto)

    def _filled(self, branch: Spooled) -> Iterator[Piece]:
        return (piece for piece in self.spool.pieces(branch) if len(piece.starts))


def _place(records: Records, step: BranchStep) -> _Place:
    at = int(records.offsets[step.last])
    start = int(records.starts[step.last]) + AT_TIMESTAMP
    stamp = records.buffer[start : start + _NUMBER_BYTES].tobytes()
    return _Place(records.file(step.last), records.checked(step.last), at, at, stamp)


def _piece(records: Records) -> Piece:
    """Return records as a piece for the spool; they have one form, since a transaction lies in one file."""
    form = _PAYLOAD if records.inner[0] != ORDINARY else _CHECKED * records.checked(0)
    return Piece(records.buffer.copy(), records.starts.astype(np.uint32), form, int(records.inflated.sum()))


def _placed(piece: Piece, place: _Place) -> Records:
    """Return the records of a branch as if they lay where it is committed."""
    buffer = piece.payload.copy()
    starts = piece.starts.astype(np.int64)
    numbers = np.arange(_NUMBER_BYTES)
    # With an end of 0, offsets are counted from the event before, as in newer versions of MariaDB (``offsets_of``).
    buffer[(starts + AT_LOG_POS)[:, None] + numbers] = 0
    shown = []
    if place.stamp:
        buffer[(starts + AT_TIMESTAMP)[:, None] + numbers] = np.frombuffer(place.stamp, np.uint8)
        shown = [(0, len(starts), place.shown)]
    types = buffer[starts + AT_TYPE]
    sizes = _sizes(buffer, starts)
    ends = np.cumsum(sizes)
    checked = place.checked if piece.form == _PAYLOAD else piece.form == _CHECKED
    if piece.form == _PAYLOAD:
        offsets, inner = np.full(len(starts), place.at), place.inner + ends
    else:
        offsets, inner = place.at + ends - sizes, np.full(len(starts), ORDINARY)
    inflated = inflated_bytes(buffer, starts, types)
    if inflated is None:
        inflated = np.zeros(len(starts), np.int64)
    checksum = CHECKSUM_BYTES * (piece.form == _CHECKED)
    statements = BoundaryFinder().find(buffer, starts, types, checksum).statements
    moves = [(0, place.file, checked)]
    return Records(buffer, starts, types, offsets, inner, inflated, moves, statements, (), shown)


def _committed(end: Records, place: _Place) -> Records:
    """Return the statement XA COMMIT as if it followed the branch's changes."""
    return _placed(_piece(end), place.end)


def _sizes(buffer: Bytes, starts: Indices) -> Indices:
    """Return the sizes of events with their checksums, shape (records,)."""
    return le_view(buffer, "<u4")[starts + AT_SIZE].astype(np.int64)
