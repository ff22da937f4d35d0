"""Rows of the binlog and of queries as raw columns, against what the servers print."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.mysql.snapshot.text_rows import SESSION, select_expression, split_text_rows
from floodmark.connectors.mysql.structures.table import Column
from tests.support.binlog_file import row_events
from tests.support.mysql import MysqlServer
from tests.support.mysql_values import Sample, document, samples
from tests.support.row_columns import RowColumns

ROWS = 150
TABLES = 3
COM_QUERY = 3
ID = Column("id", "int")
TEXT = Column("note", "varchar", 20, charset="utf8mb4")
BLOB = Column("body", "blob")
JSON = Column("doc", "json")


@pytest.fixture(scope="module", params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[MysqlServer]:
    with MysqlServer(request.param) as server:
        server.execute("CREATE DATABASE v")
        yield server


def session_of(server: MysqlServer) -> Any:
    session = server.connect("v")
    run(session, *SESSION, "SET sql_mode = ''")
    return session


def run(session: Any, *statements: str) -> None:
    with session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def new_log(session: Any) -> str:
    """Begin a binlog file; return its name."""
    with session.cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        return str(cursor.fetchall()[-1][0])


def selected(session: Any, columns: list[Column], table: str) -> list[RawColumn]:
    """Return a table's rows, by their key, as a query delivers them."""
    names = ", ".join(map(select_expression, columns))
    session._execute_command(COM_QUERY, f"SELECT {names} FROM {table} ORDER BY id")
    for _ in range(session._read_packet().read_length_encoded_integer() + 1):
        session._read_packet()
    rows = []
    while not (packet := session._read_packet()).is_eof_packet():
        rows.append(packet.get_all_data())
    ends = np.cumsum([len(row) + 4 for row in rows])
    buf = np.frombuffer(b"".join(b"HEAD" + row for row in rows), np.uint8)
    return split_text_rows(buf, ends - [len(row) for row in rows], ends, columns)


def logged(server: MysqlServer, file: str, columns: list[Column], table: str) -> dict[str, RowColumns]:
    """Return the rows of a binlog file by the kind of their events."""
    buf, found = row_events(server.data / file, table)
    return {group.kind: group.columns(buf, tuple(columns), server.flavor == "mariadb") for group in found}


def create(session: Any, name: str, chosen: Sequence[Sample]) -> list[Column]:
    declared = ", ".join(f"{sample.column.name} {sample.sql}" for sample in chosen)
    run(session, f"CREATE TABLE {name} (id int PRIMARY KEY, {declared}) CHARACTER SET utf8mb4")
    return [ID, *(sample.column for sample in chosen)]


def fill(session: Any, name: str, chosen: Sequence[Sample], rng: random.Random) -> None:
    rows = [
        ", ".join([str(number), *("NULL" if rng.random() < 0.1 else one.literal(rng) for one in chosen)])
        for number in range(ROWS)
    ]
    for start in range(0, ROWS, 50):
        run(session, f"INSERT INTO {name} VALUES " + ", ".join(f"({row})" for row in rows[start : start + 50]))


def same(columns: list[Column], found: list[RawColumn] | None, wanted: list[RawColumn]) -> None:
    assert found is not None
    for column, one, other in zip(columns, found, wanted, strict=True):
        assert one.unchanged is None
        one.values.validate(full=True)
        assert one.values.type == other.values.type, column
        pairs = zip(one.values.to_pylist(), other.values.to_pylist(), strict=True)
        assert [(a, b) for a, b in pairs if repr(a) != repr(b)] == [], column


def values(column: RawColumn) -> list[Any]:
    """Return a column's values, ``...`` for those that the log lacks."""
    lacking = np.zeros(len(column.values), bool) if column.unchanged is None else column.unchanged
    return [... if gone else value for value, gone in zip(column.values.to_pylist(), lacking.tolist(), strict=True)]


