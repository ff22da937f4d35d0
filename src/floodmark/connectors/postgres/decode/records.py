"""Finds the changes in a segment, with their kinds, transactions and ordinals; all vectorised.

Source: PostgreSQL documentation, "Logical Replication Message Formats".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.changes.layout_groups import TableNames
from floodmark.connectors.postgres.decode.record_checks import check_order, record_kinds
from floodmark.connectors.postgres.decode.relation import Relation
from floodmark.connectors.postgres.decode.segment_header import (
    UNREADABLE,
    OpenTransaction,
    RelationEntry,
    SegmentHeader,
    unreadable,
)
from floodmark.connectors.postgres.decode.tuples import terminated
from floodmark.connectors.postgres.position import parse_position, position
from floodmark.connectors.postgres.source_block import NO_XID, Transactions
from floodmark.connectors.postgres.wire.frames import be32, be_view, frame_end, frame_ends
from floodmark.connectors.postgres.wire.messages import (
    BEGIN,
    BEGIN_LSN,
    BEGIN_TIME,
    BEGIN_XID,
    CHANGE_OID,
    CHANGES,
    COMMIT,
    COMMIT_END,
    DELETE,
    IN_TRANSACTION,
    INSERT,
    MESSAGE,
    MESSAGE_FLAGS,
    MESSAGE_LSN,
    ORIGIN,
    ORIGIN_LSN,
    ORIGIN_NAME,
    PAYLOAD,
    PG_EPOCH_US,
    RELATION,
    SENT,
    TRUNCATE,
    TRUNCATE_COUNT,
    TRUNCATE_OIDS,
    UPDATE,
    WAL_LSN,
)
from floodmark.errors import DecodeError
from floodmark.events.json_text import Text

_COUNTED = np.zeros(256, bool)
_COUNTED[list(CHANGES)] = True


@dataclass
class Changes:
    """The changes of a segment that lie in a range of positions.

    Attributes:
        payload: the segment's bytes.
        at: the offset of each message's type byte, ascending, shape (changes,).
        kind: the type bytes, shape (changes,).
        lsn: shape (changes,).
        transaction: index into ``transactions``, shape (changes,).
        ordinal: number within the transaction, from 1, shape (changes,).
        relation: index into ``relations``, -1 for truncates and logical decoding messages, shape (changes,).
        opened: the transaction that is open at the segment's start; None if there is none.
        relations: the relation versions.
        from_record: the record from which each is in force; -1 for those from before the segment.
        record: each change's record number in the segment, shape (changes,).
    """

    payload: NDArray[np.uint8]
    at: NDArray[np.int64]
    kind: NDArray[np.uint8]
    lsn: NDArray[np.int64]
    transaction: NDArray[np.int64]
    ordinal: NDArray[np.int64]
    relation: NDArray[np.int64]
    record: NDArray[np.int64]
    transactions: Transactions
    opened: OpenTransaction | None
    relations: list[Relation]
    from_record: list[int]

    def __len__(self) -> int:
        return len(self.at)

    @property
    def order(self) -> NDArray[np.int64]:
        """Ascending numbers of the changes, shape (changes,)."""
        return self.record

    def select(self, index: NDArray[np.int64] | slice) -> Changes:
        """Return some of the changes."""
        return Changes(
            self.payload,
            self.at[index],
            self.kind[index],
            self.lsn[index],
            self.transaction[index],
            self.ordinal[index],
            self.relation[index],
            self.record[index],
            self.transactions,
            self.opened,
            self.relations,
            self.from_record,
        )

    @property
    def ends(self) -> NDArray[np.int64]:
        """Where each message ends, shape (changes,)."""
        return frame_ends(self.payload, self.at - PAYLOAD)

    def place(self, index: int) -> str:
        """Return the position of one change."""
        return position(int(self.transactions.lsn[self.transaction[index]]), int(self.ordinal[index]))

    def columns(self, sub: int, names: TableNames) -> dict[str, Text]:
        """Return the columns of the changes' events for their position in the log, and their table."""
        placed = self.transactions.columns(self.transaction, self.ordinal, sub)
        return {**placed, "topic": names.topic, "schema": names.schema, "table": names.table}

    def raw(self, index: int) -> bytes:
        """Return the bytes of one change's message."""
        at = self.at[index : index + 1]
        return bytes(self.payload[int(at[0]) : int(frame_ends(self.payload, at - PAYLOAD)[0])])

    def relation_at(self, oid: int, record: int) -> Relation:
        """Return the version of a table that is in force at a record."""
        versions = [
            relation
            for relation, first in zip(self.relations, self.from_record, strict=True)
            if relation.oid == oid and first < record
        ]
        if not versions:
            raise DecodeError(f"A change belongs to relation {oid}, which was not announced.")
        return versions[-1]


def find_changes(data: SegmentData, after: str, upto: str) -> Changes:
    """Return the changes of a segment in ``(after, upto]``.

    Raises:
        DecodeError: a record violates the protocol.
    """
    return within(all_changes(data), after, upto)


