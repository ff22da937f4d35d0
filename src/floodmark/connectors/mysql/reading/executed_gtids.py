"""Tracks the GTIDs of all transactions before the next cut."""

from __future__ import annotations

import numpy as np

from floodmark.connectors.mysql.binlog.boundaries import type_set
from floodmark.connectors.mysql.binlog.event_types import (
    ANONYMOUS_GTID,
    CHECKSUM_BYTES,
    GTIDS,
    HEADER_BYTES,
    PACKET,
    PREVIOUS_GTIDS,
    TYPE,
)
from floodmark.connectors.mysql.binlog.records import Records
from floodmark.connectors.mysql.binlog.segments import OpenTransaction
from floodmark.connectors.mysql.binlog.transactions import with_transactions
from floodmark.connectors.mysql.gtid import Gtids, MysqlGtids, parse_gtids

_GTIDS = type_set(*GTIDS)


class Executed:
    """Tracks the GTID set along the log.

    Args:
        flavor: ``mysql`` or ``mariadb``.
        known: the set before the start position; None: not known, or some transactions have no GTID.
    """

    def __init__(self, flavor: str, known: str | None) -> None:
        self._gtids: Gtids | None = None if known is None else parse_gtids(flavor, known)

    @property
    def text(self) -> str | None:
        """The set; None if it isn't known."""
        return None if self._gtids is None else str(self._gtids)

    @property
    def gtids(self) -> Gtids | None:
        """The set; None if it isn't known."""
        return self._gtids

    def add(self, begun: OpenTransaction | None, records: Records | None) -> None:
        """Add complete transactions.

        Args:
            begun: the first transaction, if its GTID event lies before the records.
            records: up to the end of the last transaction; None: ``begun`` is the only one.
        """
        if begun is not None and self._gtids is not None:
            record = np.frombuffer(bytes(PACKET) + begun.gtid + bytes(CHECKSUM_BYTES), np.uint8)
            self._gtids = with_transactions(self._gtids, record, np.zeros(1, np.int64))
        if begun is not None and begun.gtid[TYPE] == ANONYMOUS_GTID:
            self._gtids = None
        if records is None:
            return
        nameless = np.flatnonzero(records.types == ANONYMOUS_GTID)
        if len(nameless):
            self._gtids = None
        first = int(nameless[-1]) + 1 if len(nameless) else 0
        first = max(first, self.learn(records, first))
        if self._gtids is not None:
            starts = records.starts[first:][_GTIDS[records.types[first:]]]
            self._gtids = with_transactions(self._gtids, records.buffer, starts)

    def learn(self, records: Records, first: int = 0) -> int:
        """Adopt the set at the start of a MySQL file if the set isn't known, as after transactions without GTIDs.

        Args:
            records: up to the position that the set is for.
            first: record to search from.

        Returns:
            The record after the event with the set; 0 if none was adopted.
        """
        files = np.flatnonzero(records.types[first:] == PREVIOUS_GTIDS)
        if self._gtids is not None or not len(files):
            return 0
        record = first + int(files[-1])
        self._gtids = MysqlGtids.decode(records.event(record)[HEADER_BYTES:])
        return record + 1
