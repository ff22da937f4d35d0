"""Makes transaction metadata: the ``transaction`` block of events, and the events of the transaction topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.changes.change_events import SUBS
from floodmark.changes.event_order import EventOrder
from floodmark.codecs.arrays import text_of
from floodmark.config.common import CommonOptions
from floodmark.connectors.oracle.decode.row_changes import MICROS, CommittedRows
from floodmark.connectors.oracle.position import positions
from floodmark.events.columns import EventGroup
from floodmark.events.json_text import Joiner, Pieces
from floodmark.events.transactions import TransactionTopic
from floodmark.transforms.other_records import TRANSACTIONS, transformed

Numbers = NDArray[np.int64]

WIDTH = 4
"""The order of a change is this many times its place, so that there is room before it and behind it."""
BEGINS, CHANGES, ENDS = 1, 2, 3
"""What is added to that."""


class TransactionMetadata:
    """The metadata of whole transactions.

    Args:
        options: the source's options.
        rows: their changes.
        counts: how many events each makes, shape (rows,).
        table: index into ``tables``, shape (rows,).
        tables: names of data collections.
    """

    def __init__(
        self, options: CommonOptions, rows: CommittedRows, counts: Numbers, table: Numbers, tables: list[str]
    ) -> None:
        self._options = options
        self._topic = TransactionTopic(options)
        self._rows = rows
        before: Mapping[str, int] = {}
        self._order = EventOrder.of(rows.transactions, table, counts, tables, before)

    def pieces(self, order: Numbers, table: int, later: int) -> Pieces:
        """Return the pieces of the transaction blocks of some changes."""
        del table
        place = order // WIDTH
        return [
            '{"id":"',
            self._rows.name.take(pa.array(place)),
            '","total_order":',
            text_of(self._order.total[place] + (1 + later)),
            ',"data_collection_order":',
            text_of(self._order.in_table[place] + (1 + later)),
            "}",
        ]

    def groups(self) -> Iterator[EventGroup]:
        """Yield the events of the transactions' beginnings and ends."""
        made = np.flatnonzero(self._order.count > 0)
        if not len(made):
            return
        found, first = np.unique(self._order.transaction[made], return_index=True)
        last = np.append(first[1:], len(made)) - 1
        counts, collections = self._order.totals(int(found[-1]) + 1)
        begin, end = made[first], made[last]
        head = Joiner().add('{"status":"BEGIN","id":').add(self._ids(begin))
        yield self._group(begin, BEGINS, begin, head.add(',"event_count":null,"data_collections":null,"ts_ms":'))
        head = Joiner().add('{"status":"END","id":').add(self._ids(end)).add(',"event_count":')
        head.add(text_of(counts[found])).add(',"data_collections":[').add(collections.take(pa.array(found)))
        # As in Debezium, it ends when it began.
        yield self._group(end, ENDS, begin, head.add('],"ts_ms":'))

    def _group(self, place: Numbers, part: int, time: Numbers, head: Joiner) -> EventGroup:
        rows, seconds = self._rows, self._rows.seconds[time]
        values = head.add(text_of(seconds)).add("000}").join(len(place))
        number = rows.ordinal[place] - 1 if part == BEGINS else rows.ordinal[place] + 1
        xid = rows.xid.take(pa.array(place))
        columns = {
            **transformed(self._topic.columns(self._ids(place), values), TRANSACTIONS, self._options),
            "position": positions(rows.commit_scn[place], rows.thread[place], xid, number, 0),
            "txid": rows.name.take(pa.array(place)),
            "source_ts": pa.array(seconds * MICROS).cast(pa.timestamp("us", tz="UTC")),
        }
        return EventGroup.of((place * WIDTH + part) * SUBS, columns)

    def _ids(self, place: Numbers) -> pa.StringArray:
        return Joiner().add('"').add(self._rows.name.take(pa.array(place))).add('"').join(len(place))