def within(changes: Changes, after: str, upto: str) -> Changes:
    """Return those changes that lie in ``(after, upto]``."""
    inside = in_range(changes.transactions.lsn[changes.transaction], changes.ordinal, after, upto)
    return changes if inside.all() else changes.select(np.flatnonzero(inside))


def in_range(lsn: NDArray[np.int64], ordinal: NDArray[np.int64], after: str, upto: str) -> NDArray[np.bool_]:
    """Return which positions lie in ``(after, upto]``, shape (positions,)."""
    low, low_n = parse_position(after)
    high, high_n = parse_position(upto)
    inside: NDArray[np.bool_] = ((lsn > low) | ((lsn == low) & (ordinal > low_n))) & (
        (lsn < high) | ((lsn == high) & (ordinal <= high_n))
    )
    return inside


def all_changes(data: SegmentData) -> Changes:
    """Return the changes of a segment.

    Raises:
        DecodeError: a record violates the protocol.
    """
    payload = data.payload
    starts = data.starts.astype(np.int64)
    kinds = record_kinds(payload, starts)
    header = SegmentHeader.from_json(data.header)
    try:
        transactions, begun = _transactions(header, payload, starts, kinds)
    except UNREADABLE as exc:
        # The header's numbers may not fit the arrays.
        raise unreadable(exc) from None
    # The index of each record's transaction; a transaction that began before the segment is the first.
    owner = np.cumsum(begun) - (0 if header.transaction is not None else 1)
    counted = _COUNTED[kinds]
    running = np.cumsum(counted)
    # Counted messages before each transaction; a message outside of a transaction is the first change of its own.
    begins = np.flatnonzero(begun)
    before = np.zeros(len(transactions.lsn), np.int64)
    before[len(before) - len(begins) :] = running[begins] - counted[begins]
    index = np.flatnonzero(counted)
    tx = owner[index]
    ordinal = running[index] - before[tx] + transactions.first_change[tx]
    at = starts[index] + PAYLOAD
    relations, from_record = _relations(header.relations, payload, starts, kinds)
    versions = _versions(payload, at, kinds[index], index, relations, from_record)
    change_lsn = be_view(payload, ">i8")[starts[index] + WAL_LSN].astype(np.int64)
    return Changes(
        payload,
        at,
        kinds[index],
        change_lsn,
        tx,
        ordinal,
        versions,
        index,
        transactions,
        header.transaction,
        relations,
        from_record,
    )


def _relations(
    entries: Sequence[RelationEntry], payload: NDArray[np.uint8], starts: NDArray[np.int64], kinds: NDArray[np.uint8]
) -> tuple[list[Relation], list[int]]:
    """Return the relation versions of a segment and the records from which they are in force.

    Raises:
        DecodeError: the header's relations are not those of the records.
    """
    relations = [entry.relation for entry in entries]
    from_record = [entry.record for entry in entries]
    inside = [entry for entry in entries if entry.record >= 0]
    if [entry.record for entry in inside] != np.flatnonzero(kinds == RELATION).tolist():
        raise DecodeError("The header of a log segment lacks some of its relations.")
    for entry in inside:
        one = starts[entry.record : entry.record + 1]
        begin, end = int(one[0]) + PAYLOAD, int(frame_ends(payload, one)[0])
        if bytes(payload[begin:end]) != entry.raw:
            raise DecodeError(f"The log record {entry.record} of a segment is another Relation message.")
    return relations, from_record


