"""Finding the changes in a segment: kinds, transactions, ordinals; all vectorised.

Source: PostgreSQL documentation, "Logical Replication Message Formats".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.connectors.postgres.frames import COPY_DATA, be_view
from floodmark.connectors.postgres.lsn import parse_position
from floodmark.connectors.postgres.messages import (
    BEGIN,
    CHANGES,
    COMMIT,
    DELETE,
    FIXED,
    FRAME_KIND,
    INSERT,
    KEEPALIVE,
    KEEPALIVE_BYTES,
    LEAST_BYTES,
    PAYLOAD,
    PG_EPOCH_US,
    RELATION,
    TRUNCATE,
    UPDATE,
    WAL_DATA,
    WAL_LSN,
)
from floodmark.connectors.postgres.relation import Relation, from_header, raw_of
from floodmark.connectors.postgres.source_block import Transactions
from floodmark.errors import DecodeError, describe

_COUNTED = np.zeros(256, bool)
_COUNTED[list(CHANGES)] = True
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
_LEAST = np.full(256, -1, np.int64)
_LEAST[list(LEAST_BYTES)] = list(LEAST_BYTES.values())
_FIXED = np.zeros(256, bool)
_FIXED[list(FIXED)] = True


@dataclass
class Changes:
    """The changes of a segment that lie in a range of positions.

    Attributes:
        payload: the segment's bytes.
        at: where each message's type byte stands, ascending, shape (changes,).
        kind: the type bytes, shape (changes,).
        lsn: shape (changes,).
        transaction: index into ``transactions``, shape (changes,).
        ordinal: number within the transaction, from 1, shape (changes,).
        relation: index into ``relations``, -1 for truncates, shape (changes,).
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
        return _ends(self.payload, self.at - PAYLOAD)

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
        DecodeError: a record isn't what the protocol says.
    """
    payload = data.payload
    starts = data.starts.astype(np.int64)
    kinds = _record_kinds(payload, starts)
    transactions, owner = _transactions(data, starts, kinds)
    counted = _COUNTED[kinds]
    running = np.cumsum(counted)
    begins = np.flatnonzero(kinds == BEGIN)
    before = np.zeros(len(transactions.lsn), np.int64)
    before[len(before) - len(begins) :] = running[begins]
    index = np.flatnonzero(counted)
    tx = owner[index]
    ordinal = running[index] - before[tx] + transactions.first_change[tx]
    lsn = transactions.lsn[tx]
    low, low_n = parse_position(after)
    high, high_n = parse_position(upto)
    inside = ((lsn > low) | ((lsn == low) & (ordinal > low_n))) & ((lsn < high) | ((lsn == high) & (ordinal <= high_n)))
    if not inside.all():
        index, tx, ordinal = index[inside], tx[inside], ordinal[inside]
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


def _ends(payload: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where frames end, shape (frames,)."""
    return starts + 1 + be_view(payload, ">u4")[starts + 1].astype(np.int64)


