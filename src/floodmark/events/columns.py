"""Defines the columns that every event has in Spark, and builds their batches."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))

EVENT_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("headers", HEADERS),
        ("position", pa.string()),
        ("op", pa.string()),
        ("database", pa.string()),
        ("schema", pa.string()),
        ("table", pa.string()),
        ("txid", pa.string()),
        ("source_ts", pa.timestamp("us", tz="UTC")),
    ]
)

PARTITION = "partition"
"""A column that events have if a transform decides on partitions: which of their topic's in Kafka; null: by the key."""
PARTITIONED_SCHEMA = EVENT_SCHEMA.append(pa.field(PARTITION, pa.int32()))
EventRow: TypeAlias = Mapping[str, str | bytes]
"""An event as a row of the output, without the columns that are null."""

KEPT_ROWS = "kept_rows"
"""A column that isn't put out: the numbers of the rows that transforms have left; without it, all rows are."""


def event_schema(binary: Collection[str] = (), partitions: bool = False) -> pa.Schema:
    """Return the columns of events.

    Args:
        binary: the names of those that hold bytes instead of text.
        partitions: whether a transform decides on partitions.
    """
    columns = PARTITIONED_SCHEMA if partitions else EVENT_SCHEMA
    return pa.schema([field.with_type(pa.binary()) if field.name in binary else field for field in columns])


@dataclass
class EventGroup:
    """Events of one table and one kind, made together.

    Attributes:
        order: what the events of a batch are sorted by, shape (rows,).
        columns: the varying columns.
        constants: the columns that are the same for all its events.
    """

    order: NDArray[np.int64]
    columns: dict[str, pa.Array]
    constants: dict[str, str]

    @classmethod
    def of(cls, order: NDArray[np.int64], columns: Mapping[str, str | pa.Array]) -> EventGroup:
        """Return a group of columns; those that are one text become constants."""
        constants = {name: column for name, column in columns.items() if isinstance(column, str)}
        varying: dict[str, pa.Array] = {name: column for name, column in columns.items() if name not in constants}
        kept = varying.pop(KEPT_ROWS, None)
        if kept is not None:
            # What the transform made has these rows already.
            made = ("key", "value", "topic", "headers", PARTITION)
            order = order[kept.to_numpy()]
            varying = {name: column if name in made else column.take(kept) for name, column in varying.items()}
        return cls(order, varying, constants)


def assemble(groups: list[EventGroup], schema: pa.Schema = EVENT_SCHEMA) -> pa.RecordBatch | None:
    """Return the events of groups as one batch in the events' order; None if there are none."""
    groups = [group for group in groups if len(group.order)]
    if not groups:
        return None
    order = np.concatenate([group.order for group in groups])
    rows = len(order)
    group_of = np.repeat(np.arange(len(groups), dtype=np.int32), [len(group.order) for group in groups])
    sort = None if (order[1:] >= order[:-1]).all() else np.argsort(order, kind="stable")
    owner = group_of if sort is None else group_of[sort]
    arrays = []
    for field in schema:
        if all(field.name in group.constants for group in groups):
            values = [group.constants[field.name] for group in groups]
            if len(set(values)) == 1:
                arrays.append(pa.repeat(pa.scalar(values[0], field.type), rows))
            else:
                arrays.append(pa.array(values, field.type).take(pa.array(owner)))
            continue
        parts = {number: part for number, group in enumerate(groups) if (part := _column(group, field)) is not None}
        if not parts:
            arrays.append(pa.nulls(rows, field.type))
            continue
        column = next(iter(parts.values())) if len(parts) == 1 else pa.concat_arrays(parts.values())
        if len(parts) < len(groups):
            # With ``format=tables`` each table has a column. Adding nulls group by group would cost the square of the
            # number of tables, so ``take`` adds them, by each event's place among those that have the column.
            held = np.isin(group_of, list(parts))
            places = np.cumsum(held) - 1
            if sort is not None:
                held, places = held[sort], places[sort]
            column = column.take(pa.array(places, mask=~held))
        elif sort is not None:
            column = column.take(pa.array(sort))
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def header_lists(headers: Sequence[tuple[str, pa.StringArray]], rows: int) -> pa.ListArray:
    """Return the headers of each row, shape (rows,).

    Args:
        headers: their names and values, in their order.
        rows: how many.
    """
    width = len(headers)
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * width)
    if not width:
        return pa.ListArray.from_arrays(offsets, pa.array([], HEADERS.value_type), type=HEADERS)
    # From header by header to row by row.
    at = pa.array(np.arange(width * rows).reshape(width, rows).T.ravel())
    names = pa.array([name for name, _ in headers]).take(pa.array(np.tile(np.arange(width), rows)))
    values = pa.concat_arrays([values for _, values in headers]).take(at).cast(pa.binary())
    return pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type)), type=HEADERS
    )


def _column(group: EventGroup, field: pa.Field) -> pa.Array | None:
    if field.name in group.constants:
        return pa.repeat(pa.scalar(group.constants[field.name], field.type), len(group.order))
    return group.columns.get(field.name)
