"""Applies captured events, and compares the result with the source tables value by value."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import psycopg
import pyarrow as pa
from psycopg.rows import TupleRow

from floodmark.json_data import Json

UNAVAILABLE = "__debezium_unavailable_value"
EPOCH = datetime(1970, 1, 1)

Row = dict[str, object]
"""A row's values as the source's driver returns them, by the columns' names."""
Rows = dict[tuple[object, ...], Row]
"""Rows by the values of their keys."""
Shown = dict[str, Json]
"""A row's values as events represent them, by the columns' names."""


class Event(NamedTuple):
    """One captured event; ``value`` is None in a tombstone."""

    table: str
    key: str
    value: str | None
    position: str


class Column(NamedTuple):
    """A column of a source table."""

    name: str
    type: str
    scale: int


@dataclass(frozen=True)
class TableShape:
    """The structure that is needed to decode a table's events."""

    columns: tuple[Column, ...]
    key: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """The differences between a table and what was captured of it."""

    table: str
    rows: int
    captured: int
    missing: int
    unexpected: int
    different: int
    example: str = ""

    @property
    def equal(self) -> bool:
        """Whether there is no difference at all."""
        return self.missing == self.unexpected == self.different == 0


def apply_events(events: Iterable[Event]) -> dict[str, dict[str, Shown]]:
    """Apply events in the order of their positions.

    Returns:
        By table and key, the row as the events represent it.
    """
    state: dict[str, dict[str, Shown]] = {}
    for event in sorted(events, key=lambda event: event.position):
        rows = state.setdefault(event.table, {})
        after = None if event.value is None else json.loads(event.value)["after"]
        if after is None:
            rows.pop(event.key, None)
            continue
        # The log leaves out large values that an update didn't change: they are kept.
        before = rows.get(event.key, {})
        rows[event.key] = {name: before.get(name) if value == UNAVAILABLE else value for name, value in after.items()}
    return state


def table_shape(conn: psycopg.Connection[TupleRow], table: str) -> TableShape:
    """Query the source for a table's columns and key."""
    columns = conn.execute(
        """
        SELECT column_name, data_type, coalesce(numeric_scale, 0) FROM information_schema.columns
        WHERE table_schema = 'public' AND table_name = %s ORDER BY ordinal_position
        """,
        (table,),
    ).fetchall()
    key = conn.execute(
        """
        SELECT a.attname FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, n)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE i.indisprimary AND i.indrelid = %s::regclass ORDER BY k.n
        """,
        (f"public.{table}",),
    ).fetchall()
    return TableShape(tuple(Column(*column) for column in columns), tuple(name for (name,) in key))


def source_rows(conn: psycopg.Connection[TupleRow], table: str, shape: TableShape) -> Rows:
    """Read a source table."""
    names = [column.name for column in shape.columns]
    rows = (dict(zip(names, row, strict=True)) for row in conn.execute(f'SELECT * FROM public."{table}"'))
    return {tuple(row[name] for name in shape.key): row for row in rows}


def decoded_rows(rows: Iterable[Mapping[str, Json]], shape: TableShape) -> Rows:
    """Convert rows from their representation in events to what the source's driver returns."""
    decoded = ({column.name: decode(row.get(column.name), column) for column in shape.columns} for row in rows)
    return {tuple(row[name] for name in shape.key): row for row in decoded}


def mirrored_rows(table: Path, shape: TableShape) -> Rows:
    """Read a Delta table and convert its rows to what the source's driver returns.

    Args:
        table: its folder.
        shape: the source's table.
    """
    # Where this is missing, the mirror's start says so.
    from deltalake import DeltaTable, QueryBuilder

    names = ", ".join(f'"{column.name}"' for column in shape.columns)
    query = QueryBuilder().register("mirror", DeltaTable(str(table))).execute(f"SELECT {names} FROM mirror")
    rows = [
        {column.name: _from_delta(row[column.name], column.type) for column in shape.columns}
        for row in pa.table(query.read_all()).to_pylist()
    ]
    return {tuple(row[name] for name in shape.key): row for row in rows}


def _from_delta(value: object, kind: str) -> object:
    return _FROM_DELTA[kind](value) if isinstance(value, str) and kind in _FROM_DELTA else value


def compare(table: str, source: Rows, captured: Rows) -> Comparison:
    """Compare a table's rows with the captured ones, by key and value by value."""
    missing = source.keys() - captured.keys()
    unexpected = captured.keys() - source.keys()
    different = {
        key: [name for name, value in row.items() if not _same(value, captured[key][name])]
        for key, row in source.items()
        if key in captured
    }
    different = {key: names for key, names in different.items() if names}
    example = ""
    if different:
        key, names = next(iter(different.items()))
        example = f"{key}: {names[0]} is {source[key][names[0]]!r}, captured {captured[key][names[0]]!r}"
    elif missing or unexpected:
        word, keys = ("missing", missing) if missing else ("unexpected", unexpected)
        example = f"{word}: {next(iter(keys))}"
    return Comparison(table, len(source), len(captured), len(missing), len(unexpected), len(different), example)


def decode(value: Json, column: Column) -> object:
    """Convert a value from its representation in events to what the source's driver returns."""
    try:
        if isinstance(value, str) and column.type in _FROM_TEXT:
            return _FROM_TEXT[column.type](value, column.scale)
        if isinstance(value, int | float) and column.type in _FROM_NUMBER:
            return _FROM_NUMBER[column.type](value)
    except ValueError:
        pass
    # Where this isn't how the type is represented, the comparison shows it.
    return value


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _decimal(value: str, scale: int) -> Decimal:
    unscaled = int.from_bytes(base64.b64decode(value), "big", signed=True)
    return Decimal(unscaled).scaleb(-scale)


def _timestamp(micros: float) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def _zoned(text: str, _: int) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


_FROM_TEXT: dict[str, Callable[[str, int], object]] = {
    "numeric": _decimal,
    "double precision": lambda text, _: float(text),
    "timestamp with time zone": _zoned,
    "uuid": lambda text, _: uuid.UUID(text),
    "jsonb": lambda text, _: json.loads(text),
}
"""Functions of the text and the column's scale, by the type's name."""
_FROM_DELTA: dict[str, Callable[[str], object]] = {"uuid": uuid.UUID, "jsonb": json.loads}
"""Functions of the text, by the type's name, for what Spark has no type for."""
_FROM_NUMBER: dict[str, Callable[[float], object]] = {
    "double precision": float,
    "date": lambda days: date(1970, 1, 1) + timedelta(days=days),
    "timestamp without time zone": _timestamp,
}