def _record_kinds(payload: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the records' type bytes, shape (records,), and prove that nothing but keepalives lies between records.

    Raises:
        DecodeError: a record has another size than it says, or is of an unknown kind.
    """
    if len(starts) and int(starts.max()) + PAYLOAD >= len(payload):
        raise DecodeError("A log record goes past its segment.")
    ends = _ends(payload, starts)
    edges = np.append(starts, len(payload))
    gaps = edges - np.concatenate([[0], ends])
    whole = (payload[starts] == COPY_DATA) & (payload[starts + FRAME_KIND] == WAL_DATA) & (gaps[1:] >= 0)
    kinds = payload[starts + PAYLOAD]
    least, size = _LEAST[kinds], ends - starts - PAYLOAD
    whole &= (least >= 0) & np.where(_FIXED[kinds], size == least, size >= least)
    if not whole.all():
        raise DecodeError(f"The log record at byte {int(starts[~whole][0])} of a segment is not what it should be.")
    between = np.flatnonzero(gaps)
    if len(between):
        _check_keepalives(payload, edges[between] - gaps[between], gaps[between])
    return kinds


def _check_keepalives(payload: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
    """Raise an error if any of the areas holds anything but keepalives."""
    counts, rest = np.divmod(sizes, KEEPALIVE_BYTES)
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    frames = np.repeat(starts, counts) + number * KEEPALIVE_BYTES
    alive = (payload[frames] == COPY_DATA) & (payload[frames + FRAME_KIND] == KEEPALIVE)
    if rest.any() or (sizes < 0).any() or not alive.all() or (_ends(payload, frames) != frames + KEEPALIVE_BYTES).any():
        raise DecodeError("A segment holds more than its log records.")


def _relations(
    data: SegmentData, starts: NDArray[np.int64], kinds: NDArray[np.uint8]
) -> tuple[list[Relation], list[int]]:
    """Return the relation versions of a segment and the records from which they are in force.

    Raises:
        DecodeError: the header's are not those of the records.
    """
    relations, from_record = [], []
    try:
        for entry in data.header["relations"]:
            relation, record = from_header(entry)
            relations.append(relation)
            from_record.append(record)
            if record >= 0:
                one = starts[record : record + 1]
                begin, end = int(one[0]) + PAYLOAD, int(_ends(data.payload, one)[0])
                if bytes(data.payload[begin:end]) != raw_of(entry):
                    raise DecodeError(f"The log record {record} of a segment is another Relation message.")
    except _UNREADABLE as exc:
        raise DecodeError(f"The header of a log segment cannot be read: {describe(exc)}.") from None
    inside = [record for record in from_record if record >= 0]
    if inside != np.flatnonzero(kinds == RELATION).tolist():
        raise DecodeError("The header of a log segment lacks some of its relations.")
    return relations, from_record


def _transactions(
    data: SegmentData, starts: NDArray[np.int64], kinds: NDArray[np.uint8]
) -> tuple[Transactions, NDArray[np.int64]]:
    """Return the segment's transactions, and the index of each record's one."""
    payload = data.payload
    is_begin, is_commit = kinds == BEGIN, kinds == COMMIT
    begins, commits = starts[is_begin] + PAYLOAD, starts[is_commit] + PAYLOAD
    int64, uint32 = be_view(payload, ">i8"), be_view(payload, ">u4")
    lsn = int64[begins + 1].astype(np.int64)
    commit_us = int64[begins + 9].astype(np.int64) + PG_EPOCH_US
    xid = uint32[begins + 17].astype(np.int64)
    first = np.zeros(len(begins), np.int64)
    try:
        opened, ended = data.header["transaction"], data.header["last_commit"]
        if opened is not None:
            carried = np.array([[opened[name]] for name in ("lsn", "commit_us", "xid", "changes")], np.int64)
            lsn, commit_us, xid, first = map(np.concatenate, zip(carried, (lsn, commit_us, xid, first), strict=True))
        before = np.array([-1 if ended is None else ended], np.int64)
    except _UNREADABLE as exc:
        raise DecodeError(f"The header of a log segment cannot be read: {describe(exc)}.") from None
    last_commit = np.concatenate([before, int64[commits + 10].astype(np.int64)])[: len(lsn)]
    carries = int(opened is not None)
    owner = np.cumsum(is_begin) + carries - 1
    unfinished = np.cumsum(is_begin) - np.cumsum(is_commit) + carries + is_commit
    if (unfinished != 1).any() or (lsn < 0).any():
        raise DecodeError("A log record stands outside of a transaction.")
    if (int64[commits + 2] != lsn[owner[is_commit]]).any():
        raise DecodeError("A transaction ends with the commit of another one.")
    return Transactions(lsn, commit_us, xid, last_commit, first), owner


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
    end = int(_ends(payload, np.array([at - PAYLOAD]))[0])
    if end != at + 6 + 4 * count:
        raise DecodeError("A Truncate message does not hold as many tables as it says.")
    oids = bytes(payload[at + 6 : end])
    return [int.from_bytes(oids[4 * i : 4 * i + 4], "big") for i in range(count)]
