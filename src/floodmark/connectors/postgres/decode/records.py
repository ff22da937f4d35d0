"""Finds the changes in a segment, with their kinds, transactions and ordinals; all vectorised.

Source: PostgreSQL documentation, "Logical Replication Message Formats".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.changes.layout_groups import TableNames, Text
from floodmark.connectors.postgres.decode.record_checks import check_order, record_kinds
from floodmark.connectors.postgres.decode.relation import Relation, from_header, raw_of
from floodmark.connectors.postgres.decode.tuples import terminated
from floodmark.connectors.postgres.position import parse_position, position
from floodmark.connectors.postgres.source_block import NO_XID, Transactions
from floodmark.connectors.postgres.wire.frames import be_view, frame_ends
from floodmark.connectors.postgres.wire.messages import (
    BEGIN,
    CHANGES,
    COMMIT,
    DELETE,
    INSERT,
    MESSAGE,
    ORIGIN,
    PAYLOAD,
    PG_EPOCH_US,
    RELATION,
    SENT,
    TRUNCATE,
    UPDATE,
    WAL_LSN,
)
from floodmark.errors import DecodeError, describe

_COUNTED = np.zeros(256, bool)
_COUNTED[list(CHANGES)] = True
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


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
        relations: the relation versions.
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
    try:
        transactions, begun = _transactions(data, starts, kinds)
    except _UNREADABLE as exc:
        raise DecodeError(f"The header of a log segment cannot be read: {describe(exc)}.") from None
    # The index of each record's transaction; a transaction that began before the segment is the first.
    owner = np.cumsum(begun) - (0 if data.header["transaction"] is not None else 1)
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
    relations, from_record = _relations(data, starts, kinds)
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
        relations,
        from_record,
    )


def _relations(
    data: SegmentData, starts: NDArray[np.int64], kinds: NDArray[np.uint8]
) -> tuple[list[Relation], list[int]]:
    """Return the relation versions of a segment and the records from which they are in force.

    Raises:
        DecodeError: the header's relations are not those of the records.
    """
    relations, from_record = [], []
    try:
        for entry in data.header["relations"]:
            relation, record = from_header(entry)
            relations.append(relation)
            from_record.append(record)
            if record >= 0:
                one = starts[record : record + 1]
                begin, end = int(one[0]) + PAYLOAD, int(frame_ends(data.payload, one)[0])
                if bytes(data.payload[begin:end]) != raw_of(entry):
                    raise DecodeError(f"The log record {record} of a segment is another Relation message.")
    except _UNREADABLE as exc:
        raise DecodeError(f"The header of a log segment cannot be read: {describe(exc)}.") from None
    inside = [record for record in from_record if record >= 0]
    if inside != np.flatnonzero(kinds == RELATION).tolist():
        raise DecodeError("The header of a log segment lacks some of its relations.")
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
        # Bit 0 of a message's flags: whether it is part of a transaction.
        result[result] = payload[starts[result] + PAYLOAD + 1] & 1 == 0
    return result


def _transactions(
    data: SegmentData, starts: NDArray[np.int64], kinds: NDArray[np.uint8]
) -> tuple[Transactions, NDArray[np.bool_]]:
    """Return the segment's transactions, and which records begin one."""
    payload = data.payload
    alone = outside(payload, starts, kinds)
    opened = data.header["transaction"]
    check_order(payload, starts, kinds, alone, None if opened is None else int(opened["lsn"]))
    begun = (kinds == BEGIN) | alone
    begins = starts[begun] + PAYLOAD
    single = alone[begun]
    int64, uint32 = be_view(payload, ">i8"), be_view(payload, ">u4")
    # A message's LSN is the end of its record. What comes next lies there or after it, so the message gets one less.
    lsn = np.where(single, int64[begins + 2] - 1, int64[begins + 1]).astype(np.int64)
    # Messages have no time and no transaction number: these offsets only lie within them, and the values are replaced.
    commit_us = int64[np.where(single, begins, begins + 9)].astype(np.int64) + PG_EPOCH_US
    xid = np.where(single, NO_XID, uint32[np.where(single, begins, begins + 17)].astype(np.int64))
    first = np.zeros(len(begins), np.int64)
    if single.any():
        sent = int64[starts[begun] + SENT].astype(np.int64) + PG_EPOCH_US
        commit_us = _times_before(commit_us, single, data.header.get("last_commit_us"), sent)
    if opened is not None:
        carried = np.array([[opened[name]] for name in ("lsn", "commit_us", "xid", "changes")], np.int64)
        lsn, commit_us, xid, first = map(np.concatenate, zip(carried, (lsn, commit_us, xid, first), strict=True))
    ended = data.header["last_commit"]
    finished = (kinds == COMMIT) | alone
    last = starts[finished] + PAYLOAD
    ends = int64[np.where(alone[finished], last + 2, last + 10)].astype(np.int64)
    # With the last commit before the segment in front, element i is the end of what precedes transaction i.
    ends = np.concatenate([[-1 if ended is None else ended], ends])
    last_commit = ends[: len(lsn)].copy()
    own = np.flatnonzero(single) + (opened is not None)
    last_commit[own] = ends[own + 1]
    origin, origin_lsn = _origins(data, starts, kinds, begun)
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
    data: SegmentData, starts: NDArray[np.int64], kinds: NDArray[np.uint8], begun: NDArray[np.bool_]
) -> tuple[pa.StringArray | None, NDArray[np.int64] | None]:
    """Return name and LSN of each transaction's replication origin; None if no transaction has one."""
    opened = data.header["transaction"]
    carried = opened.get("origin") if opened is not None else None
    records = np.flatnonzero(kinds == ORIGIN)
    if not len(records) and carried is None:
        return None, None
    extra = int(opened is not None)
    rows = int(begun.sum()) + extra
    lsn = np.zeros(rows, np.int64)
    index = np.full(rows, -1, np.int64)
    at = starts[records] + PAYLOAD
    names, ends = terminated(data.payload, at + 9)
    if (ends + 1 != frame_ends(data.payload, starts[records])).any():
        raise DecodeError("An Origin message is not as long as its name.")
    owner = np.cumsum(begun)[records] - 1 + extra
    index[owner] = np.arange(len(records))
    lsn[owner] = be_view(data.payload, ">i8")[at + 1]
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
    oids[row_changes] = be_view(payload, ">u4")[at[row_changes] + 1]
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
    count = int.from_bytes(bytes(payload[at + 1 : at + 5]), "big")
    end = int(frame_ends(payload, np.array([at - PAYLOAD]))[0])
    if end != at + 6 + 4 * count:
        raise DecodeError("A Truncate message does not hold as many tables as it says.")
    oids = bytes(payload[at + 6 : end])
    return [int.from_bytes(oids[4 * i : 4 * i + 4], "big") for i in range(count)]
