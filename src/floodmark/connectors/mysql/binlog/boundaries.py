"""Finds where transactions begin and end in a run of binlog events.

A GTID event begins each one. XID, XA PREPARE and a COMMIT or ROLLBACK end one, and so do a compressed
transaction's payload and a standalone statement, such as DDL. On MySQL a statement is standalone if there is
no BEGIN between the GTID event and the statement; MariaDB sets a flag in the GTID event.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.mysql.binlog.event_types import (
    GTIDS,
    MARIADB_GTID,
    QUERIES,
    QUERY,
    TRANSACTION_PAYLOAD,
    XA_PREPARE,
    XID,
)
from floodmark.connectors.mysql.binlog.queries import BEGIN, COMMIT, OTHER, Query, parse_query, query_kinds
from floodmark.connectors.mysql.binlog.segments import event_at
from floodmark.connectors.mysql.binlog.transactions import standalone_flags


def type_set(*types: int) -> NDArray[np.bool_]:
    """Return a lookup table of event types, shape (256,): True for the given ones."""
    chosen = np.zeros(256, bool)
    chosen[list(types)] = True
    return chosen


_BEGINS = type_set(*GTIDS)
_ENDS = type_set(XID, XA_PREPARE, TRANSACTION_PAYLOAD)
_QUERIES = type_set(*QUERIES)


@dataclass
class Boundaries:
    """Transaction boundaries and statements in a run of events.

    Attributes:
        last_end: index of the last event that ends a transaction; -1 if there is none.
        statements: index and text of statements that may change tables or rows.
        decisions: index and text of statements that end a prepared XA transaction.
    """

    last_end: int = -1
    statements: list[tuple[int, Query]] = field(default_factory=list)
    decisions: list[tuple[int, Query]] = field(default_factory=list)


class BoundaryFinder:
    """Finds transactions in consecutive runs of events.

    Attributes:
        open: whether a transaction has begun and not ended.
    """

    def __init__(self) -> None:
        self.open = False
        self._explicit = False

    def find(
        self, buf: NDArray[np.uint8], starts: NDArray[np.int64], types: NDArray[np.uint8], checksum: int
    ) -> Boundaries:
        """Find the boundaries in the next run.

        Args:
            buf: the records.
            starts: where they start, shape (records,), at least one.
            types: their event types, shape (records,).
            checksum: size of checksums.
        """
        gtids = np.flatnonzero(_BEGINS[types])
        ends = [np.flatnonzero(_ENDS[types])]
        queries = np.flatnonzero(_QUERIES[types])
        kinds = np.full(len(queries), OTHER)
        plain = types[queries] == QUERY
        kinds[plain] = query_kinds(buf, starts[queries[plain]], checksum)
        ends.append(queries[kinds == COMMIT])
        # Events after which a transaction continues until its explicit end.
        explicit = queries[kinds == BEGIN].tolist()
        mariadb = gtids[types[gtids] == MARIADB_GTID]
        explicit += mariadb[~standalone_flags(buf, starts[mariadb])].tolist()
        found = Boundaries()
        alone: list[int] = []
        for index in queries[kinds == OTHER].tolist():
            query = parse_query(event_at(buf, int(starts[index]), checksum))
            if query.starts:
                explicit.append(index)
            elif query.ends or (not query.controls and not self._inside(index, gtids, explicit)):
                alone.append(index)
            if query.decides:
                found.decisions.append((index, query))
            if not query.controls and not query.tentative:
                found.statements.append((index, query))
        found.last_end = max([*(int(part[-1]) for part in ends if len(part)), *alone], default=-1)
        last_gtid = int(gtids[-1]) if len(gtids) else -1
        last_explicit = max(explicit, default=-1)
        if last_gtid >= 0 or found.last_end >= 0:
            self.open = last_gtid > found.last_end
            self._explicit = self.open and last_explicit >= last_gtid
        elif last_explicit >= 0:
            self._explicit = True
        return found

    def _inside(self, index: int, gtids: NDArray[np.int64], explicit: list[int]) -> bool:
        """Return whether the event at an index lies between a transaction's start and its end."""
        before = int(np.searchsorted(gtids, index))
        if not before:
            return self._explicit or any(at < index for at in explicit)
        return any(gtids[before - 1] <= at < index for at in explicit)
