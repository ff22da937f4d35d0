"""Makes transaction metadata: the ``transaction`` block of events, and the events of the transaction topic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.codecs.arrays import text_of
from floodmark.connectors.postgres.decode.event_order import RecordOrder
from floodmark.connectors.postgres.decode.logical_messages import LogicalMessages
from floodmark.connectors.postgres.decode.records import Changes, in_range
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.source_block import NO_XID
from floodmark.connectors.postgres.wire.frames import be_view
from floodmark.connectors.postgres.wire.messages import BEGIN, COMMIT, MESSAGE, PAYLOAD, WAL_LSN
from floodmark.events.json_text import Joiner, Pieces
from floodmark.events.transactions import TransactionTopic

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class TopicEvents:
    """Events of the transaction topic.

    Attributes:
        record: number of each event's record in the segment, shape (events,).
        transaction: index of each event's transaction, shape (events,).
        ordinal: each event's position in its transaction, shape (events,).
        columns: topic, keys and values.
    """

    record: Numbers
    transaction: Numbers
    ordinal: Numbers
    columns: dict[str, str | pa.Array]

    def select(self, low: int, high: int) -> TopicEvents:
        """Return the events whose records lie in ``[low, high)``."""
        part = slice(*np.searchsorted(self.record, [low, high]).tolist())
        columns = {name: one if isinstance(one, str) else one[part] for name, one in self.columns.items()}
        return TopicEvents(self.record[part], self.transaction[part], self.ordinal[part], columns)


class Blocks:
    """Makes the transaction blocks of a segment's events.

    Args:
        changes: all changes of the segment.
        event_order: the order of its events.
    """

    def __init__(self, changes: Changes, event_order: RecordOrder) -> None:
        self._changes = changes
        self._event_order = event_order

    def pieces(self, order: Numbers, table: int, later: int) -> Pieces:
        """Return the pieces of the blocks; ``null`` for a message outside of a transaction.

        Args:
            order: record numbers of the changes that the events are made of, shape (events,).
            table: the index among the change's tables.
            later: how many events of the same change come before.
        """
        changes, event_order, tx = self._changes, self._event_order.entries, self._changes.transactions
        index = np.searchsorted(changes.record, order)
        entry = self._event_order.first[order] + table
        transaction = changes.transaction[index]
        block = (
            Joiner()
            .add('{"id":"')
            .add(text_of(tx.xid[transaction]))
            .add(":")
            .add(text_of(changes.lsn[index]))
            .add('","total_order":')
            .add(text_of(event_order.total[entry] + (1 + later)))
            .add(',"data_collection_order":')
            .add(text_of(event_order.in_table[entry] + (1 + later)))
            .add("}")
            .join(len(entry))
        )
        outside = tx.xid[transaction] == NO_XID
        return [pc.if_else(pa.array(outside), "null", block) if outside.any() else block]


class TransactionEvents:
    """Makes the events for the beginnings and ends of a segment's transactions.

    Args:
        options: the source's options.
        data: the segment.
        changes: all of its changes.
        event_order: the order of its events.
    """

    def __init__(self, options: PostgresOptions, data: SegmentData, changes: Changes, event_order: RecordOrder) -> None:
        self._topic = TransactionTopic(options)
        self._changes = changes
        self._event_order = event_order
        starts = data.starts.astype(np.int64)
        kinds = data.payload[starts + PAYLOAD]
        lsns = be_view(data.payload, ">i8")
        tx = changes.transactions
        real = np.flatnonzero(tx.xid != NO_XID)
        opened = int(changes.opened is not None)
        count = np.bincount(changes.transaction, minlength=len(tx.lsn)) + tx.first_change
        announced = ~self._only_own(count)
        begins, commits = np.flatnonzero(kinds == BEGIN), np.flatnonzero(kinds == COMMIT)
        # The first transaction may have begun before the segment, and the last may end after it.
        began, ended = real[opened:], real[: len(commits)]
        self._begin = (begins[announced[began]], began[announced[began]])
        self._end = (commits[announced[ended]], ended[announced[ended]])
        self._last = count
        self._lsn = lsns[starts + WAL_LSN].astype(np.int64)

    def _only_own(self, count: Numbers) -> NDArray[np.bool_]:
        """Return which transactions hold nothing but Floodmark's own messages."""
        said = self._changes.select(np.flatnonzero(self._changes.kind == MESSAGE))
        own = said.select(np.flatnonzero(LogicalMessages.of(said).own()))
        only: NDArray[np.bool_] = (count > 0) & (np.bincount(own.transaction, minlength=len(count)) == count)
        return only

    def begins(self, after: str, upto: str) -> TopicEvents:
        """Return the beginnings in ``(after, upto]``: each belongs to the transaction's first change."""
        record, tx = self._begin
        lsn = self._changes.transactions.lsn[tx]
        inside = in_range(lsn, np.ones(len(tx), np.int64), after, upto)
        record, tx = record[inside], tx[inside]
        joiner = Joiner().add('{"status":"BEGIN","id":').add(self._ids(record, tx))
        joiner.add(',"event_count":null,"data_collections":null,"ts_ms":').add(self._times(tx)).add("}")
        return self._topic_events(record, tx, np.zeros(len(tx), np.int64), joiner.join(len(tx)))

    def ends(self, after: str, upto: str) -> TopicEvents:
        """Return the ends in ``(after, upto]``: each comes after the transaction's last change."""
        record, tx = self._end
        inside = in_range(self._changes.transactions.lsn[tx], self._last[tx] + 1, after, upto)
        record, tx = record[inside], tx[inside]
        events, collections = self._event_order.entries.totals(len(self._changes.transactions.lsn))
        joiner = Joiner().add('{"status":"END","id":').add(self._ids(record, tx))
        joiner.add(',"event_count":').add(text_of(events[tx]))
        joiner.add(',"data_collections":[').add(collections.take(pa.array(tx)))
        joiner.add('],"ts_ms":').add(self._times(tx)).add("}")
        return self._topic_events(record, tx, self._last[tx] + 1, joiner.join(len(tx)))

    def _topic_events(self, record: Numbers, tx: Numbers, ordinal: Numbers, value: pa.StringArray) -> TopicEvents:
        return TopicEvents(record, tx, ordinal, self._topic.columns(self._ids(record, tx), value))

    def _ids(self, record: Numbers, tx: Numbers) -> pa.StringArray:
        xid = text_of(self._changes.transactions.xid[tx])
        return Joiner().add('"').add(xid).add(":").add(text_of(self._lsn[record])).add('"').join(len(tx))

    def _times(self, tx: Numbers) -> pa.StringArray:
        return text_of(self._changes.transactions.commit_us[tx] // 1000)
