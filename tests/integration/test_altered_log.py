"""Tables that are altered between changes that stand in the log: each event has what was in force for its change.

Random walks of DDL and DML; the server itself is asked at each step for names, columns, key and rows.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import Source, drop, make_source
from tests.support.inprocess import InProcess

STEPS = 60
SEEDS = range(10)
VALUES = {"integer": "7", "bigint": "8000000000", "text": "'some text'", "numeric(8,2)": "12.50", "boolean": "true"}
TYPES = tuple(VALUES)
VALUES |= {"numeric(12,4)": "1.2500", "varchar": "'v'"}
RETYPED = {"integer": "bigint", "bigint": "text", "numeric(8,2)": "numeric(12,4)", "boolean": "text", "text": "varchar"}
KEY = """
    SELECT coalesce(array_agg(a.attname::text ORDER BY k.n), '{}') FROM pg_index i
    CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, n)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    WHERE i.indrelid = %s::regclass AND i.indisprimary
"""


@dataclass
class Expected:
    """What an event must be: the fields in their order; ``marked`` tells whether the log itself names the key."""

    topic: str
    op: str
    key: list[tuple[str, Any]]
    before: list[tuple[str, Any]] | None
    after: list[tuple[str, Any]] | None
    marked: bool


class Walk:
    """A table, and what its changes must become."""

    def __init__(self, source: Source, seed: int, settle: Callable[[], None]) -> None:
        self.random = random.Random(seed)
        self.settle = settle
        self.conn = psycopg.connect(source.conninfo, autocommit=True)
        self.expected: list[Expected] = []
        self.numbers = iter(range(1, 1 << 20))
        self.schema, self.table = "public", "t"
        self.open = False
        self.conn.execute("CREATE SCHEMA one; CREATE SCHEMA two")
        self.create()

    def create(self) -> None:
        self.base, self.part, self.full = "id", "part", False
        self.columns: dict[str, str] = {}
        self.conn.execute(f"CREATE TABLE {self.name} (id integer PRIMARY KEY, part integer NOT NULL)".encode())

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"

    def run(self) -> None:
        """Walk, and end outside of a transaction."""
        changes = (self.insert, self.insert, self.insert, self.update, self.update, self.move, self.delete)
        columns = (self.add, self.drop, self.rename, self.retype)
        others = (self.change_key, self.change_identity, self.rename_table, self.set_schema, self.make_again)
        for _ in range(STEPS):
            dice = self.random.random()
            if dice < 0.6:
                self.random.choice(changes)()
            elif dice < 0.8:
                self.alter(self.random.choice(columns))
            elif dice < 0.9 and not self.open:
                self.alter(self.random.choice(others))
            elif self.open:
                self.end()
            else:
                self.settle()
                self.conn.execute("BEGIN")
                self.open = True
        if self.open:
            self.end()
        self.conn.close()

    def end(self) -> None:
        self.conn.execute("COMMIT")
        self.open = False

    def alter(self, ddl: Callable[[], None]) -> None:
        if not self.open:
            self.settle()
        ddl()

    def table_is(self, change: str) -> None:
        self.conn.execute(f"ALTER TABLE {self.name} {change}".encode())

    def new_name(self) -> str:
        return f"c{next(self.numbers)}"

    def add(self) -> None:
        name, kind = self.new_name(), self.random.choice(TYPES)
        self.table_is(f"ADD {name} {kind}")
        self.columns[name] = kind

    def drop(self) -> None:
        if self.columns:
            name = self.random.choice(list(self.columns))
            self.table_is(f"DROP {name}")
            del self.columns[name]

    def rename(self) -> None:
        old, new = self.random.choice([self.base, self.part, *self.columns]), self.new_name()
        self.table_is(f"RENAME {old} TO {new}")
        self.base, self.part = (new if name == old else name for name in (self.base, self.part))
        if old in self.columns:
            self.columns[new] = self.columns.pop(old)

    def retype(self) -> None:
        for name, kind in self.columns.items():
            if kind in RETYPED:
                self.table_is(f"ALTER {name} TYPE {RETYPED[kind]} USING {name}::{RETYPED[kind]}")
                self.columns[name] = RETYPED[kind]
                return

    def change_key(self) -> None:
        key = self.random.choice([[self.base], [self.base, self.part], [self.part, self.base]])
        names = self.conn.execute(
            "SELECT conname::text FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'p'", [self.name]
        ).fetchall()
        self.table_is(
            ", ".join([*(f"DROP CONSTRAINT {row[0]}" for row in names), f"ADD PRIMARY KEY ({', '.join(key)})"])
        )

    def change_identity(self) -> None:
        self.full = not self.full
        self.table_is(f"REPLICA IDENTITY {'FULL' if self.full else 'DEFAULT'}")

    def rename_table(self) -> None:
        name = f"t{next(self.numbers)}"
        self.table_is(f"RENAME TO {name}")
        self.table = name

    def set_schema(self) -> None:
        schema = self.random.choice([name for name in ("public", "one", "two") if name != self.schema])
        self.table_is(f"SET SCHEMA {schema}")
        self.schema = schema

    def make_again(self) -> None:
        self.conn.execute(f"DROP TABLE {self.name}".encode())
        self.create()

    def rows(self, sql: str) -> list[list[tuple[str, Any]]]:
        cursor = self.conn.execute(sql.encode())
        names = [column.name for column in cursor.description or ()]
        return [list(zip(names, map(plain, row), strict=True)) for row in cursor.fetchall()]

    def one(self) -> str | None:
        """Return the condition that finds one of the rows."""
        rows = self.conn.execute(f"SELECT {self.base} FROM {self.name} ORDER BY 1".encode()).fetchall()
        return f"{self.base} = {self.random.choice(rows)[0]}" if rows else None

    def expect(self, op: str, before: list[tuple[str, Any]] | None, after: list[tuple[str, Any]] | None) -> None:
        row = self.conn.execute(KEY, [self.name]).fetchone()
        assert row is not None
        values = dict((after if after is not None else before) or [])
        key = [(name, values[name]) for name in row[0]]
        topic = f"test.{self.schema}.{self.table}"
        self.expected.append(Expected(topic, op, key, before, after, not self.full))

    def insert(self) -> None:
        number = next(self.numbers)
        values = {self.base: str(number), self.part: str(number % 3)}
        values |= {name: VALUES[kind] for name, kind in self.columns.items() if self.random.random() < 0.8}
        names, texts = ", ".join(values), ", ".join(values.values())
        self.expect("c", None, self.rows(f"INSERT INTO {self.name} ({names}) VALUES ({texts}) RETURNING *")[0])

    def update(self) -> None:
        where = self.one()
        if where is not None and self.columns:
            column = self.random.choice(list(self.columns))
            old = self.rows(f"SELECT * FROM {self.name} WHERE {where}")[0]
            new = self.rows(f"UPDATE {self.name} SET {column} = NULL WHERE {where} RETURNING *")[0]
            self.expect("u", old if self.full else None, new)

    def move(self) -> None:
        """Change the key of a row."""
        where = self.one()
        if where is not None:
            old = self.rows(f"SELECT * FROM {self.name} WHERE {where}")[0]
            number = next(self.numbers)
            new = self.rows(f"UPDATE {self.name} SET {self.base} = {number} WHERE {where} RETURNING *")[0]
            self.expect("d", old, None)
            self.expect("c", None, new)

    def delete(self) -> None:
        where = self.one()
        if where is not None:
            self.expect("d", self.rows(f"DELETE FROM {self.name} WHERE {where} RETURNING *")[0], None)


def plain(value: Any) -> Any:
    """Return a value as it stands in JSON."""
    return str(value) if isinstance(value, Decimal) else value


@pytest.fixture(params=SEEDS)
def walked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[int, Source]]:
    server = request.getfixturevalue("pg18" if request.param % 2 else "pg16")
    source = make_source(server, tmp_path / "state", **{"decimal.handling.mode": "string", "snapshot.mode": "no_data"})
    yield request.param, source
    drop(source)


def test_altered_while_streaming(walked: tuple[int, Source]) -> None:
    seed, source = walked
    query = InProcess(source.options)
    events = query.drain()

    def settle() -> None:
        events.extend(query.drain())

    walk = Walk(source, seed, settle)
    walk.run()
    settle()
    query.stop()
    check(events, walk.expected, late=False)


def test_altered_while_the_query_does_not_run(walked: tuple[int, Source]) -> None:
    seed, source = walked
    query = InProcess(source.options)
    query.drain()
    query.stop()
    walk = Walk(source, seed, lambda: None)
    walk.run()
    again = InProcess(source.options, query.offset)
    events = again.drain()
    again.stop()
    check(events, walk.expected, late=True)


def check(events: list[dict[str, Any]], expected: list[Expected], late: bool) -> None:
    """Compare; of changes that are read late, the log tells which columns the key has if it marks them."""
    rows = [row for row in events if row["value"] is not None]
    assert [(row["topic"], row["op"]) for row in rows] == [(one.topic, one.op) for one in expected]
    for row, one in zip(rows, expected, strict=True):
        value = json.loads(row["value"])
        assert pairs(value["after"]) == one.after
        key = pairs(json.loads(row["key"])) if row["key"] is not None else None
        if not late:
            assert key == one.key
        elif one.marked:
            assert sorted(key or []) == sorted(one.key)
        before = pairs(value["before"])
        if before is not None and one.before is not None:
            assert [name for name, _ in before] == [name for name, _ in one.before]
            known = dict(before)
            wanted = one.key if one.marked else one.before
            assert all(known[name] == text for name, text in wanted)
        else:
            assert before == one.before


def pairs(row: dict[str, Any] | None) -> list[tuple[str, Any]] | None:
    return None if row is None else list(row.items())


def late(source: Source, statements: tuple[str, ...], **options: str) -> list[dict[str, Any]]:
    """Return the events of statements that ran while the query did not."""
    chosen = {**source.options, "snapshot.mode": "no_data", **{k.replace("_", "."): v for k, v in options.items()}}
    query = InProcess(chosen)
    query.drain()
    query.stop()
    source.execute(*statements)
    again = InProcess(chosen, query.offset)
    events = again.drain()
    again.stop()
    return events


def test_schemas_have_the_table_name_of_their_time(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)")
    statements = ("INSERT INTO t VALUES (1)", "ALTER TABLE t RENAME TO u", "INSERT INTO u VALUES (2)")
    events = late(source, statements, schemas_enable="true")
    names = [(row["topic"], json.loads(row["value"])["schema"]["name"]) for row in events]
    assert names == [("test.public.t", "test.public.t.Envelope"), ("test.public.u", "test.public.u.Envelope")]


def test_a_key_that_was_added_later(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer NOT NULL, n integer NOT NULL)", "CREATE UNIQUE INDEX t_n ON t (n)")
    source.execute("CREATE TABLE u (id integer NOT NULL)")
    keyed = [f"ALTER TABLE {name} ADD PRIMARY KEY (id)" for name in ("t", "u")]
    events = late(
        source,
        ("INSERT INTO t VALUES (1, 2)", "INSERT INTO u VALUES (1)", *keyed, "INSERT INTO t VALUES (3, 4)"),
    )
    assert [row["key"] for row in events] == ['{"n":2}', None, '{"id":3}']


def test_a_key_whose_columns_were_renamed(source: Source) -> None:
    source.execute("CREATE TABLE t (a integer, b integer, PRIMARY KEY (b, a))", "ALTER TABLE t REPLICA IDENTITY FULL")
    statements = (
        "INSERT INTO t VALUES (1, 2)",
        "ALTER TABLE t RENAME a TO x",
        "UPDATE t SET b = 3",
        "ALTER TABLE t RENAME b TO a",
        "DELETE FROM t",
    )
    events = late(source, statements)
    assert [row["key"] for row in events if row["value"] is not None] == [
        '{"b":2,"a":1}',
        '{"b":2,"x":1}',
        '{"b":3,"x":1}',
        '{"a":3,"x":1}',
    ]


def test_types_that_are_altered_without_a_new_relation_message(source: Source) -> None:
    source.execute(
        "CREATE TYPE mood AS ENUM ('sad')",
        "CREATE DOMAIN small AS integer",
        "CREATE TABLE t (id integer PRIMARY KEY, m mood, s small)",
    )
    query = InProcess({**source.options, "snapshot.mode": "no_data", "schemas.enable": "true"})
    query.drain()
    found: list[tuple[str, bool]] = []
    for label, ddl in (
        ("sad", ()),
        ("glad", ("ALTER TYPE mood ADD VALUE 'glad'",)),
        ("glad", ("ALTER DOMAIN small SET NOT NULL",)),
    ):
        source.execute(*ddl, f"INSERT INTO t VALUES ({len(found)}, '{label}', 1)")
        (row,) = query.drain()
        _, mood, small = json.loads(row["value"])["schema"]["fields"][1]["fields"]
        found.append((mood["parameters"]["allowed"], small["optional"]))
    query.stop()
    assert found == [("sad", True), ("sad,glad", True), ("sad,glad", False)]
