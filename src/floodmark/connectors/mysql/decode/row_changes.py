"""Represents the row changes of a segment, and makes the source blocks of their events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.changes.layout_groups import TableNames
from floodmark.codecs.arrays import text_of
from floodmark.connectors.mysql import source_block
from floodmark.connectors.mysql.decode.events import Events
from floodmark.connectors.mysql.decode.structure import TableStructure
from floodmark.connectors.mysql.position import Position, event_places, positions, within_payload
from floodmark.events.json_text import Joiner, Pieces, Text, closed, dumps, of_rows, string

Numbers = NDArray[np.int64]

MICRO = 1_000_000
ROW_BITS = 28
"""Bits of a row's number; an event of 1 GB, the largest possible, holds fewer rows than these can count."""


@dataclass
class RowChanges:
    """Changes of rows, in the log's order.

    Attributes:
        events: the segment's events.
        event: index of each change's event, ascending, shape (changes,).
        number: the row in the event, from 1, shape (changes,).
        kind: ``changes.changes.INSERT`` …, shape (changes,).
        relation: index into ``relations``, shape (changes,).
    """

    events: Events
    event: Numbers
    number: Numbers
    kind: NDArray[np.uint8]
    relation: Numbers
    relations: Sequence[TableStructure]

    def __len__(self) -> int:
        return len(self.event)

    @property
    def order(self) -> Numbers:
        """Ascending numbers of the changes, shape (changes,)."""
        return self.event << ROW_BITS | self.number

    def select(self, index: Numbers | slice) -> RowChanges:
        """Return some of the changes."""
        return replace(
            self,
            event=self.event[index],
            number=self.number[index],
            kind=self.kind[index],
            relation=self.relation[index],
        )

    def place(self, index: int) -> str:
        """Return the position of one change."""
        events, event = self.events, int(self.event[index])
        transaction = int(events.transactions.start[events.transaction[event]])
        offset, row = within_payload(events.offset[[event]], events.inner[[event]] + self.number[index])
        return str(Position(events.epoch, int(events.file[event]), transaction, int(offset[0]), int(row[0])))

    def raw(self, index: int) -> bytes:
        """Return the body of one change's event."""
        return self.events.body(int(self.event[index]))

    def columns(self, sub: int, names: TableNames) -> dict[str, Text]:
        """Return the columns of the changes' events that hold their position in the log, and their table."""
        place = place_columns(self.events, self.event, self.number, sub)
        return {"topic": names.topic, "database": names.schema, "table": names.table, **place}


def place_columns(events: Events, event: Numbers, number: Numbers, sub: int) -> dict[str, pa.Array]:
    """Return the columns that hold the position, transaction and time of events.

    Args:
        events: the segment's events.
        event: index of the binlog event that each belongs to, shape (rows,).
        number: number of its row in that event, from 1, shape (rows,).
        sub: their ordinal among the events of one row.
    """
    transaction = events.transaction[event]
    known = events.transactions
    offset, row = within_payload(events.offset[event], events.inner[event] + number)
    places = events.places[event]
    if len(row) and (offset != events.offset[event]).any():
        places = event_places(events.epoch, events.file[event], known.start[transaction], offset)
    return {
        "position": positions(places, row, sub),
        "txid": known.gtid.take(pa.array(transaction)),
        "source_ts": pa.array(times_us(events)[event]).cast(pa.timestamp("us", tz="UTC")),
    }


def times_us(events: Events) -> Numbers:
    """Return when events happened, microseconds since the epoch, shape (events,).

    It is the commit time on the transaction's original server if logged, else the second in which the statement began.
    """
    commit = events.transactions.commit_us[events.transaction]
    return np.where(commit >= 0, commit, events.timestamp * MICRO)


class StreamedSource:
    """Makes the source blocks of streamed changes; the parts that all rows of an event share are built once.

    Args:
        flavor: ``mysql`` or ``mariadb``.
        prefix: the option ``topic.prefix``.
        events: the segment's events.
        queries: the statement that each event comes from; None: source blocks don't include it.
        apart: whether each field is a piece of its own, as transforms want them.
    """

    def __init__(
        self, flavor: str, prefix: str, events: Events, queries: pa.StringArray | None, apart: bool = False
    ) -> None:
        self._events = events
        known, transaction = events.transactions, pa.array(events.transaction)
        rows = len(events)
        micros = times_us(events)
        us = text_of(micros)
        gtid = closed(string(known.gtid)).take(transaction)
        threads = pc.if_else(pa.array(known.thread < 0), "null", text_of(known.thread)).take(transaction)
        numbers = pc.utf8_lpad(text_of(events.file), width=6, padding="0")
        base = dumps(events.base)[1:-1]
        query_json = "null" if queries is None else closed(string(queries))
        begin = source_block.head(flavor, prefix)
        millis = text_of(micros // 1000)
        self._head = Joiner().add(begin).add(millis).add(',"snapshot":"false","db":').parts(rows, apart)
        self._times = Joiner().add(us).add(',"ts_ns":').add(us).add('000,"table":').parts(rows, apart)
        self._place = (
            Joiner()
            .add(text_of(events.server))
            .add(',"gtid":')
            .add(gtid)
            .add(f',"file":"{base}.')
            .add(numbers)
            .add('","pos":')
            .add(text_of(events.shown_offset))
            .add(',"row":')
            .parts(rows, apart)
        )
        self._end = Joiner().add(',"thread":').add(threads).add(',"query":').add(query_json).add("}").parts(rows, apart)

    def pieces(self, names: TableNames, changes: RowChanges) -> Pieces:
        """Return the pieces of the source blocks of some changes."""
        event = pa.array(changes.event)
        database, table = names.source
        return [
            *of_rows(self._head, event),
            database,
            *of_rows(self._times, event),
            table,
            *of_rows(self._place, event),
            text_of(changes.number - 1),
            *of_rows(self._end, event),
        ]
