"""Values from SQL_REDO, beside those of Debezium's events on the same stand-in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from floodmark.codecs.codec import Codec
from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from floodmark.connectors.oracle.structures.table import Column
from floodmark.connectors.oracle.types.registry import codec_with
from floodmark.connectors.oracle.values.raw_columns import raw_columns
from floodmark.events.json_text import closed
from tests.conformance.oracle.cases.case import Case, table
from tests.conformance.oracle.cases.values import TABLES, VALUES
from tests.conformance.oracle.golden import goldens
from tests.conformance.oracle.mined import SESSION, columns_of, settings_of
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.sql.session import Session

LETTERS = {1: "c", 2: "d", 3: "u"}
Row = dict[str, Any]


def statements(database: OracleDatabase, session: Session, name: str) -> list[tuple[int, str]]:
    """Return the operations and statements of a table, as LogMiner shows them."""
    session.execute(SESSION)
    session.execute("BEGIN DBMS_LOGMNR.ADD_LOGFILE(LOGFILENAME => '/redo/redo01.log'); END;")
    session.execute(
        f"BEGIN DBMS_LOGMNR.START_LOGMNR(startScn => '3000000', endScn => '{database.clock.scn}', "
        "options => DBMS_LOGMNR.DICT_FROM_ONLINE_CATALOG + DBMS_LOGMNR.NO_ROWID_IN_STMT); END;"
    )
    query = "SELECT OPERATION_CODE, SQL_REDO FROM V$LOGMNR_CONTENTS WHERE TABLE_NAME = ? AND OPERATION_CODE IN (1,2,3)"
    return [(int(code), text) for code, text in session.execute(query, [name]).rows]


def encoded(codecs: Sequence[Codec], columns: Sequence[Column], raw: Sequence[RawColumn]) -> list[Row]:
    """Return rows as their JSON says."""
    texts = [closed(codec.encode(one.values)).to_pylist() for codec, one in zip(codecs, raw, strict=True)]
    names = [column.name for column in columns]
    return [
        {name: None if text is None else json.loads(text) for name, text in zip(names, row, strict=True)}
        for row in zip(*texts, strict=True)
    ]


def decoded(case: Case, name: str) -> list[tuple[str, Row | None, Row | None]]:
    """Return the operation, the old row and the new one of each change of a table."""
    database = case.prepared()
    for step in case.changes:
        with database.step():
            step(database)
    session = Session(database, database.account)
    columns = columns_of(session, table(database, name).name)
    codecs = [codec_with(column, settings_of(case)) for column in columns]
    found = statements(database, session, name)
    reader = StatementReader([column.name for column in columns])
    changes: dict[int, tuple[str, Row | None, Row | None]] = {}
    for code, letter in LETTERS.items():
        numbers = [number for number, (one, _) in enumerate(found) if one == code]
        read = reader.read(pa.array([found[number][1] for number in numbers], pa.string()))
        assert read.problems == {}
        none = [None] * len(numbers)
        old = none if letter == "c" else encoded(codecs, columns, raw_columns(read, Side.OLD, columns))
        new = none if letter == "d" else encoded(codecs, columns, raw_columns(read, Side.NEW, columns))
        changes.update(zip(numbers, zip([letter] * len(numbers), old, new, strict=True), strict=True))
    return [changes[number] for number in range(len(found))]


PAIRS = [(case, name) for case in VALUES for name in case.tables]


@pytest.mark.parametrize(("case", "name"), PAIRS, ids=[f"{case.name}-{name}" for case, name in PAIRS])
def test_values_of_the_log(case: Case, name: str) -> None:
    wanted = [one.value for one in goldens(case) if one.topic.endswith(f".{name}") and one.value is not None]
    payloads = [one.get("payload", one) for one in wanted]
    streamed = [(one["op"], one["before"], one["after"]) for one in payloads if one["op"] != "r"]
    assert decoded(case, name) == streamed
    assert len(streamed) >= 15


@pytest.mark.parametrize("name", TABLES)
def test_schemas(name: str) -> None:
    (case,) = (one for one in VALUES if one.name == "values_schemas")
    session = Session(case.prepared(), "C##DBZUSER")
    value = next(one.value for one in goldens(case) if one.topic.endswith(f".{name}") and one.value is not None)
    fields = {one["field"]: one["fields"] for one in value["schema"]["fields"] if one["field"] in ("before", "after")}
    for column, wanted in zip(columns_of(session, name), fields["after"], strict=True):
        found = {**codec_with(column, settings_of(case)).schema, "optional": column.optional, "field": column.name}
        assert found == wanted
