"""Tracks the records that have been received but not yet cut into segments. No I/O.

Source: PostgreSQL documentation, "Streaming Replication Protocol" (Primary keepalive message) and "Logical Replication
Message Formats" (Begin, Commit, Message).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from floodmark.connectors.postgres.capture.receive_buffer import Frames
from floodmark.connectors.postgres.decode.records import outside
from floodmark.connectors.postgres.wire.frames import Bytes, Positions, be64, be_view, frame_end
from floodmark.connectors.postgres.wire.messages import (
    BEGIN,
    BEGIN_LSN,
    BEGIN_XID,
    COMMIT,
    COMMIT_END,
    COMMIT_TIME,
    KEEPALIVE_END,
    KEEPALIVE_REPLY,
    MESSAGE_LSN,
    PAYLOAD,
    PG_EPOCH_US,
)


@dataclass(frozen=True)
class Arrived:
    """What came with some frames.

    Attributes:
        lsn: the LSNs of the commit records of the transactions that began, shape (transactions,).
        xid: their numbers, shape (transactions,).
        reply: whether the server wants a status update.
    """

    lsn: Positions
    xid: Positions
    reply: bool


class PendingRecords:
    """Records that wait to be cut, and where the last complete transaction among them ends.

    Args:
        received: LSN up to which the log was received before.

    Attributes:
        count: how many records there are.
        cut_count: how many of them there are up to the last transaction end; 0 if there is none.
        cut_bytes: bytes of the buffer up to there.
        cut_lsn: LSN of that end.
        cut_commit_us: when the last transaction was committed, microseconds since the Unix epoch; 0 before the first.
        received: LSN up to which everything that the server has for this source was received.
        in_transaction: whether the last record belongs to an unfinished transaction.
    """

    def __init__(self, received: int) -> None:
        self.count = 0
        self.cut_count = 0
        self.cut_bytes = 0
        self.cut_lsn = 0
        self.cut_commit_us = 0
        self.received = received
        self.in_transaction = False
        self._starts: list[Positions] = []

    @property
    def starts(self) -> Positions:
        """Where the records start in the buffer, shape (records,)."""
        return np.concatenate(self._starts)

    def add(self, data: Bytes, frames: Frames) -> Arrived:
        """Append the records among frames.

        Args:
            data: the buffer that the frames lie in, shape (bytes,).
            frames: those that follow the last ones.
        """
        records, keepalives = frames.records, frames.keepalives
        none = np.empty(0, np.int64)
        lsn, xid = self._add_records(data, records) if len(records) else (none, none)
        if not len(keepalives):
            return Arrived(lsn, xid, False)
        last = int(keepalives[-1])
        # Between the records of a transaction, or before some, a keepalive's LSN says nothing about what was received.
        if not self.in_transaction and (not len(records) or last > records[-1]):
            self.received = max(self.received, be64(data, last + KEEPALIVE_END))
        return Arrived(lsn, xid, bool(data[last + KEEPALIVE_REPLY]))

    def _add_records(self, data: Bytes, records: Positions) -> tuple[Positions, Positions]:
        """Append records; return the commit LSNs and the numbers of the transactions that begin in them."""
        kinds = data[records + PAYLOAD]
        alone = outside(data, records, kinds)
        commits = np.flatnonzero(kinds == COMMIT)
        ends = np.flatnonzero((kinds == COMMIT) | alone)
        begins = np.flatnonzero(kinds == BEGIN)
        if len(commits):
            self.cut_commit_us = be64(data, int(records[commits[-1]]) + PAYLOAD + COMMIT_TIME) + PG_EPOCH_US
        if len(ends):
            last = int(ends[-1])
            at = int(records[last])
            self.cut_count = self.count + last + 1
            self.cut_bytes = frame_end(data, at)
            # The end of the record: a message's LSN, or the end LSN of a Commit.
            self.cut_lsn = be64(data, at + PAYLOAD + (MESSAGE_LSN if alone[last] else COMMIT_END))
            self.received = max(self.received, self.cut_lsn)
        if len(begins) or len(commits):
            self.in_transaction = bool(len(begins) and (not len(commits) or begins[-1] > commits[-1]))
        self._starts.append(records)
        self.count += len(records)
        messages = records[begins] + PAYLOAD
        lsn = be_view(data, ">i8")[messages + BEGIN_LSN].astype(np.int64)
        return lsn, be_view(data, ">u4")[messages + BEGIN_XID].astype(np.int64)

    def drop(self, count: int, size: int) -> None:
        """Remove the first records.

        Args:
            count: how many; as many as there are up to the last transaction end, or all if there is none.
            size: bytes of the buffer that are removed with them.
        """
        rest = self.starts[count:] - size
        self._starts = [rest] if len(rest) else []
        self.count = len(rest)
        self.cut_count = self.cut_bytes = 0
