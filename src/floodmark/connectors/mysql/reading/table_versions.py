"""Determines which tables a piece of the binlog touches, with which structures, and what is left open at its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.mysql.binlog.compressed import payload_events
from floodmark.connectors.mysql.binlog.event_types import (
    AT_BODY,
    GTIDS,
    HEADER_BYTES,
    QUERIES,
    ROWS,
    ROWS_FLAGS,
    STATEMENT_END,
    STATEMENTS,
    TABLE_MAP,
    TRANSACTION_PAYLOAD,
    TYPE,
)
from floodmark.connectors.mysql.binlog.queries import Query, parse_query
from floodmark.connectors.mysql.binlog.records import Records
from floodmark.connectors.mysql.binlog.segments import OpenTransaction, SegmentTable, StatementRecord, event_at
from floodmark.connectors.mysql.binlog.table_map import table_ids, table_name
from floodmark.errors import DecodeError
from floodmark.json_data import Json


class ForHeader(Protocol):
    """A table's structure, or what is known of a statement."""

    def to_json(self) -> dict[str, Json]:
        """Return it for a segment's header."""


class Structures(Protocol):
    """Structures of all tables at one position of the log."""

    def rewind(self, position: str) -> None:
        """Restore the structures as of a position; the statements that are applied next come after it."""

    def apply(self, query: Query, position: str) -> ForHeader | None:
        """Apply a statement that is no transaction control; most are DDL.

        Args:
            query: the statement.
            position: position of its event, with row 1.

        Returns:
            What a segment's header says of the statement; None: nothing.
        """

    def table(self, database: str, name: str) -> ForHeader | None:
        """Return the structure of a table; None if it isn't known."""


class TableVersions:
    """Lists the tables that each segment touches.

    Args:
        structures: structures of the tables.
    """

    def __init__(self, structures: Structures) -> None:
        self._structures = structures

    def entries(
        self,
        buf: NDArray[np.uint8],
        starts: NDArray[np.int64],
        types: NDArray[np.uint8],
        checksums: NDArray[np.int64],
        statements: Sequence[tuple[int, Query, str]],
        breaks: Iterable[int],
        opened: OpenTransaction | None,
    ) -> tuple[tuple[SegmentTable, ...], tuple[StatementRecord, ...]]:
        """Return the header's ``tables`` and ``statements``, and apply the statements to the structures.

        Args:
            buf: the records.
            starts: where they start, shape (records,).
            types: their event types, shape (records,).
            checksums: sizes of their checksums, shape (records,).
            statements: record, statement and position of each one that may change tables.
            breaks: records from which on table ids may refer to other tables.
            opened: the transaction that is open at the start.
        """
        entries: list[SegmentTable] = []
        records: list[StatementRecord] = []
        current: dict[int, tuple[str, str, ForHeader | None]] = {}
        for event in opened.maps if opened else ():
            table_id, named = self._said(event)
            current[table_id] = named
            entries.append(_entry(-1, table_id, named, event))
        changes = {record: (query, position) for record, query, position in statements}
        # Between two edges a table id refers to one table with one structure.
        edges = sorted({0, len(starts), *(record + 1 for record in changes), *breaks})
        for begin, end in pairwise(edges):
            for record, event in _maps(buf, starts[begin:end], types[begin:end], checksums[begin:end]):
                table_id, named = self._said(event)
                if current.get(table_id) != named:
                    current[table_id] = named
                    entries.append(_entry(begin + record, table_id, named))
            said = self._structures.apply(*changes[end - 1]) if end - 1 in changes else None
            if said is not None:
                records.append(StatementRecord(end - 1, said.to_json()))
        return tuple(entries), tuple(records)

    def _said(self, event: bytes) -> tuple[int, tuple[str, str, ForHeader | None]]:
        table_id, database, name = table_name(event)
        return table_id, (database, name, self._structures.table(database, name))


def _entry(
    record: int, table_id: int, named: tuple[str, str, ForHeader | None], event: bytes | None = None
) -> SegmentTable:
    database, name, structure = named
    return SegmentTable(record, table_id, database, name, None if structure is None else structure.to_json(), event)


def _maps(
    buf: NDArray[np.uint8], starts: NDArray[np.int64], types: NDArray[np.uint8], checksums: NDArray[np.int64]
) -> list[tuple[int, bytes]]:
    """Return TABLE_MAP events with the index of their record, in order.

    Returns only the first one of each id, but all of those in compressed transactions.
    """
    records = np.flatnonzero(types == TABLE_MAP)
    found: list[tuple[int, bytes]] = []
    if len(records):
        _, first = np.unique(table_ids(buf, starts[records]), return_index=True)
        chosen = records[first].tolist()
        found += ((record, event_at(buf, int(starts[record]), int(checksums[record]))) for record in chosen)
    for record in np.flatnonzero(types == TRANSACTION_PAYLOAD).tolist():
        event = event_at(buf, int(starts[record]), int(checksums[record]))
        plain, inner = payload_events(event[HEADER_BYTES:])
        ends = [*inner[1:].tolist(), len(plain)]
        inside = np.flatnonzero(plain[inner + TYPE] == TABLE_MAP).tolist()
        found += ((record, bytes(plain[inner[index] : ends[index]])) for index in inside)
    return sorted(found, key=lambda one: one[0])


def opened_at_end(records: Records, before: OpenTransaction | None) -> OpenTransaction | None:
    """Return the transaction that is open after some records; None if there is none.

    Args:
        records: at least one.
        before: the transaction that is open at their start.

    Raises:
        DecodeError: an event is malformed.
    """
    buf, starts, types = records.buffer, records.starts, records.types
    gtids = np.flatnonzero(np.isin(types, GTIDS))
    first = 0
    opened = before
    if len(gtids):
        first = int(gtids[-1])
        opened = OpenTransaction(int(records.offsets[first]), records.event(first))
    if opened is None:
        return None
    if opened.begin is None:
        for record in (first + np.flatnonzero(np.isin(types[first:], QUERIES)))[:1].tolist():
            event = records.event(record)
            if parse_query(event).starts:
                opened = replace(opened, begin=event)
    rows = first + np.flatnonzero(np.isin(types[first:], ROWS))
    flags = starts[rows] + AT_BODY + ROWS_FLAGS
    if (flags >= len(buf)).any():
        raise DecodeError("A row event in the binlog is cut off.")
    finished = rows[buf[flags] & STATEMENT_END != 0]
    if len(finished):
        first = int(finished[-1]) + 1
        opened = opened.without_statement()
    for record in (first + np.flatnonzero(np.isin(types[first:], (*STATEMENTS, TABLE_MAP)))).tolist():
        event = records.event(record)
        if types[record] == TABLE_MAP:
            opened = replace(opened, maps=(*opened.maps, event))
        else:
            opened = replace(opened, statement=event)
    return opened
