"""Makes segments from records: their headers, their signals, and the event counts of open transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from floodmark.capture.segment import SegmentData
from floodmark.connectors.mysql.binlog.boundaries import type_set
from floodmark.connectors.mysql.binlog.event_types import AT_TIMESTAMP, GTIDS
from floodmark.connectors.mysql.binlog.packets import le_view
from floodmark.connectors.mysql.binlog.records import Indices, Records
from floodmark.connectors.mysql.binlog.segments import (
    FileStart,
    OpenTransaction,
    SegmentHeader,
    ShownOffset,
    payload_runs,
    segment_tables,
)
from floodmark.connectors.mysql.binlog.transactions import parse_gtid
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.reading.receiver import Receiver
from floodmark.connectors.mysql.reading.table_versions import Structures, TableVersions

_GTIDS = type_set(*GTIDS)


class Signals(Protocol):
    """Finds signals in segments."""

    def is_signal_table(self, database: str, table: str) -> bool:
        """Return whether the rows of a table are signals."""

    def signals(self, data: SegmentData, after: str, upto: str) -> Sequence[tuple[str, dict[str, str]]]:
        """Return the signals of a segment that touches such a table, each with its position.

        Args:
            data: the segment.
            after: position just before it.
            upto: position of its end.
        """


class SegmentMaker:
    """Makes segments of one source.

    Args:
        flavor: ``mysql`` or ``mariadb``.
        structures: structures of the tables; the statements of segments are applied to them.
        signals: finds signals; None: there are none.
        count: counts the events of each table in the transaction that a segment leaves open; None: don't count.
    """

    def __init__(
        self,
        flavor: str,
        structures: Structures,
        signals: Signals | None,
        count: Callable[[SegmentData], Mapping[str, int]] | None,
    ) -> None:
        self._flavor = flavor
        self._table_versions = TableVersions(structures)
        self._signals = signals
        self._count = count

    def data(
        self, records: Records, begun: OpenTransaction | None, epoch: int, gtids: str | None, receiver: Receiver
    ) -> SegmentData:
        """Return the segment of some records; their statements are applied to the structures.

        Args:
            records: at least one.
            begun: the transaction that is open at their start.
            epoch: epoch of the positions.
            gtids: the GTIDs before the records; None if they are not known.
            receiver: the receiver of the records.
        """
        gtid_records = np.flatnonzero(_GTIDS[records.types])
        moves = records.moves
        statements = [
            (record, query, str(_statement_place(records, record, gtid_records, begun, epoch)))
            for record, query in records.statements
        ]
        with receiver.errors_named("at or behind", int(records.offsets[0])):
            tables, statement_records = self._table_versions.entries(
                records.buffer,
                records.starts,
                records.types,
                records.checksums(),
                statements,
                [move[0] for move in moves[1:]],
                begun,
            )
        begin, *later = (
            FileStart(record, file, int(records.offsets[record]), checked) for record, file, checked in moves
        )
        header = SegmentHeader(
            self._flavor,
            receiver.version,
            receiver.base,
            epoch,
            begin,
            tuple(later),
            payload_runs(records.buffer, records.starts, records.offsets, records.inner),
            gtids,
            begun,
            tables,
            statement_records,
            tuple(ShownOffset(*one) for one in records.shown),
        )
        return SegmentData(records.buffer, records.starts.astype(np.uint32), header.to_json())

    def counted(self, opened: OpenTransaction, data: SegmentData) -> OpenTransaction:
        """Return a transaction that is open after a segment with its events up to there counted."""
        return opened if self._count is None else replace(opened, events=self._count(data))

    @property
    def counts(self) -> bool:
        """Whether the events of transactions are counted."""
        return self._count is not None

    def signals(self, data: SegmentData, after: str, upto: str) -> Sequence[tuple[str, dict[str, str]]]:
        """Return the signals in a segment, each with its position."""
        finder = self._signals
        if finder is None:
            return []
        has_signal_table = any(finder.is_signal_table(one.database, one.table) for one in segment_tables(data.header))
        return finder.signals(data, after, upto) if has_signal_table else []


def commit_s(records: Records, begun: OpenTransaction | None) -> float:
    """Return when the last transaction was committed, in seconds since the epoch.

    Args:
        records: at least one.
        begun: the transaction that is open at their start.
    """
    gtids = np.flatnonzero(_GTIDS[records.types])
    event = begun.gtid if begun is not None else None
    if len(gtids):
        event = records.event(int(gtids[-1]))
    commit_us = parse_gtid(event).commit_us if event is not None else 0
    if commit_us:
        return commit_us / 1e6
    return float(le_view(records.buffer, "<u4")[int(records.starts[-1]) + AT_TIMESTAMP])


def _statement_place(
    records: Records, record: int, gtids: Indices, begun: OpenTransaction | None, epoch: int
) -> Position:
    before = int(np.searchsorted(gtids, record, side="right"))
    started = begun.start if begun else 0
    begin = int(records.offsets[gtids[before - 1]]) if before else started
    return Position(epoch, records.file(record), begin, int(records.offsets[record]), 1)
