"""Cuts received records into segments. No I/O: what the catalog must answer is yielded as a request.

Source: PostgreSQL documentation, "Logical Replication Message Formats" (Begin, Origin).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from floodmark.capture.log_stream import Cut
from floodmark.capture.segment import SegmentData
from floodmark.connectors.postgres.capture.header_relations import CatalogSteps, CutRecords, HeaderRelations
from floodmark.connectors.postgres.capture.pending_records import PendingRecords
from floodmark.connectors.postgres.capture.receive_buffer import ReceiveBuffer
from floodmark.connectors.postgres.continuity.bookmark import Commit, LastEnd
from floodmark.connectors.postgres.decode.event_order import event_counter
from floodmark.connectors.postgres.decode.segment_header import OpenTransaction, SegmentHeader
from floodmark.connectors.postgres.decode.signal_rows import signals_in
from floodmark.connectors.postgres.decode.tuples import terminated
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import parse_position, position
from floodmark.connectors.postgres.wire.frames import be32, be64
from floodmark.connectors.postgres.wire.messages import (
    BEGIN,
    BEGIN_LSN,
    BEGIN_TIME,
    BEGIN_XID,
    CHANGES,
    ORIGIN,
    ORIGIN_LSN,
    ORIGIN_NAME,
    PAYLOAD,
    PG_EPOCH_US,
)
from floodmark.errors import DecodeError


@dataclass(frozen=True)
class FinishedCut:
    """A segment that was cut.

    Attributes:
        cut: the segment.
        commit: the last transaction that begins in it; None if there is none.
        end: the last end before the position that it reaches.
    """

    cut: Cut
    commit: Commit | None
    end: LastEnd


class Cutter:
    """Cuts what one connection has received.

    Args:
        options: the source's options.
        after: position that the first segment follows.
        buffer: the received bytes.
        pending: the records in them.
        end: the last end before ``after``; None: not known.

    Attributes:
        after: position that the next segment follows.
    """

    def __init__(
        self,
        options: PostgresOptions,
        after: str,
        buffer: ReceiveBuffer,
        pending: PendingRecords,
        end: LastEnd | None = None,
    ) -> None:
        self.after = after
        self._buffer = buffer
        self._pending = pending
        self._relations = HeaderRelations(options)
        self._event_counter = event_counter(options)
        self._transaction: OpenTransaction | None = None
        self._last_commit = None if end is None else end.lsn
        self._last_commit_us = None if end is None else end.micros

    def cut(self, force: bool) -> CatalogSteps[FinishedCut | None]:
        """Return the records up to the last commit as a segment; without a commit, with ``force``, all of them.

        None if there is nothing to cut.
        """
        pending = self._pending
        if pending.cut_count:
            count, size, inside = pending.cut_count, pending.cut_bytes, False
        elif force and pending.count:
            count, size, inside = pending.count, self._buffer.framed, True
        else:
            return None
        payload, starts = self._buffer.data[:size], pending.starts[:count]
        records = CutRecords(payload, starts, payload[starts + PAYLOAD])
        relations = yield from self._relations.entries(records)
        header = SegmentHeader(self._transaction, self._last_commit, self._last_commit_us, relations)
        data = SegmentData(payload, starts.astype(np.uint32), header.to_json())
        end = self._end_inside(data, records) if inside else self._end_at_commit()
        if end is None:
            return None
        upto, commit_us = end
        tables = self._relations.signal_tables
        signals = signals_in(data, self.after, upto, tables) if tables else []
        cut = Cut(data, self.after, upto, count, commit_us / 1e6, signals)
        self.after = upto
        self._buffer.cut(size)
        pending.drop(count, size)
        return FinishedCut(cut, _last_begun(records, upto), LastEnd(upto, self._last_commit, self._last_commit_us))

    def _end_at_commit(self) -> tuple[str, int]:
        """Return position and time of a segment's end after a commit, and remember it for the next header."""
        commit_us = self._pending.cut_commit_us
        self._transaction = None
        self._last_commit = self._pending.cut_lsn
        self._last_commit_us = commit_us or None
        return position(self._pending.cut_lsn), commit_us

    def _end_inside(self, data: SegmentData, records: CutRecords) -> tuple[str, int] | None:
        """Return position and time of a segment's end inside a transaction; None if none of its changes came yet."""
        opened = open_transaction(records, self._transaction)
        if not opened.changes:
            return None  # a position inside a transaction needs a change
        if self._event_counter is not None:
            opened = replace(opened, events=self._event_counter(data))
        self._transaction = opened
        return position(opened.lsn, opened.changes), opened.commit_us


def open_transaction(records: CutRecords, before: OpenTransaction | None) -> OpenTransaction:
    """Return the transaction that is open after records, with those of its changes that lie before their end.

    Args:
        records: the records, which end inside of a transaction.
        before: the transaction that was open before them.

    Raises:
        DecodeError: they are changes outside of a transaction.
    """
    payload, starts, kinds = records.payload, records.starts, records.kinds
    begins = np.flatnonzero(kinds == BEGIN)
    first = int(begins[-1]) if len(begins) else 0
    changes = int(np.isin(kinds[first:], CHANGES).sum())
    if len(begins):
        at = int(starts[first]) + PAYLOAD
        commit_us = be64(payload, at + BEGIN_TIME) + PG_EPOCH_US
        opened = OpenTransaction(be64(payload, at + BEGIN_LSN), commit_us, be32(payload, at + BEGIN_XID), changes)
    elif before is None:
        raise DecodeError("PostgreSQL sent a change outside of a transaction.")
    else:
        opened = replace(before, changes=before.changes + changes)
    origins = starts[first:][kinds[first:] == ORIGIN] + PAYLOAD
    if not len(origins):
        return opened
    names, _ = terminated(payload, origins[:1] + ORIGIN_NAME)
    return replace(opened, origin=(names[0].as_py(), be64(payload, int(origins[0]) + ORIGIN_LSN)))


def _last_begun(records: CutRecords, upto: str) -> Commit | None:
    """Return the last transaction that begins in a segment which ends at ``upto``; None if there is none."""
    begins = np.flatnonzero(records.kinds == BEGIN)
    if not len(begins):
        return None
    at = int(records.starts[begins[-1]]) + PAYLOAD
    lsn, ordinal = parse_position(upto)
    micros = be64(records.payload, at + BEGIN_TIME) + PG_EPOCH_US
    return Commit(be64(records.payload, at + BEGIN_LSN), micros, lsn + (ordinal > 0))
