"""Counts the events of each change, for their order in the transaction (``provide.transaction.metadata``).

All of a segment's changes are counted together. The counts of a transaction that began before the segment are in the
segment's header, where capture has put them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.changes.change_events import ChangeEvents
from floodmark.changes.event_order import EventOrder
from floodmark.changes.layout_groups import LayoutGroups
from floodmark.changes.table_version import EventVersions, TableVersion
from floodmark.codecs.raw_column import with_old_values
from floodmark.connectors.postgres.decode.logical_messages import LogicalMessages
from floodmark.connectors.postgres.decode.records import Changes, all_changes, truncated
from floodmark.connectors.postgres.decode.tuples import OLD_KEY_ROW, OLD_ROW, tuple_pairs
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.wire.messages import (
    CHANGE_TUPLE,
    CHANGE_TUPLE_KIND,
    DELETE,
    INSERT,
    MESSAGE,
    TRUNCATE,
    UPDATE,
)

MESSAGES = "LOGICAL_DECODING_MESSAGE"
"""The data collection under which logical decoding messages are counted."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class RecordOrder:
    """The order of a segment's events in their transactions.

    Attributes:
        first: the first entry of each record that is a change, shape (records,).
        entries: an entry for each change; for a truncate, one for each of its tables.
    """

    first: Numbers
    entries: EventOrder


def order_events(
    data: SegmentData,
    changes: Changes,
    layouts: LayoutGroups,
    versions: Sequence[TableVersion | None],
    options: PostgresOptions,
) -> RecordOrder:
    """Return the order of a segment's events in their transactions.

    Args:
        data: the segment.
        changes: all of its changes.
        layouts: the layout groups of its relations.
        versions: the table version of each layout group; None if it is not known.
        options: the source's options.
    """
    before = dict(changes.opened.events or {}) if changes.opened is not None else {}
    names = [f"{relation.schema}.{relation.table}" for relation in changes.relations]
    tables = list(dict.fromkeys([*before, *names, MESSAGES]))
    places = {name: place for place, name in enumerate(tables)}
    number = np.array([places[name] for name in [*names, MESSAGES]], np.int64)
    counts = _row_events(changes, layouts, versions, options)
    said = np.flatnonzero(changes.kind == MESSAGE)
    counts[said] = LogicalMessages.of(changes.select(said)).wanted(options)

    emptied = np.flatnonzero(changes.kind == TRUNCATE)
    listed = [truncated(changes.payload, int(changes.at[i])) for i in emptied.tolist()]
    # The number of entries of each change.
    times = np.ones(len(changes.at), np.int64)
    times[emptied] = [len(oids) for oids in listed]
    first = np.cumsum(times) - times
    # Truncates and messages have no relation: their index is -1, the last element. Those of truncates are set below.
    table = np.repeat(number[changes.relation], times)
    count = np.repeat(counts, times)
    for i, oids in zip(emptied.tolist(), listed, strict=True):
        for at, oid in enumerate(oids, int(first[i])):
            relation = changes.relation_at(oid, int(changes.record[i]))
            table[at] = places[f"{relation.schema}.{relation.table}"]
            count[at] = not options.skips("t") and options.captures(relation.schema, relation.table)
    transaction = np.repeat(changes.transaction, times)
    by_record = np.zeros(len(data.starts), np.int64)
    by_record[changes.record] = first
    return RecordOrder(by_record, EventOrder.of(transaction, table, count, tables, before))


def _row_events(
    changes: Changes, layouts: LayoutGroups, versions: Sequence[TableVersion | None], options: PostgresOptions
) -> Numbers:
    """Return how many events each row's change makes, 0 for other changes, shape (changes,)."""
    captured = np.append(layouts.shape, -1)[changes.relation]
    counts = np.zeros(len(changes.at), np.int64)
    for kind, operation in ((INSERT, "c"), (UPDATE, "u"), (DELETE, "d")):
        if not options.skips(operation):
            counts[(changes.kind == kind) & (captured >= 0)] = 1
    updates = np.flatnonzero((changes.kind == UPDATE) & (captured >= 0))
    tuples = changes.payload[changes.at[updates] + CHANGE_TUPLE_KIND]
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
    """Return how many events updates make if the log holds their old rows, or the keys of these, shape (index,)."""
    part = changes.select(index)
    old, new = tuple_pairs(part.payload, part.at + CHANGE_TUPLE, len(version.names), part.ends)
    new = with_old_values(new, old)
    return ChangeEvents(options).update_counts(version, old, new, complete)


def event_counter(options: PostgresOptions) -> Callable[[SegmentData], dict[str, int]] | None:
    """Return a function that counts the events of the transaction that a segment leaves open; None without metadata."""
    if not options.provide_transaction_metadata:
        return None
    make = EventVersions(options)

    def count(data: SegmentData) -> dict[str, int]:
        changes = all_changes(data)
        layouts = LayoutGroups(changes.relations, options)
        event_order = order_events(data, changes, layouts, [make(relation) for relation in layouts.first], options)
        last = len(changes.transactions.lsn) - 1
        return event_order.entries.of_transaction(last)

    return count
