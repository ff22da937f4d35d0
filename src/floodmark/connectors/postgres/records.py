"""Finding the changes in a segment: kinds, transactions, ordinals; all vectorised.

Source: PostgreSQL documentation, "Logical Replication Message Formats".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.connectors.postgres.frames import be_view
from floodmark.connectors.postgres.lsn import parse_position
from floodmark.connectors.postgres.messages import (
    BEGIN,
    CHANGES,
    COMMIT,
    DELETE,
    INSERT,
    PAYLOAD,
    PG_EPOCH_US,
    TRUNCATE,
    UPDATE,
    WAL_LSN,
)
from floodmark.connectors.postgres.relation import Relation, from_header
from floodmark.connectors.postgres.source_block import Transactions
from floodmark.errors import DecodeError

_COUNTED = np.zeros(256, bool)
_COUNTED[list(CHANGES)] = True


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
    if len(starts) and int(starts[-1]) + PAYLOAD >= len(payload):
        raise DecodeError("A log record goes past its segment.")
    kinds = payload[starts + PAYLOAD]
    transactions, owner = _transactions(data, starts, kinds)
    counted = _COUNTED[kinds]
    running = np.cumsum(counted)
    begins = np.flatnonzero(kinds == BEGIN)
    before = np.zeros(len(transactions.lsn), np.int64)
    before[len(before) - len(begins) :] = running[begins]
    index = np.flatnonzero(counted)
    if len(index) and not len(transactions.lsn):
        raise DecodeError("A change stands outside of a transaction.")
    tx = owner[index]
    ordinal = running[index] - before[tx] + transactions.first_change[tx]
    lsn = transactions.lsn[tx]
    low, low_n = parse_position(after)
    high, high_n = parse_position(upto)
    inside = ((lsn > low) | ((lsn == low) & (ordinal > low_n))) & ((lsn < high) | ((lsn == high) & (ordinal <= high_n)))
    if not inside.all():
        index, tx, ordinal = index[inside], tx[inside], ordinal[inside]
    at = starts[index] + PAYLOAD
    relations, from_record = [], []
    for entry in data.header["relations"]:
        relation, record = from_header(entry)
        relations.append(relation)
        from_record.append(record)
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


def _transactions(
    data: SegmentData, starts: NDArray[np.int64], kinds: NDArray[np.uint8]
) -> tuple[Transactions, NDArray[np.int64]]:
    """Return the segment's transactions, and the index of each record's one."""
    payload = data.payload
    begins = starts[kinds == BEGIN] + PAYLOAD
    commits = starts[kinds == COMMIT] + PAYLOAD
    int64, uint32 = be_view(payload, ">i8"), be_view(payload, ">u4")
    lsn = int64[begins + 1].astype(np.int64)
    commit_us = int64[begins + 9].astype(np.int64) + PG_EPOCH_US
    xid = uint32[begins + 17].astype(np.int64)
    first = np.zeros(len(begins), np.int64)
    opened = data.header["transaction"]
    if opened is not None:
        lsn = np.concatenate([[opened["lsn"]], lsn])
        commit_us = np.concatenate([[opened["commit_us"]], commit_us])
        xid = np.concatenate([[opened["xid"]], xid])
        first = np.concatenate([[opened["changes"]], first])
    ended = data.header["last_commit"]
    ends = np.concatenate([[-1 if ended is None else ended], int64[commits + 10].astype(np.int64)])
    last_commit = ends[: len(lsn)]
    owner = np.cumsum(kinds == BEGIN) - (0 if opened is not None else 1)
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
    oids = bytes(payload[at + 6 : at + 6 + 4 * count])
    if len(oids) != 4 * count:
        raise DecodeError("A Truncate message is cut off.")
    return [int.from_bytes(oids[4 * i : 4 * i + 4], "big") for i in range(count)]