def outside(payload: NDArray[np.uint8], starts: NDArray[np.int64], kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which records are logical decoding messages outside of a transaction.

    Args:
        payload: shape (bytes,).
        starts: where the records' frames start, shape (records,).
        kinds: their type bytes, shape (records,).
    """
    result: NDArray[np.bool_] = kinds == MESSAGE
    if result.any():
        result[result] = payload[starts[result] + PAYLOAD + MESSAGE_FLAGS] & IN_TRANSACTION == 0
    return result


def _transactions(
    header: SegmentHeader, payload: NDArray[np.uint8], starts: NDArray[np.int64], kinds: NDArray[np.uint8]
) -> tuple[Transactions, NDArray[np.bool_]]:
    """Return the segment's transactions, and which records begin one."""
    alone = outside(payload, starts, kinds)
    opened = header.transaction
    check_order(payload, starts, kinds, alone, None if opened is None else opened.lsn)
    begun = (kinds == BEGIN) | alone
    begins = starts[begun] + PAYLOAD
    single = alone[begun]
    int64, uint32 = be_view(payload, ">i8"), be_view(payload, ">u4")
    # A message's LSN is the end of its record. What comes next lies there or after it, so the message gets one less.
    lsn = np.where(single, int64[begins + MESSAGE_LSN] - 1, int64[begins + BEGIN_LSN]).astype(np.int64)
    # Messages have no time and no transaction number: these offsets only lie within them, and the values are replaced.
    commit_us = int64[np.where(single, begins, begins + BEGIN_TIME)].astype(np.int64) + PG_EPOCH_US
    xid = np.where(single, NO_XID, uint32[np.where(single, begins, begins + BEGIN_XID)].astype(np.int64))
    first = np.zeros(len(begins), np.int64)
    if single.any():
        sent = int64[starts[begun] + SENT].astype(np.int64) + PG_EPOCH_US
        commit_us = _times_before(commit_us, single, header.last_commit_us, sent)
    if opened is not None:
        carried = np.array([[opened.lsn], [opened.commit_us], [opened.xid], [opened.changes]], np.int64)
        lsn, commit_us, xid, first = map(np.concatenate, zip(carried, (lsn, commit_us, xid, first), strict=True))
    ended = header.last_commit
    finished = (kinds == COMMIT) | alone
    last = starts[finished] + PAYLOAD
    ends = int64[np.where(alone[finished], last + MESSAGE_LSN, last + COMMIT_END)].astype(np.int64)
    # With the last commit before the segment in front, element i is the end of what precedes transaction i.
    ends = np.concatenate([[-1 if ended is None else ended], ends])
    last_commit = ends[: len(lsn)].copy()
    own = np.flatnonzero(single) + (opened is not None)
    last_commit[own] = ends[own + 1]
    origin, origin_lsn = _origins(opened, payload, starts, kinds, begun)
    return Transactions(lsn, commit_us, xid, last_commit, first, origin, origin_lsn), begun


def _times_before(
    commit_us: NDArray[np.int64], single: NDArray[np.bool_], known: int | None, sent: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Give messages outside of a transaction, which have no time, that of the transaction before, as in Debezium.

    Args:
        commit_us: commit times of the transactions, shape (transactions,).
        single: which of them are such messages.
        known: the time of the last transaction before the segment, if there was one.
        sent: when the server sent the records, for messages before all transactions.
    """
    # The index of the last real transaction so far; -1 if there is none.
    latest = np.maximum.accumulate(np.where(single, -1, np.arange(len(single))))
    before = sent if known is None else np.full(len(single), known, np.int64)
    return np.where(latest >= 0, commit_us[latest], before)


def _origins(
    opened: OpenTransaction | None,
    payload: NDArray[np.uint8],
    starts: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    begun: NDArray[np.bool_],
) -> tuple[pa.StringArray | None, NDArray[np.int64] | None]:
    """Return name and LSN of each transaction's replication origin; None if no transaction has one."""
    carried = opened.origin if opened is not None else None
    records = np.flatnonzero(kinds == ORIGIN)
    if not len(records) and carried is None:
        return None, None
    extra = int(opened is not None)
    rows = int(begun.sum()) + extra
    lsn = np.zeros(rows, np.int64)
    index = np.full(rows, -1, np.int64)
    at = starts[records] + PAYLOAD
    names, ends = terminated(payload, at + ORIGIN_NAME)
    if (ends + 1 != frame_ends(payload, starts[records])).any():
        raise DecodeError("An Origin message is not as long as its name.")
    owner = np.cumsum(begun)[records] - 1 + extra
    index[owner] = np.arange(len(records))
    lsn[owner] = be_view(payload, ">i8")[at + ORIGIN_LSN]
    if carried is not None and index[0] < 0:
        names = pa.concat_arrays([names, pa.array([carried[0]], pa.string())])
        index[0], lsn[0] = len(names) - 1, carried[1]
    return names.take(pa.array(index, mask=index < 0)), lsn


def _versions(
    payload: NDArray[np.uint8],
    at: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    records: NDArray[np.int64],
    relations: list[Relation],
    from_record: list[int],
) -> NDArray[np.int64]:
    """Return the index of each change's relation version; -1 for truncates and logical messages."""
    row_changes = (kinds == INSERT) | (kinds == UPDATE) | (kinds == DELETE)
    result = np.full(len(at), -1, np.int64)
    oids = np.zeros(len(at), np.int64)
    oids[row_changes] = be_view(payload, ">u4")[at[row_changes] + CHANGE_OID]
    # The versions of a table are in order, so a later one overwrites an earlier one.
    for i, (relation, first) in enumerate(zip(relations, from_record, strict=True)):
        result[(oids == relation.oid) & (records > first) & row_changes] = i
    unknown = row_changes & (result < 0)
    if unknown.any():
        oid = int(oids[unknown][0])
        raise DecodeError(f"A change belongs to relation {oid}, which was not announced.")
    return result


def truncated(payload: NDArray[np.uint8], at: int) -> list[int]:
    """Return the OIDs of the tables in a Truncate message."""
    if payload[at] != TRUNCATE:
        raise DecodeError("Not a Truncate message.")
    count = be32(payload, at + TRUNCATE_COUNT)
    begin, end = at + TRUNCATE_OIDS, frame_end(payload, at - PAYLOAD)
    if end != begin + 4 * count:
        raise DecodeError("A Truncate message does not hold as many tables as it says.")
    return [be32(payload, place) for place in range(begin, end, 4)]
