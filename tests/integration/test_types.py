"""The codecs beside what Debezium made of the same values, which are stored in real servers and read as text.

Besides the conformance cases' goldens there is ``test_types_recorded.jsonl``: values in the modes and at the limits
that no case has. Each line has a type, options, and Debezium's JSON of literals; they were streamed by Debezium
3.6.3 on JDK 17 from PostgreSQL 18 with ``record_goldens.record``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from floodmark.codecs.codec import Codec
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.connection import connect
from floodmark.connectors.postgres.types.registry import codec_for
from floodmark.connectors.postgres.types.type_info import TypeInfo
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.events.json_text import closed
from tests.conformance.cases import CASES, Case
from tests.conformance.golden import load
from tests.conftest import Source, drop, make_source
from tests.support.inprocess import InProcess
from tests.support.options import REQUIRED

NAMES = ("scalars", "time_specials", "time_connect", "decimal_string", "decimal_double", "precision")
STREAMED_FROM = 100
"""Rows with a greater key were streamed, which is the reference where the snapshot differs."""

EXCEPTIONS: Mapping[tuple[str, int, str], str] = {
    ("time_specials", 101, "c_date"): "2147483647",
    ("time_specials", 102, "c_date"): "-2147483648",
    ("precision", 101, "name"): '"a name"',
    ("precision", 101, "numeric_5_m2"): '"EtZE"',
}
"""What differs from Debezium on purpose, by case, key and column; the package's docstring gives the reasons."""


Connection = psycopg.Connection[tuple[Any, ...]]


RECORDED = Path(__file__).with_name("test_types_recorded.jsonl")
DOMAINS = (
    "CREATE DOMAIN mydom AS numeric(8,3)",
    "CREATE DOMAIN mydd AS mydom",
)
MODES = ("", "connect", "isostring", "microseconds", "nanoseconds")
RECORDED_EXCEPTIONS: Mapping[tuple[str, str, str], str] = {
    **{("date", mode, "'infinity'"): "2147483647" for mode in MODES},
    **{("date", mode, "'-infinity'"): "-2147483648" for mode in MODES},
    ("date", "isostring", "'infinity'"): '"+5881580-07-11Z"',
    ("date", "isostring", "'-infinity'"): '"-5877641-06-23Z"',
    **{("timestamp", mode, "'294247-01-10 04:00:54.775808'"): str((1 << 63) - 1) for mode in ("", "microseconds")},
    # Java 17 writes more digits than needed, and other ones next to zero (JDK-4511638).
    ("real", "", "(3e10)::real"): "3.0E10",
    ("real", "", "(1e16)::real"): "1.0E16",
    ("real", "", "(1.17549435e-38)::real"): "1.1754944E-38",
    ("double precision", "", "(2e23)::double precision"): "2.0E23",
    ("double precision", "", "(8.41e21)::double precision"): "8.41E21",
    ("double precision", "", "(1e23)::double precision"): "1.0E23",
    ("double precision", "", "(1e-323)::double precision"): "9.9E-324",
}
"""What differs on purpose, by type, ``time.precision.mode`` and literal."""


@pytest.fixture
def connection(source: Source) -> Iterator[Connection]:
    with connect(PostgresOptions.model_validate(source.options)) as opened:
        yield opened


_USER_TYPES = """
    SELECT oid::int8, typname, typtype::text, typbasetype::int8, typtypmod,
        ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder)
    FROM pg_type t WHERE oid >= 16384
"""


def codec_of(connection: Connection, table: str, column: str, options: Mapping[str, str]) -> Codec:
    """Return the codec of a table's column."""
    types: dict[int, TypeInfo] = {}
    for oid, name, kind, base, base_modifier, labels in connection.execute(_USER_TYPES):
        types[oid] = TypeInfo(name, kind, base, base_modifier, 0, tuple(labels))
    row = connection.execute(
        "SELECT atttypid::int8, atttypmod FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s",
        [table, column],
    ).fetchone()
    assert row is not None
    return codec_for(row[0], row[1], types, PostgresOptions.model_validate({**REQUIRED, **options}))


def encoded(connection: Connection, table: str, column: str, options: Mapping[str, str]) -> dict[int, str | None]:
    """Return the JSON of a column by the row's key, encoded as one array."""
    cursor = connection.execute(f"SELECT id, {column} FROM {table} ORDER BY id".encode())
    result = cursor.pgresult
    assert result is not None
    raw = [(result.get_value(row, 0), result.get_value(row, 1)) for row in range(result.ntuples)]
    text = pa.array([None if value is None else value.decode() for _, value in raw], pa.string())
    json_text = closed(codec_of(connection, table, column, options).encode(text)).to_pylist()
    return dict(zip([int(key or 0) for key, _ in raw], json_text, strict=True))