def check_types(server: MysqlServer, session: Any, name: str, chosen: Sequence[Sample], seed: int) -> None:
    columns = create(session, name, chosen)
    file = new_log(session)
    fill(session, name, chosen, random.Random(seed))
    rows = selected(session, columns, name)
    run(session, f"UPDATE {name} SET id = id + 1000 ORDER BY id")
    moved = selected(session, columns, name)
    run(session, f"DELETE FROM {name} ORDER BY id")
    log = logged(server, file, columns, name)
    same(columns, log["write"].after, rows)
    same(columns, log["update"].before, rows)
    same(columns, log["update"].after, moved)
    same(columns, log["delete"].before, moved)


def test_every_type(server: MysqlServer) -> None:
    every = samples(server.flavor)
    with session_of(server) as session:
        for part in range(TABLES):
            check_types(server, session, f"every_{part}", every[part::TABLES], part)


@pytest.mark.parametrize("server", ["mariadb"], indirect=True)
def test_times_of_older_mariadb(server: MysqlServer) -> None:
    kinds = ("time", "datetime", "timestamp")
    chosen = [sample for sample in samples("mariadb") if sample.column.type in kinds]
    server.execute("SET GLOBAL mysql56_temporal_format = OFF")
    try:
        with session_of(server) as session:
            check_types(server, session, "older", chosen, 9)
    finally:
        server.execute("SET GLOBAL mysql56_temporal_format = ON")


DEFAULTS = (
    Column("n", "int", optional=False, default="5", default_kind="literal"),
    Column("v", "varchar", 10, charset="utf8mb4", default="it's", default_kind="literal"),
    Column("z", "datetime", None, 3, default="0000-00-00 00:00:00.000", default_kind="literal"),
    Column("d", "decimal", 8, 2, default="1.50", default_kind="literal"),
    Column("b", "binary", 3, default="a", default_kind="literal"),
    Column("f", "float", default="1.5", default_kind="literal"),
    Column("now", "timestamp", None, 2, default="CURRENT_TIMESTAMP(2)", default_kind="expression"),
    Column("x", "int", default="1 + 2", default_kind="expression"),
    Column("nothing", "text", charset="utf8mb4"),
)


def test_defaults_that_minimal_images_leave_out(server: MysqlServer) -> None:
    columns = [ID, *DEFAULTS]
    with session_of(server) as session:
        run(
            session,
            "CREATE TABLE sparse (id int PRIMARY KEY, n int NOT NULL DEFAULT 5, v varchar(10) DEFAULT 'it''s', "
            "z datetime(3) DEFAULT '0000-00-00', d decimal(8,2) DEFAULT 1.5, b binary(3) DEFAULT 'a', "
            "f float DEFAULT 1.5, now timestamp(2) NULL DEFAULT CURRENT_TIMESTAMP(2), x int DEFAULT (1 + 2), "
            "nothing text) CHARACTER SET utf8mb4",
        )
        file = new_log(session)
        run(session, "SET binlog_row_image = minimal", "INSERT INTO sparse (id) VALUES (1), (2)")
        run(session, "INSERT INTO sparse (id, v, x) VALUES (3, NULL, 4)")
        same(columns, logged(server, file, columns, "sparse")["write"].after, selected(session, columns, "sparse"))


@pytest.mark.parametrize("server", ["mariadb"], indirect=True)
def test_columns_that_mariadb_hides(server: MysqlServer) -> None:
    columns = [ID, Column("note", "text", charset="utf8mb4")]
    with session_of(server) as session:
        run(
            session,
            "CREATE TABLE versioned (id int PRIMARY KEY, note text) CHARACTER SET utf8mb4 WITH SYSTEM VERSIONING",
            "CREATE TABLE hashed (id int PRIMARY KEY, note text, UNIQUE (note)) CHARACTER SET utf8mb4",
        )
        for table in ("versioned", "hashed"):
            file = new_log(session)
            run(session, f"INSERT INTO {table} VALUES (1, 'a'), (2, NULL)")
            same(columns, logged(server, file, columns, table)["write"].after, selected(session, columns, table))


