"""Makes the events that belong to no table: those of logical decoding messages, and of the transaction topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.connectors.postgres.decode.logical_messages import NO_TABLE, LogicalMessages, MessageEvents
from floodmark.connectors.postgres.decode.records import Changes
from floodmark.connectors.postgres.decode.transaction_events import Blocks, TopicEvents
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.source_block import StreamedSource
from floodmark.connectors.postgres.wire.messages import MESSAGE
from floodmark.events.columns import EventGroup
from floodmark.transforms.other_records import TRANSACTIONS, transformed


def placed(
    order: NDArray[np.int64],
    changes: Changes,
    transaction: NDArray[np.int64],
    ordinal: NDArray[np.int64],
    sub: int,
    columns: Mapping[str, str | pa.Array],
    options: PostgresOptions,
) -> EventGroup:
    """Return events with the columns of their position in the log.

    Args:
        order: the batch's sort key, shape (events,).
        changes: changes of the segment.
        transaction: index of each event's transaction, shape (events,).
        ordinal: each event's position in its transaction, shape (events,).
        sub: their order among the events of one change.
        columns: the other columns.
        options: the source's options.
    """
    place = changes.transactions.columns(transaction, ordinal, sub)
    return EventGroup.of(order, {**columns, "database": options.dbname, **place})


def topic_group(found: TopicEvents, changes: Changes, options: PostgresOptions) -> EventGroup:
    """Return the events of the transaction topic."""
    columns = transformed(found.columns, TRANSACTIONS, options)
    return placed(found.record * 256, changes, found.transaction, found.ordinal, 0, columns, options)


def message_groups(
    changes: Changes, source: StreamedSource, blocks: Blocks | None, options: PostgresOptions
) -> Iterator[EventGroup]:
    """Yield the events of the logical decoding messages among changes.

    Args:
        changes: changes of any kind.
        source: makes the source blocks.
        blocks: makes their transaction blocks; None if they have none.
        options: the source's options.
    """
    index = np.flatnonzero(changes.kind == MESSAGE)
    if not len(index):
        return
    messages = LogicalMessages.of(changes.select(index))
    wanted = np.flatnonzero(messages.wanted(options))
    said = changes.select(index[wanted])
    pieces = source.pieces(NO_TABLE, said.transaction, said.lsn)
    block = None if blocks is None else blocks.pieces(said.record, 0, 0)
    events = MessageEvents(options)
    columns = {"topic": events.topic, "op": "m", **events.columns(messages.take(wanted), pieces, block)}
    columns = transformed(columns, events.kind, options)
    yield placed(said.record * 256, said, said.transaction, said.ordinal, 0, columns, options)
