"""Generated tables and changes: what events hold is what the server says of the rows, from snapshot and stream.

A case is a table: random types, arity, defaults, key and replica identity, with rows and changes to them. Many tables
share a database and a query. What is right is worked out from the server's text (``tests/support/random_types.py``).
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import drop, make_source
from tests.support import random_types
from tests.support.inprocess import InProcess
from tests.support.random_types import ARRAYS, MODES, SCALARS, SETUP, Kind, Options

CASES = int(os.environ.get("FLOODMARK_GENERATED_TYPES", "1000"))
VERSIONS = 2
TABLES = 50
"""In a database: each costs milliseconds, a database and a query a second."""

Row = list[Any]
"""A row's values as the server's text: None for NULL, nested lists for arrays."""


@dataclass(frozen=True)
class Column:
    """A column of a generated table."""

    kind: Kind
    array: bool
    required: bool
    default: str | None

    @property
    def type(self) -> str:
        return f"{self.kind.name}[]" if self.array else self.kind.name


@dataclass(frozen=True)
class Shape:
    """A generated table: its columns, how many of the first are its key, and whether old rows are logged in full."""

    columns: tuple[Column, ...]
    keys: int
    full: bool


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Draw a table."""
    keys = draw(st.integers(0, 2))
    columns = []
    for number in range(draw(st.integers(max(keys, 1), 7))):
        array = draw(st.integers(0, 3)) == 0
        kinds = ARRAYS if array else SCALARS
        kind = draw(st.sampled_from([kind for kind in kinds if kind.keys] if number < keys else kinds))
        has_default = kind.default and not array and draw(st.integers(0, 2)) == 0
        default = draw(kind.literals) if has_default else None
        columns.append(Column(kind, array, number < keys or draw(st.booleans()), default))
    return Shape(tuple(columns), keys, draw(st.booleans()))


@st.composite
def values(draw: st.DrawFn, column: Column) -> Any:
    """Draw a value of a column as text that the server reads."""
    if not column.required and draw(st.integers(0, 4)) == 0:
        return None
    if not column.array:
        return draw(column.kind.literals)
    elements = st.none() | column.kind.literals
    if draw(st.integers(0, 4)) == 0:
        width = draw(st.integers(1, 3))
        return draw(st.lists(st.lists(elements, min_size=width, max_size=width), min_size=1, max_size=3))
    return draw(st.lists(elements, max_size=4))


