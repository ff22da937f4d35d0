"""How many events each change makes, and so each event's place in its transaction (``provide.transaction.metadata``).

All of a segment's changes are counted together. Those of a transaction that began before the segment are in the
segment's header, where capture has put them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.config.postgres import PostgresOptions
from floodmark.connectors.postgres.log.logical_messages import LogicalMessages
from floodmark.connectors.postgres.log.messages import DELETE, INSERT, MESSAGE, TRUNCATE, UPDATE
from floodmark.connectors.postgres.log.records import Changes, all_changes, truncated
from floodmark.connectors.postgres.log.tuples import OLD_KEY_ROW, OLD_ROW, tuple_pairs
from floodmark.rows.raw_column import with_old_values
from floodmark.rows.shapes import Shapes
from floodmark.rows.table_version import EventVersions, TableVersion

MESSAGES = "LOGICAL_DECODING_MESSAGE"
"""The data collection that logical decoding messages count for."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class EventOrders:
    """The places of a segment's events in their transactions.

    An entry is a change, or one table of a truncate.

    Attributes:
        first: the first entry of each record that is a change, shape (records,).
        total: events of the transaction before each entry, shape (entries,).
        in_table: events of the same table in the transaction before each entry, shape (entries,).
        transaction: each entry's transaction, shape (entries,).
        count: events of each entry, shape (entries,).
        table: index into ``tables``, shape (entries,).
        tables: names of data collections.
        before: events of each table in the first transaction before the segment.
    """

    first: Numbers
    total: Numbers
    in_table: Numbers
    transaction: Numbers
    count: Numbers
    table: Numbers
    tables: Sequence[str]
    before: dict[str, int]

    def per_table(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return transaction, table and events of each pair that has any, by transaction and first event."""
        carried = [self.tables.index(name) for name in self.before]
        transaction = np.concatenate([np.zeros(len(carried), np.int64), self.transaction])
        table = np.concatenate([np.array(carried, np.int64), self.table])
        count = np.concatenate([np.array(list(self.before.values()), np.int64), self.count])
        some = count > 0
        pairs, first, owner = np.unique(
            transaction[some] * len(self.tables) + table[some], return_index=True, return_inverse=True
        )
        events = np.bincount(owner, count[some], len(pairs)).astype(np.int64)
        order = np.argsort(first, kind="stable")
        pairs, events = pairs[order], events[order]
        return pairs // len(self.tables), pairs % len(self.tables), events


def event_orders(
    data: SegmentData,
    changes: Changes,
    shapes: Shapes,
    versions: Sequence[TableVersion | None],
    options: PostgresOptions,
) -> EventOrders:
    """Return the places of a segment's events.

    Args:
        data: the segment.
        changes: all of its changes.
        shapes: of its relations.
        versions: how rows of each shape are made into events; None if that is not known.
        options: the source's options.
    """
    opened = data.header["transaction"]
    before = dict(opened["events"] or {}) if opened is not None else {}
    names = [f"{relation.schema}.{relation.table}" for relation in changes.relations]
    tables = list(dict.fromkeys([*before, *names, MESSAGES]))
    places = {name: place for place, name in enumerate(tables)}
    number = np.array([places[name] for name in [*names, MESSAGES]], np.int64)
    counts = _row_events(changes, shapes, versions, options)
    said = np.flatnonzero(changes.kind == MESSAGE)
    counts[said] = LogicalMessages.of(changes.select(said)).wanted(options)

    emptied = np.flatnonzero(changes.kind == TRUNCATE)
    listed = [truncated(changes.payload, int(changes.at[i])) for i in emptied.tolist()]
    times = np.ones(len(changes.at), np.int64)
    times[emptied] = [len(oids) for oids in listed]
    first = np.cumsum(times) - times
    # Truncates and messages have no relation, which the last place stands for.
    table = np.repeat(number[changes.relation], times)
    count = np.repeat(counts, times)
    for i, oids in zip(emptied.tolist(), listed, strict=True):
        for at, oid in enumerate(oids, int(first[i])):
            relation = changes.relation_at(oid, int(changes.record[i]))
            table[at] = places[f"{relation.schema}.{relation.table}"]
            count[at] = not options.skips("t") and options.captures(relation.schema, relation.table)
    transaction = np.repeat(changes.transaction, times)
    carried = np.zeros(len(tables), np.int64)
    carried[: len(before)] = list(before.values())
    in_table = _before(transaction * len(tables) + table, count)
    total = _before(transaction, count)
    if before:
        total[transaction == 0] += carried.sum()
        in_table[transaction == 0] += carried[table[transaction == 0]]
    by_record = np.zeros(len(data.starts), np.int64)
    by_record[changes.record] = first
    return EventOrders(by_record, total, in_table, transaction, count, table, tables, before)


def _before(group: Numbers, count: Numbers) -> Numbers:
    """Return how many events of the same group come before each entry, shape (entries,)."""
    order = np.argsort(group, kind="stable")
    running = np.cumsum(count[order]) - count[order]
    sorted_group = group[order]
    begins = np.concatenate([[True], sorted_group[1:] != sorted_group[:-1]])[: len(group)]
    # What the group's first entry has before it, all of its entries have.
    base = np.maximum.accumulate(np.where(begins, running, 0)) if len(group) else running
    result = np.empty(len(group), np.int64)
    result[order] = running - base
    return result


def _row_events(
    changes: Changes, shapes: Shapes, versions: Sequence[TableVersion | None], options: PostgresOptions
) -> Numbers:
    """Return how many events each row's change makes, 0 for other changes, shape (changes,)."""
    captured = np.append(shapes.shape, -1)[changes.relation]
    counts = np.zeros(len(changes.at), np.int64)
    for kind, operation in ((INSERT, "c"), (UPDATE, "u"), (DELETE, "d")):
        if not options.skips(operation):
            counts[(changes.kind == kind) & (captured >= 0)] = 1
    updates = np.flatnonzero((changes.kind == UPDATE) & (captured >= 0))
    tuples = changes.payload[changes.at[updates] + 5]
    for kind in (OLD_ROW, OLD_KEY_ROW):
        chosen = updates[tuples == kind]
        for number in np.unique(captured[chosen]).tolist():
            version = versions[number]
            if version is not None:
                index = chosen[captured[chosen] == number]
                counts[index] = _update_events(changes, index, version, kind == OLD_ROW, options)
    return counts


def _update_events(
    changes: Changes, index: Numbers, version: TableVersion, complete: bool, options: PostgresOptions
) -> Numbers:
    """Return how many events updates make of which the log holds the old row, or its key, shape (index,)."""
    part = changes.select(index)
    old, new = tuple_pairs(part.payload, part.at + 6, len(version.names), part.ends)
    new = with_old_values(new, old)
    moved = version.key_changed(old, new, complete)
    stayed = np.full(len(index), not options.skips("u"))
    if complete and options.skip_messages_without_change:
        stayed &= version.row_changed(old, new)
    return np.where(moved, (not options.skips("d")) + (not options.skips("c")), stayed.astype(np.int64))


def event_counter(options: PostgresOptions) -> Callable[[SegmentData], dict[str, int]] | None:
    """Return what counts, for capture, the events of the transaction that a segment leaves open; None if none does."""
    if not options.provide_transaction_metadata:
        return None
    make = EventVersions(options)

    def count(data: SegmentData) -> dict[str, int]:
        changes = all_changes(data)
        shapes = Shapes(changes.relations, options)
        orders = event_orders(data, changes, shapes, [make(relation) for relation in shapes.first], options)
        last = len(changes.transactions.lsn) - 1
        transactions, tables, events = orders.per_table()
        return {orders.tables[tables[i]]: int(events[i]) for i in np.flatnonzero(transactions == last).tolist()}

    return count
