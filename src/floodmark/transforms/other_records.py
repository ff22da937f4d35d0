"""Applies transforms to records that aren't rows: heartbeats, schema changes, notifications and the like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.config.common import CommonOptions
from floodmark.events import gaps, heartbeats, transactions
from floodmark.events.columns import EVENT_SCHEMA, EventGroup, EventRow, assemble, event_schema
from floodmark.events.connect_schema import ConnectSchema, schema_start
from floodmark.events.json_text import Text
from floodmark.notifications import records as notifications
from floodmark.transforms.avro.converter import avro_converters
from floodmark.transforms.chain import Chain
from floodmark.transforms.records import Records
from floodmark.transforms.structs import Written


@dataclass(frozen=True)
class RecordKind:
    """What records are, and how their keys and values have been written.

    Attributes:
        name: what they are, in words, such as ``heartbeats``.
        key: the Connect schema of their keys.
        value: the Connect schema of their values.
    """

    name: str
    key: ConnectSchema
    value: ConnectSchema


HEARTBEATS = RecordKind("heartbeats", heartbeats.KEY_SCHEMA, heartbeats.VALUE_SCHEMA)
TRANSACTIONS = RecordKind("events of transactions", transactions.KEY_SCHEMA, transactions.VALUE_SCHEMA)
GAPS = RecordKind("gaps", gaps.KEY_SCHEMA, gaps.VALUE_SCHEMA)
NOTIFICATIONS = RecordKind("notifications", notifications.KEY_SCHEMA, notifications.VALUE_SCHEMA)
SCHEMA_CHANGES = "schema changes"
"""The name of records whose schemas depend on the connector."""


def transformed(columns: Mapping[str, Text], kind: RecordKind, options: CommonOptions) -> dict[str, Text]:
    """Return the columns of records as transforms make them, for ``EventGroup.of``; the same without transforms.

    Args:
        columns: ``topic``, ``key`` and ``value``, the last two as JSON text with its schema if ``schemas.enable`` says
            so, and others, which aren't changed.
        kind: what the records are.
        options: the source's options.
    """
    key, value, topic = columns["key"], columns["value"], columns["topic"]
    assert isinstance(key, pa.Array)
    if not options.reshapes_records or not len(key):
        return dict(columns)
    rows = len(key)
    key_part, value_part = (
        Written(schema, [_payload(text, schema, options.schemas_enable)], rows)
        for text, schema in ((key, kind.key), (value, kind.value))
    )
    records = Records(kind.name, rows, topic, key_part, value_part, (), np.arange(rows))
    return {**columns, **Chain(options).columns(records)}


def transformed_batch(batch: pa.RecordBatch, kind: RecordKind, options: CommonOptions) -> pa.RecordBatch:
    """Return a batch of records of ``EVENT_SCHEMA`` as transforms make them, with all columns that events have."""
    if not options.reshapes_records:
        return batch
    schema = event_schema(options.binary_columns, options.chooses_partitions)
    if not batch.num_rows:
        return pa.RecordBatch.from_pylist([], schema=schema)
    columns = transformed(dict(zip(batch.schema.names, batch.columns, strict=True)), kind, options)
    changed = assemble([EventGroup.of(np.arange(batch.num_rows), columns)], schema)
    return pa.RecordBatch.from_pylist([], schema=schema) if changed is None else changed


def converted_batch(batch: pa.RecordBatch, kind: RecordKind, options: CommonOptions) -> pa.RecordBatch:
    """Return a batch of records of ``EVENT_SCHEMA`` that no transform changes, in Avro if the converters write it."""
    rows = batch.num_rows
    for side, converter in avro_converters(options).items():
        if rows:
            schema = kind.key if side == "key" else kind.value
            part = Written(schema, [_payload(batch[side], schema, options.schemas_enable)], rows)
            records = Records(kind.name, rows, batch["topic"], None, None, (), np.arange(rows))
            place = batch.schema.get_field_index(side)
            field = batch.schema.field(place).with_type(pa.binary())
            batch = batch.set_column(place, field, converter.column(part, records))
    return batch


def transformed_rows(rows: Sequence[Mapping[str, str]], kind: RecordKind, options: CommonOptions) -> list[EventRow]:
    """Return records as rows of the output, without the columns that are null, as transforms make them."""
    if not options.reshapes_records or not rows:
        return [dict(row) for row in rows]
    batch = transformed_batch(pa.RecordBatch.from_pylist(list(rows), schema=EVENT_SCHEMA), kind, options)
    return [
        {name: value for name, value in row.items() if value is not None and value != []} for row in batch.to_pylist()
    ]


def _payload(text: Text, schema: ConnectSchema, with_schema: bool) -> Text:
    """Return JSON text without the schema that it carries."""
    if not with_schema:
        return text
    start = schema_start(schema)
    assert isinstance(text, pa.Array)
    return pc.binary_slice(text.cast(pa.binary()), len(start.encode()), -1).cast(pa.string())
