"""Counts each change's events, and orders them in their transaction (``provide.transaction.metadata``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import text_of
from floodmark.events.json_text import Joiner, dumps
from floodmark.events.transactions import hash_map_order

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class EventOrder:
    """The positions of a segment's events in their transactions.

    An entry is a change, or one table of a change that concerns several.

    Attributes:
        total: events of the transaction before each entry, shape (entries,).
        in_table: events of the same table in the transaction before each entry, shape (entries,).
        transaction: each entry's transaction, shape (entries,).
        count: events of each entry, shape (entries,).
        table: index into ``tables``, shape (entries,).
        tables: names of data collections.
        before: events of each table in the first transaction before the segment.
    """

    total: Numbers
    in_table: Numbers
    transaction: Numbers
    count: Numbers
    table: Numbers
    tables: Sequence[str]
    before: Mapping[str, int]

    @classmethod
    def of(
        cls, transaction: Numbers, table: Numbers, count: Numbers, tables: Sequence[str], before: Mapping[str, int]
    ) -> EventOrder:
        """Compute the positions of a segment's events.

        Args:
            transaction: each entry's transaction; 0 is the one that may have begun before the segment.
            table: each entry's table.
            count: events of each entry.
            tables: names of data collections, first those of ``before``.
            before: events of each table in transaction 0 before the segment.
        """
        carried = np.zeros(len(tables), np.int64)
        carried[: len(before)] = list(before.values())
        # One number for each pair of transaction and table.
        in_table = _before(transaction * len(tables) + table, count)
        total = _before(transaction, count)
        if before:
            first = transaction == 0
            total[first] += carried.sum()
            in_table[first] += carried[table[first]]
        return cls(total, in_table, transaction, count, table, tables, before)

    def per_table(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return transaction, table and number of events of each pair with events, by transaction and first event."""
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

    def totals(self, transactions: int) -> tuple[Numbers, pa.StringArray]:
        """Return the number of events of each transaction, and its numbers by table as JSON objects joined by commas.

        Args:
            transactions: how many there are.
        """
        transaction, table, events = self.per_table()
        order = hash_map_order(transaction, table, self.tables)
        names = pa.array([dumps(name) for name in self.tables], pa.string())
        one = (
            Joiner()
            .add('{"data_collection":')
            .add(names.take(pa.array(table[order])))
            .add(',"event_count":')
            .add(text_of(events[order]))
            .add("}")
            .join(len(order))
        )
        # ``order`` keeps the tables of a transaction together, so their numbers are the lengths of the lists.
        ends = np.concatenate([[0], np.cumsum(np.bincount(transaction, minlength=transactions))]).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(ends), one)
        return np.bincount(transaction, events, transactions).astype(np.int64), pc.binary_join(lists, ",")

    def of_transaction(self, number: int) -> dict[str, int]:
        """Return the events of each table in one transaction."""
        transactions, tables, events = self.per_table()
        return {self.tables[tables[i]]: int(events[i]) for i in np.flatnonzero(transactions == number).tolist()}


def _before(group: Numbers, count: Numbers) -> Numbers:
    """Return how many events of the same group come before each entry, shape (entries,)."""
    order = np.argsort(group, kind="stable")
    running = np.cumsum(count[order]) - count[order]
    sorted_group = group[order]
    begins = np.concatenate([[True], sorted_group[1:] != sorted_group[:-1]])[: len(group)]
    # Subtract what comes before the group's first entry. ``running`` never decreases, so its maximum carries that
    # number on to the group's other entries.
    base = np.maximum.accumulate(np.where(begins, running, 0)) if len(group) else running
    result = np.empty(len(group), np.int64)
    result[order] = running - base
    return result
