"""Makes the events of DDL statements: those of the schema change topic, and of truncated tables."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.changes.change_events import SUBS, ChangeEvents
from floodmark.changes.changes import TRUNCATE, Rows
from floodmark.changes.isolation import Isolation
from floodmark.changes.layout_groups import TableNames
from floodmark.changes.table_version import VersionMaker
from floodmark.connectors.mysql import source_block
from floodmark.connectors.mysql.decode.events import Events
from floodmark.connectors.mysql.decode.row_changes import ROW_BITS, RowChanges, StreamedSource, place_columns, times_us
from floodmark.connectors.mysql.decode.structure import TableStructure, flavor_of
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.schema.logged_statement import LoggedStatement
from floodmark.connectors.mysql.schema_history.schema_events import (
    SchemaChange,
    key_schema,
    key_text,
    value_schema,
    value_text,
)
from floodmark.connectors.mysql.structures.table import Table
from floodmark.errors import DecodeError
from floodmark.events.columns import EventGroup
from floodmark.events.connect_schema import carrying_schema
from floodmark.packing import table_number
from floodmark.transforms.other_records import SCHEMA_CHANGES, RecordKind, transformed

MILLI = 1000


class DdlEvents:
    """Makes the events of a segment's statements.

    Args:
        options: the source's options.
        make_version: makes the table versions of the output.
        events: the segment's events.
        publishes: whether events of the schema change topic may be made.
    """

    def __init__(
        self,
        options: BinlogOptions,
        make_version: VersionMaker,
        events: Events,
        publishes: bool,
    ) -> None:
        self._options = options
        self._publishes = publishes and options.include_schema_changes and options.format == "events"
        self._flavor = flavor_of(options)
        self._make_version = make_version
        self._all = events
        self._statements = {
            int(np.searchsorted(events.record, one.record)): LoggedStatement.from_json(one.statement)
            for one in events.header.statements
        }

    def groups(
        self, chosen: NDArray[np.bool_], low: int, high: int, source: StreamedSource, isolation: Isolation
    ) -> Iterator[EventGroup]:
        """Yield the events of the chosen statements from the binlog event ``low`` up to and excluding ``high``.

        Args:
            chosen: which binlog events are chosen, shape (events,).
            low: index of an event.
            high: index of an event.
            source: makes source blocks.
            isolation: determines which tables' changes are delivered.
        """
        for index, statement in self._statements.items():
            if not low <= index < high or not chosen[index]:
                continue
            for table in statement.unseen:
                if isolation.wants(table_number(table.database, table.name)):
                    isolation.fail_table(TableStructure(table, self._flavor), self._unseen(index, table, statement.why))
            if self._publishes:
                for sub, change in enumerate(statement.changes):
                    yield self._event(index, min(sub, SUBS - 1), change)
            if self._options.skips("t"):
                continue
            for sub, table in enumerate(statement.emptied):
                structure = TableStructure(table, self._flavor)
                if isolation.wants(structure.number) and self._options.captures(table.database, table.name):
                    yield self._emptied(index, sub, structure, source)

    def _event(self, index: int, sub: int, change: SchemaChange) -> EventGroup:
        events, options = self._all, self._options
        micros = int(times_us(events)[index]) // MILLI * MILLI
        gtid = events.transactions.gtid[int(events.transaction[index])].as_py()
        file = f"{events.base}.{int(events.file[index]):06d}"
        thread = int(events.transactions.thread[int(events.transaction[index])])
        place = int(events.server[index]), gtid, file, int(events.offset[index]), thread
        block = source_block.statement_block(
            self._flavor, options.topic_prefix, change.database, change.tables, micros, *place
        )
        value = value_text(change, block, time.time_ns() // 1_000_000, options.includes_comments)
        key = key_text(change)
        kind = RecordKind(SCHEMA_CHANGES, key_schema(self._flavor), value_schema(self._flavor))
        event = {
            "topic": options.topic_prefix,
            "key": pa.array([carrying_schema(key, kind.key, options.schemas_enable)]),
            "value": pa.array([carrying_schema(value, kind.value, options.schemas_enable)]),
        }
        columns = {
            **transformed(event, kind, options),
            "database": change.database,
            **place_columns(events, np.array([index]), np.ones(1, np.int64), sub),
        }
        return EventGroup.of(np.array([(index << ROW_BITS | 1) * SUBS + sub]), columns)

    def _unseen(self, index: int, table: Table, why: str) -> DecodeError:
        return DecodeError(
            f"Rows of {table.database}.{table.name} were changed by {why}, at offset {int(self._all.offset[index])} of "
            f"{self._all.base}.{int(self._all.file[index]):06d}.",
            "Let no session change captured tables so, and read this one again by a signal (execute-snapshot); rows "
            "that are gone stay in the target until it is emptied. With inconsistent.schema.handling.mode=warn such "
            "changes are left out.",
        )

    def _emptied(self, index: int, sub: int, structure: TableStructure, source: StreamedSource) -> EventGroup:
        one = np.ones(1, np.int64)
        kind = np.array([TRUNCATE], np.uint8)
        changes = RowChanges(self._all, np.array([index]), one, kind, np.zeros(1, np.int64), [structure])
        names = TableNames.of(structure, self._options)
        rows = Rows(changes, self._make_version(structure), names, source.pieces(names, changes), {})
        return ChangeEvents(self._options).truncates(rows, sub)
