"""Giving events their place in the log; and those that belong to no table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.config.postgres import PostgresOptions
from floodmark.connectors.postgres.log.event_orders import EventOrders
from floodmark.connectors.postgres.log.logical_messages import NO_TABLE, LogicalMessages, MessageEvents
from floodmark.connectors.postgres.log.messages import MESSAGE
from floodmark.connectors.postgres.log.records import Changes
from floodmark.connectors.postgres.log.transaction_events import Told, block_pieces
from floodmark.connectors.postgres.rows.source_block import StreamedSource
from floodmark.events.columns import EventGroup
from floodmark.events.json_text import fixed_width, hex_digits


def placed(
    order: NDArray[np.int64],
    changes: Changes,
    transaction: NDArray[np.int64],
    ordinal: NDArray[np.int64],
    sub: int,
    columns: Mapping[str, str | pa.Array],
    options: PostgresOptions,
) -> EventGroup:
    """Return events with the columns that tell their place in the log.

    Args:
        order: what a batch is sorted by, shape (events,).
        changes: of the segment.
        transaction: index of each event's transaction, shape (events,).
        ordinal: each event's place in its transaction, shape (events,).
        sub: their place among the events of one change.
        columns: the other columns.
        options: the source's options.
    """
    index = pa.array(transaction)
    tx = changes.transactions
    return EventGroup.of(
        order,
        {
            **columns,
            "database": options.dbname,
            "position": positions(tx.lsn[transaction], ordinal, sub),
            "txid": tx.xid_texts.take(index),
            "source_ts": pa.array(tx.commit_us).take(index).cast(pa.timestamp("us", tz="UTC")),
        },
    )


def positions(lsn: NDArray[np.int64], ordinal: NDArray[np.int64], sub: int) -> pa.StringArray:
    """Return the events' positions: ``<LSN>-<ordinal>-<sub>`` in hexadecimal."""
    matrix = np.full((len(lsn), 28), ord("-"), np.uint8)
    matrix[:, :16] = hex_digits(lsn.astype(np.uint64), 16)
    matrix[:, 17:25] = hex_digits(ordinal.astype(np.uint64), 8)
    matrix[:, 26:] = np.frombuffer(f"{sub:02X}".encode(), np.uint8)
    return fixed_width(matrix)


def told_group(told: Told, changes: Changes, options: PostgresOptions) -> EventGroup:
    """Return the events of the transaction topic."""
    return placed(told.record * 256, changes, told.transaction, told.ordinal, 0, told.columns, options)


def message_groups(
    changes: Changes, source: StreamedSource, orders: EventOrders | None, options: PostgresOptions
) -> Iterator[EventGroup]:
    """Return the events of the logical decoding messages among changes.

    Args:
        changes: of any kind.
        source: makes the source blocks.
        orders: of the segment's events; None: they have no transaction block.
        options: the source's options.
    """
    index = np.flatnonzero(changes.kind == MESSAGE)
    if not len(index):
        return
    messages = LogicalMessages.of(changes.select(index))
    wanted = np.flatnonzero(messages.wanted(options))
    said = changes.select(index[wanted])
    pieces = source.pieces(NO_TABLE, said.transaction, said.lsn)
    block = None if orders is None else block_pieces(said, orders, orders.first[said.record], 0)
    events = MessageEvents(options)
    columns = {"topic": events.topic, "op": "m", **events.columns(messages.take(wanted), pieces, block)}
    yield placed(said.record * 256, said, said.transaction, said.ordinal, 0, columns, options)