def fields_of(text: str) -> dict[str, str]:
    """Return the exact JSON text of each field of an object."""
    decoder = json.JSONDecoder()
    fields: dict[str, str] = {}
    at = 1
    while text[at] != "}":
        name, at = decoder.raw_decode(text, at)
        _, end = decoder.raw_decode(text, at + 1)
        fields[name] = text[at + 1 : end]
        at = end + (text[end] == ",")
    return fields


def after_of(value: str) -> dict[str, str]:
    """Return the fields of an event's ``after`` as exact text."""
    payload = value[value.index('"payload":') :] if '"payload":' in value else value
    return fields_of(payload[payload.index('"after":') + len('"after":') :])


@pytest.mark.parametrize("case", [case for case in CASES if case.name in NAMES], ids=lambda case: case.name)
def test_values_equal_debeziums(case: Case, connection: Connection) -> None:
    for statement in (*case.setup, *case.statements):
        connection.execute(statement.encode())
    rows = [after_of(golden.value) for golden in load(case.name) if golden.value is not None]
    streamed = [row for row in rows if int(row["id"]) > STREAMED_FROM]
    assert streamed
    table = "p" if case.name == "precision" else "scalars"
    wrong = []
    for column in streamed[0]:
        if column == "id":
            continue
        mine = encoded(connection, table, column, case.options)
        for row in streamed:
            key = int(row["id"])
            want = EXCEPTIONS.get((case.name, key, column), row[column])
            if mine[key] != want:
                wrong.append(f"{column} of {key}: {mine[key]} != {want}")
    assert not wrong, "\n".join(wrong)


def test_the_exceptions_are_exceptions() -> None:
    for (case, key, column), mine in EXCEPTIONS.items():
        rows = [after_of(golden.value) for golden in load(case) if golden.value is not None]
        assert [row[column] for row in rows if row["id"] == str(key)] != [mine]


@pytest.mark.parametrize("name", ["precision", "schemas_enabled"])
def test_schemas_equal_debeziums(name: str, connection: Connection) -> None:
    case = next(case for case in CASES if case.name == name)
    for statement in case.setup:
        connection.execute(statement.encode())
    table = "p" if name == "precision" else "scalars"
    event = next(golden for golden in load(name) if golden.value and golden.topic.endswith(f".{table}"))
    for want in json.loads(event.value or "")["schema"]["fields"][1]["fields"]:
        column = want.pop("field")
        del want["optional"]
        got = codec_of(connection, table, column, case.options).schema
        if column == "numeric_5_m2":
            want["parameters"] = {"scale": "0", "connect.decimal.precision": "7"}
        assert json.dumps(got) == json.dumps(want), column


def test_recorded_values_equal_debeziums(connection: Connection) -> None:
    for statement in DOMAINS:
        connection.execute(statement.encode())
    wrong = []
    seen = set()
    with RECORDED.open(encoding="utf-8") as lines:
        for line in lines:
            recorded = json.loads(line)
            kind, options, values = recorded["type"], recorded["options"], recorded["values"]
            connection.execute(f"DROP TABLE IF EXISTS v; CREATE TABLE v (id integer, c {kind})".encode())
            for key, literal in enumerate(values):
                connection.execute(f"INSERT INTO v VALUES ({key}, {literal})".encode())
            mine = encoded(connection, "v", "c", options)
            for got, (literal, theirs) in zip(mine.values(), values.items(), strict=True):
                mode = options.get("time.precision.mode", "")
                want = RECORDED_EXCEPTIONS.get((kind, mode, literal), theirs)
                if got != want:
                    wrong.append(f"{kind} {options} {literal}: {got} != {want}")
                seen.add((kind, mode, literal))
    assert seen >= RECORDED_EXCEPTIONS.keys()
    assert not wrong, "\n".join(wrong)


def test_stored_generated_columns_that_are_published(pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state")
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, twice integer GENERATED ALWAYS AS (2 * id) STORED)",
        "INSERT INTO t VALUES (1)",
        "CREATE PUBLICATION dbz_publication FOR TABLE t WITH (publish_generated_columns = stored)",
    )
    query = InProcess(source.options)
    rows = query.drain()
    source.execute("INSERT INTO t VALUES (2)")
    rows += query.drain()
    query.stop()
    drop(source)
    after = [json.loads(row["value"])["after"] for row in rows]
    assert after == [{"id": 1, "twice": 2}, {"id": 2, "twice": 4}]