@pytest.mark.parametrize("image", ["minimal", "noblob"])
def test_partial_images(server: MysqlServer, image: str) -> None:
    name, columns = f"image_{image}", [ID, TEXT, BLOB]
    with session_of(server) as session:
        run(session, f"CREATE TABLE {name} (id int PRIMARY KEY, note varchar(20), body blob) CHARACTER SET utf8mb4")
        file = new_log(session)
        run(
            session,
            f"SET binlog_row_image = {image}",
            f"INSERT INTO {name} VALUES (1, 'a', 'x'), (2, NULL, 'y')",
            f"INSERT INTO {name} (id, note) VALUES (3, 'c')",
            f"UPDATE {name} SET note = 'new' WHERE id = 1",
            f"UPDATE {name} SET body = 'z' WHERE id = 2",
            f"UPDATE {name} SET id = id + 10 ORDER BY id",
            f"DELETE FROM {name} ORDER BY id",
        )
        log = logged(server, file, columns, name)
    update, delete = log["update"], log["delete"]
    assert update.before is not None
    assert update.after is not None
    assert delete.before is not None
    assert values(update.before[0]) == ["1", "2", "1", "2", "3"]
    assert values(update.after[0]) == ["1", "2", "11", "12", "13"]
    assert values(update.after[2]) == [..., b"z", ..., ..., ...]
    if image == "minimal":
        assert values(update.after[1]) == ["new", ..., ..., ..., ...]
        assert values(delete.before[1]) == [..., ..., ...]
    else:
        assert values(update.after[1]) == ["new", None, "new", None, "c"]
        assert values(delete.before[1]) == ["new", None, "c"]
    assert values(delete.before[0]) == ["11", "12", "13"]
    assert log["write"].after is not None
    assert values(log["write"].after[0]) == ["1", "2", "3"]
    assert values(log["write"].after[1]) == ["a", None, "c"]


JSON_CHANGES = (
    "JSON_SET(doc, '$.a', 1.50)",
    "JSON_REPLACE(doc, '$.a', JSON_ARRAY(1, 'two'))",
    "JSON_SET(doc, '$.list[1]', 'x\"y')",
    "JSON_ARRAY_INSERT(doc, '$.list[0]', CAST('2020-01-02' AS DATE))",
    "JSON_ARRAY_APPEND(doc, '$.list', 1e20)",
    "JSON_REMOVE(doc, '$.list[last]')",
    "JSON_REMOVE(doc, '$.a')",
    "JSON_SET(doc, '$.\"odd name\"', JSON_OBJECT('k', true))",
    "JSON_SET(doc, '$.\"odd name\".k', NULL, '$.other', 3)",
    "JSON_REPLACE(doc, '$.text', 'short')",
)


@pytest.mark.parametrize("server", ["mysql"], indirect=True)
def test_partial_json(server: MysqlServer) -> None:
    rng = random.Random(3)
    columns = [ID, JSON, TEXT, Column("other", "json")]
    with session_of(server) as session:
        run(session, "CREATE TABLE partial (id int PRIMARY KEY, doc json, note varchar(20), other json)")
        for number in range(40):
            whole = {"a": 1, "list": [1, 2, 3], "text": "long text " * 20, "odd name": {"k": 1}, "rest": document(rng)}
            with session.cursor() as cursor:
                row = (number, json.dumps(whole), json.dumps(document(rng)))
                cursor.execute("INSERT INTO partial VALUES (%s, %s, 'n', %s)", row)
        file = new_log(session)
        run(session, "SET binlog_row_value_options = PARTIAL_JSON")
        states = [selected(session, columns, "partial")]
        for change in JSON_CHANGES:
            run(session, f"UPDATE partial SET doc = {change}, note = IF(id % 2, NULL, 'm') ORDER BY id")
            states.append(selected(session, columns, "partial"))
        log = logged(server, file, columns, "partial")["partial"]
    assert log.before is not None
    assert log.after is not None
    for index in range(len(columns)):
        before = [row for state in states[:-1] for row in state[index].values.to_pylist()]
        after = [row for state in states[1:] for row in state[index].values.to_pylist()]
        assert values(log.before[index]) == before
        assert values(log.after[index]) == after
