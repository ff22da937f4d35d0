"""Which tables a piece of the binlog touches, and with what structure; and what of it goes on behind a cut."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

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
from floodmark.connectors.mysql.binlog.segments import OpenTransaction, event_at
from floodmark.connectors.mysql.binlog.table_map import table_ids, table_name
from floodmark.errors import DecodeError


class Structure(Protocol):
    """A table's structure."""

    def to_json(self) -> dict[str, Any]:
        """Return it for a segment's header."""


class Structures(Protocol):
    """Structures of all tables at one place of the log."""

    def rewind(self, position: str) -> None:
        """Be as the log has it at a position: what it tells next comes after that."""

    def apply(self, query: Query, position: str) -> dict[str, Any] | None:
        """Take a statement that is no transaction control; most are DDL.

        Args:
            query: the statement.
            position: of its event, as its own transaction's only row.

        Returns:
            What a segment's header says of it; None: nothing.
        """

    def table(self, database: str, name: str) -> Structure | None:
        """Return the structure of a table; None if it isn't known."""


class Touched:
    """Tables that segments touch: each segment names those of its own.

    Args:
        structures: the tables.
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
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the header's ``tables`` and ``statements``; the statements are applied on the way.

        Args:
            buf: the records.
            starts: where they start, shape (records,).
            types: of their events, shape (records,).
            checksums: sizes of their checksums, shape (records,).
            statements: record, statement and position of each one that may change tables.
            breaks: records from which on ids may mean other tables.
            opened: the transaction that is open at the begin.
        """
        entries: list[dict[str, Any]] = []
        told: list[dict[str, Any]] = []
        current: dict[int, tuple[str, str, Structure | None]] = {}
        for event in opened.maps if opened else ():
            table_id, named = self._said(event)
            current[table_id] = named
            entries.append({**_entry(-1, table_id, named), "map": base64.b64encode(event).decode()})
        changes = {record: (query, position) for record, query, position in statements}
        edges = sorted({0, len(starts), *(record + 1 for record in changes), *breaks})
        for begin, end in pairwise(edges):
            for record, event in _maps(buf, starts[begin:end], types[begin:end], checksums[begin:end]):
                table_id, named = self._said(event)
                if current.get(table_id) != named:
                    current[table_id] = named
                    entries.append(_entry(begin + record, table_id, named))
            said = self._structures.apply(*changes[end - 1]) if end - 1 in changes else None
            if said is not None:
                told.append({"record": end - 1, **said})
        return entries, told

    def _said(self, event: bytes) -> tuple[int, tuple[str, str, Structure | None]]:
        table_id, database, name = table_name(event)
        return table_id, (database, name, self._structures.table(database, name))


def _entry(record: int, table_id: int, named: tuple[str, str, Structure | None]) -> dict[str, Any]:
    database, name, structure = named
    return {
        "record": record,
        "table_id": table_id,
        "database": database,
        "table": name,
        "structure": structure.to_json() if structure is not None else None,
    }


def _maps(
    buf: NDArray[np.uint8], starts: NDArray[np.int64], types: NDArray[np.uint8], checksums: NDArray[np.int64]
) -> list[tuple[int, bytes]]:
    """Return TABLE_MAP events with the index of their record, in order.

    Only the first one of each id is returned, and all those in compressed transactions.
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
    """Return the transaction that is open behind some records.

    Args:
        records: at least one.
        before: the transaction that is open at their begin.

    Raises:
        DecodeError: an event is not what it should be.
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