@dataclass
class Case:
    """A table with its initial rows and changes: ``("insert" | "update" | "delete", row)``."""

    shape: Shape
    rows: list[Row]
    changes: list[tuple[str, Row]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a table with what happens to it."""
    shape = draw(shapes())
    rows = st.tuples(*(values(column) for column in shape.columns)).map(list)
    kinds = st.sampled_from(("insert", "insert", "update", "delete"))
    return Case(shape, draw(st.lists(rows, max_size=2)), draw(st.lists(st.tuples(kinds, rows), max_size=4)))


class Table:
    """A table on the server, and the events that are due for it.

    Attributes:
        expected: operation, old row and new row of each event, as the server's text.
    """

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], name: str, case: Case) -> None:
        self._connection = connection
        self.name = name
        self.shape = case.shape
        self.expected: list[tuple[str, Row | None, Row | None]] = []
        self.defaults: Row = []
        self._present: list[tuple[str, Row]] = []
        self._create()

    def _create(self) -> None:
        body = ["seq integer GENERATED ALWAYS AS IDENTITY"]
        defaults = []
        for number, column in enumerate(self.shape.columns):
            default = f" DEFAULT {quoted(column.default)}" if column.default is not None else ""
            body.append(f"c{number} {column.type}{default}{' NOT NULL' if column.required else ''}")
            value = "NULL" if column.default is None else f"format('%s', {quoted(column.default)}::{column.type})"
            defaults.append(f"to_jsonb({value}::text)")
        if self.shape.keys:
            body.append(f"PRIMARY KEY ({', '.join(f'c{number}' for number in range(self.shape.keys))})")
        self.statement = f"CREATE TABLE {self.name} ({', '.join(body)})"
        self._run(self.statement)
        if self.shape.full or not self.shape.keys:
            self._run(f"ALTER TABLE {self.name} REPLICA IDENTITY FULL")
        self.defaults = self._run(f"SELECT jsonb_build_array({', '.join(defaults)})")[0][0]

    def change(self, kind: str, row: Row) -> None:
        """Insert, update or delete."""
        if kind == "insert":
            self.insert(row)
        elif kind == "update":
            self.update(row)
        else:
            self.delete()

    def insert(self, row: Row, operation: str = "c") -> None:
        """Insert a row; one whose key is there already isn't."""
        inserted = self._run(
            f"INSERT INTO {self.name} ({', '.join(self._names())}) VALUES ({self._literals(row)}) "
            f"ON CONFLICT DO NOTHING RETURNING ctid::text, {self._texts()}"
        )
        for ctid, text in inserted:
            self._present.append((ctid, text))
            self.expected.append((operation, None, text))

    def update(self, row: Row) -> None:
        """Change all columns of the first row."""
        if not self._present:
            return
        ctid, old = self._present.pop(0)
        changes = ", ".join(
            f"{name} = {literal(column, value)}"
            for name, column, value in zip(self._names(), self.shape.columns, row, strict=True)
        )
        keys = [f"c{number} = {literal(self.shape.columns[number], row[number])}" for number in range(self.shape.keys)]
        taken = (
            f"EXISTS (SELECT FROM {self.name} t WHERE {' AND '.join(keys)} AND ctid <> '{ctid}')" if keys else "false"
        )
        done = self._run(
            f"UPDATE {self.name} SET {changes} WHERE ctid = '{ctid}' AND NOT {taken} "
            f"RETURNING ctid::text, {self._texts()}"
        )
        if not done:
            self._present.append((ctid, old))
            return
        ctid, new = done[0]
        self._present.append((ctid, new))
        if self.shape.keys and old[: self.shape.keys] != new[: self.shape.keys]:
            self.expected += [("d", self._old(old), None), ("tombstone", None, None), ("c", None, new)]
        else:
            self.expected.append(("u", old if self.shape.full or not self.shape.keys else None, new))

    def delete(self) -> None:
        """Delete the first row."""
        if not self._present:
            return
        ctid, old = self._present.pop(0)
        self._run(f"DELETE FROM {self.name} WHERE ctid = '{ctid}'")
        self.expected += [("d", self._old(old), None), ("tombstone", None, None)]

    def _old(self, row: Row) -> Row:
        """Return what the log has of an old row: all of it, or its key."""
        if self.shape.full or not self.shape.keys:
            return row
        return [value if number < self.shape.keys else LACKING for number, value in enumerate(row)]

    def _names(self) -> list[str]:
        return [f"c{number}" for number in range(len(self.shape.columns))]

    def _texts(self) -> str:
        """Return the SQL of a row's values as text, in a JSON array."""
        texts = (
            f"to_jsonb({name}::text::text[])"
            if column.array
            else f"CASE WHEN num_nulls({name}) = 0 THEN to_jsonb(format('%s', {name})) END"
            for name, column in zip(self._names(), self.shape.columns, strict=True)
        )
        return f"jsonb_build_array({', '.join(texts)})"

    def _literals(self, row: Row) -> str:
        return ", ".join(literal(column, value) for column, value in zip(self.shape.columns, row, strict=True))

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


LACKING = object()
"""Stands for a value that the log lacks."""


def quoted(text: str) -> str:
    """Return an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def literal(column: Column, value: Any) -> str:
    """Return a value as SQL."""
    if value is None:
        return f"NULL::{column.type}"
    return f"{quoted(array_text(value) if column.array else value)}::{column.type}"


def array_text(value: Any) -> str:
    """Return an array as the server reads it."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "{" + ",".join(map(array_text, value)) + "}"


def wrong(table: Table, events: list[dict[str, Any]], options: Options) -> Iterator[str]:
    """Yield what is wrong in a table's events."""
    if len(events) != len(table.expected):
        yield f"{len(events)} events, not {len(table.expected)}: {[event['op'] for event in events]} {table.expected}"
        return
    for event, (operation, before, after) in zip(events, table.expected, strict=True):
        if operation == "tombstone":
            if event["value"] is not None:
                yield "an event instead of a tombstone"
            continue
        value = json.loads(event["value"])
        if value["op"] != operation:
            yield f"operation {value['op']}, not {operation}"
        for side, row in (("before", before), ("after", after)):
            yield from wrong_row(table, value[side], row, options, f"{operation} {side}")
        key = json.loads(event["key"]) if event["key"] else {}
        image = value["after"] or value["before"]
        if key != {f"c{number}": image[f"c{number}"] for number in range(table.shape.keys)}:
            yield f"{operation}: key {key}"


def wrong_row(table: Table, got: Any, row: Row | None, options: Options, where: str) -> Iterator[str]:
    """Yield what is wrong in an image of a row."""
    if row is None or got is None:
        if row is not None or got is not None:
            yield f"{where}: {got} for {row}"
        return
    known = options["include.unknown.datatypes"] == "true"
    names = ["seq"]
    for number, (column, text) in enumerate(zip(table.shape.columns, row, strict=True)):
        name = f"c{number}"
        if column.kind.check is random_types.unknown and not known:
            continue
        names.append(name)
        value, default = got.get(name, "missing"), table.defaults[number]
        if text is LACKING:
            right = lacking(column, value, default, options)
        elif text is None:
            right = value is None if default is None else holds(column, value, default, options)
        else:
            right = holds(column, value, text, options)
        if not right:
            yield f"{where}: {column.type} {name} {value!r} for {text!r}, default {default!r}"
    if list(got) != names:
        yield f"{where}: fields {list(got)}, not {names}"


def lacking(column: Column, value: Any, default: str | None, options: Options) -> bool:
    """Return whether a value that the log lacks is the default, null, or the type's zero."""
    if default is not None:
        return holds(column, value, default, options)
    if not column.required:
        return value is None
    if column.array:
        return bool(value == [])
    return value is not None if column.kind.zero is None else holds(column, value, column.kind.zero, options)


def holds(column: Column, value: Any, text: Any, options: Options) -> bool:
    """Return whether a value is right, its elements if it is an array."""
    if column.array and isinstance(text, list):
        return (
            isinstance(value, list)
            and len(value) == len(text)
            and all(
                (one is None if part is None else holds(column, one, part, options))
                for one, part in zip(value, text, strict=True)
            )
        )
    try:
        return column.kind.check(value, text, options)
    except (TypeError, ValueError, KeyError):
        return False


def drawn(count: int, seed_number: int) -> list[Case]:
    """Return so many cases."""
    found: list[Case] = []

    @seed(seed_number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found[:count]


def run(server: EmbeddedPostgres, state: Path, batch: list[Case], options: Options) -> list[str]:
    """Capture a database with these tables; return what is wrong."""
    source = make_source(server, state, **options)
    source.execute(*SETUP)
    settings_ = "-c TimeZone=UTC -c lc_monetary=C"
    with psycopg.connect(source.conninfo, options=settings_) as connection:
        tables = [Table(connection, f"t{number}", case) for number, case in enumerate(batch)]
        for table, case in zip(tables, batch, strict=True):
            for row in case.rows:
                table.insert(row, "r")
        connection.commit()
        query = InProcess(source.options)
        events = query.drain()
        for table, case in zip(tables, batch, strict=True):
            for kind, row in case.changes:
                table.change(kind, row)
        connection.commit()
        events += query.drain()
        query.stop()
    drop(source)
    found = []
    for table in tables:
        own = [event for event in events if event["table"] == table.name]
        found += [f"{table.statement}: {text}" for text in wrong(table, own, options)]
    return found


def test_events_hold_what_the_server_says(server: EmbeddedPostgres, tmp_path: Path) -> None:
    number = int(os.environ.get("FLOODMARK_GENERATED_SEED", random.SystemRandom().randrange(1 << 31)))
    modes = random.Random(number)
    todo = drawn(CASES // VERSIONS, number)
    for first in range(0, len(todo), TABLES):
        options = {name: modes.choice(values) for name, values in MODES.items()}
        found = run(server, tmp_path / str(first), todo[first : first + TABLES], options)
        assert not found, f"FLOODMARK_GENERATED_SEED={number}, {options}:\n" + "\n".join(found[:10])
