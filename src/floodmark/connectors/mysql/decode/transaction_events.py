"""Makes transaction metadata: the ``transaction`` block of events, and the events of the transaction topic."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.changes.change_events import SUBS
from floodmark.changes.event_order import EventOrder
from floodmark.codecs.arrays import text_of
from floodmark.connectors.mysql.binlog import event_types as kinds
from floodmark.connectors.mysql.binlog.transactions import MARIADB_FLAGS
from floodmark.connectors.mysql.decode.events import Events, begins, queries_of
from floodmark.connectors.mysql.decode.row_changes import ROW_BITS, place_columns, times_us
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.events.columns import EventGroup
from floodmark.events.json_text import Joiner, Pieces, closed, string
from floodmark.events.transactions import TransactionTopic
from floodmark.transforms.other_records import TRANSACTIONS, transformed

Numbers = NDArray[np.int64]

_ENDS = (b"COMMIT", b"ROLLBACK")


class Boundaries:
    """Where the transactions of a segment begin and end.

    Attributes:
        begin: index of the event that begins each one, shape (transactions that begin here,).
        end: index of the event that ends each one, shape (transactions that end here,).
        ids: the id of each transaction in events, as JSON, shape (transactions,).
    """

    def __init__(self, events: Events) -> None:
        begun = begins(events.buf, events.kind, events.at, events.end)
        self.begin = np.flatnonzero(begun | _is_explicit(events))
        ended = (events.kind == kinds.XID) | _is_one_phase(events)
        for word in _ENDS:
            ended |= _is_query(events, word)
        ended |= queries_of(events.buf, events.kind, events.at, events.end, b"XA COMMIT ", whole=False)
        self.end = np.flatnonzero(ended)
        known = events.transactions
        offset = known.begin.copy()
        first = events.transaction[self.begin]
        offset[first] = events.offset[self.begin]
        files = pc.utf8_lpad(text_of(known.file), width=6, padding="0")
        place = Joiner().add(f"file={events.base}.").add(files).add(",pos=").add(text_of(offset)).join(len(offset))
        self.ids = closed(string(pc.coalesce(known.gtid, place)))


def _is_query(events: Events, word: bytes) -> NDArray[np.bool_]:
    return queries_of(events.buf, events.kind, events.at, events.end, word)


def _is_explicit(events: Events) -> NDArray[np.bool_]:
    """Return which events are MariaDB GTID events of several events, or of a branch's end, shape (events,)."""
    result: NDArray[np.bool_] = events.kind == kinds.MARIADB_GTID
    index = np.flatnonzero(result)
    flags = events.buf[events.at[index] + MARIADB_FLAGS]
    result[index] = (flags & kinds.STANDALONE == 0) | (flags & kinds.COMPLETED_XA != 0)
    return result


def _is_one_phase(events: Events) -> NDArray[np.bool_]:
    """Return which events commit an XA transaction in one phase; others only prepare it, shape (events,)."""
    result: NDArray[np.bool_] = events.kind == kinds.XA_PREPARE
    index = np.flatnonzero(result)
    result[index] = events.buf[events.at[index]] != 0
    return result


class Blocks:
    """Makes the transaction blocks of a segment's events.

    Args:
        boundaries: the segment's transaction boundaries.
        order: order of the changes that ``event_order`` counts, ascending, shape (changes,).
        event_order: ordinals of the changes' events in their transactions.
    """

    def __init__(self, boundaries: Boundaries, order: Numbers, event_order: EventOrder) -> None:
        self._boundaries = boundaries
        self._order = order
        self._event_order = event_order

    def pieces(self, order: Numbers, table: int, later: int) -> Pieces:
        """Return the pieces of the transaction blocks of some changes."""
        del table
        event_order = self._event_order
        entry = np.searchsorted(self._order, order)
        return [
            '{"id":',
            self._boundaries.ids.take(pa.array(event_order.transaction[entry])),
            ',"total_order":',
            text_of(event_order.total[entry] + (1 + later)),
            ',"data_collection_order":',
            text_of(event_order.in_table[entry] + (1 + later)),
            "}",
        ]


class TransactionEvents:
    """Makes the events of the transaction topic: BEGIN and END.

    Args:
        options: the source's options.
        events: a segment's events.
        boundaries: the segment's transaction boundaries.
        event_order: ordinals of the changes' events in their transactions.
    """

    def __init__(self, options: BinlogOptions, events: Events, boundaries: Boundaries, event_order: EventOrder) -> None:
        self._options = options
        self._topic = TransactionTopic(options)
        self._events = events
        self._boundaries = boundaries
        self._event_order = event_order
        self._times = times_us(events)

    def groups(self, chosen: NDArray[np.bool_], low: int, high: int) -> Iterator[EventGroup]:
        """Yield the events of the chosen binlog events from ``low`` up to and excluding ``high``."""
        begin, end = (
            index[chosen[index] & (index >= low) & (index < high)]
            for index in (self._boundaries.begin, self._boundaries.end)
        )
        if len(begin):
            head = Joiner().add('{"status":"BEGIN","id":').add(self._ids(begin))
            yield self._group(begin, head.add(',"event_count":null,"data_collections":null,"ts_ms":'))
        if len(end):
            counts, collections = self._event_order.totals(len(self._events.transactions.start))
            tx = self._events.transaction[end]
            head = Joiner().add('{"status":"END","id":').add(self._ids(end)).add(',"event_count":')
            head.add(text_of(counts[tx])).add(',"data_collections":[').add(collections.take(pa.array(tx)))
            yield self._group(end, head.add('],"ts_ms":'))

    def _group(self, index: Numbers, head: Joiner) -> EventGroup:
        rows = len(index)
        values = head.add(text_of(self._times[index] // 1000)).add("}").join(rows)
        columns = {
            **transformed(self._topic.columns(self._ids(index), values), TRANSACTIONS, self._options),
            **place_columns(self._events, index, np.ones(rows, np.int64), 0),
        }
        return EventGroup.of((index << ROW_BITS | 1) * SUBS, columns)

    def _ids(self, index: Numbers) -> pa.StringArray:
        return self._boundaries.ids.take(pa.array(self._events.transaction[index]))
