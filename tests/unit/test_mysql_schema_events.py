"""Events of the schema change topic, beside those that Debezium made of the same statements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from floodmark.connectors.mysql.ddl import statements as ddl
from floodmark.connectors.mysql.ddl.column_types import Charset
from floodmark.connectors.mysql.ddl.schema import Schema, TableId
from floodmark.connectors.mysql.schema_history.schema_events import (
    SchemaChange,
    key_schema,
    key_text,
    schema_changes,
    snapshot_changes,
    value_schema,
    value_text,
)
from floodmark.connectors.mysql.structures.session import Server, Session
from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.ddl import CASES
from tests.conformance.golden import load, path_of

SERVER = Server()
SERVERS = {"mysql": SERVER, "mariadb": Server("mariadb", 101118)}
OLD_CHARSET = "CREATE TABLE ddl_databases_b.there"
"""Debezium goes on with the character set of a database that was dropped and made again with another one."""
RECORDED = [
    case
    for case in CASES
    if case.connector in SERVERS
    and case.options.get("include.schema.changes") == "true"
    and path_of(case.name, case.connector).exists()
    # What the events tell does not depend on what is left out of them.
    and "schema.history.internal.store.only.captured.databases.ddl" not in case.options
]


def default(case: Case) -> Charset:
    """Return the default character set of a case's server."""
    return Charset("utf8mb4", SERVERS[case.connector].default_collation("utf8mb4"))


def comments(case: Case) -> bool:
    """Return whether Debezium tells comments; its connector for MariaDB does so whatever the option says."""
    return case.connector == "mariadb" or case.options.get("include.schema.comments") == "true"


def events(case: Case, snapshot: bool) -> list[dict[str, Any]]:
    """Return the schema change events of a golden, without their schemas."""
    found = []
    for event in load(case.name, case.connector):
        if event.key is not None and event.value is not None and "tableChanges" in event.value:
            value = json.loads(event.value)
            found.append({"key": json.loads(event.key), "value": value.get("payload", value), "whole": value})
    return [event for event in found if (event["value"]["source"]["snapshot"] != "false") == snapshot]


def made(change: SchemaChange, comments: bool) -> dict[str, Any]:
    """Return what our event says beside the source block."""
    value: dict[str, Any] = json.loads(value_text(change, "null", 0, comments))
    return {name: value[name] for name in ("databaseName", "schemaName", "ddl", "tableChanges")} | {
        "table": change.tables,
    }


def expected(event: dict[str, Any]) -> dict[str, Any]:
    value = event["value"]
    return {name: value[name] for name in ("databaseName", "schemaName", "ddl", "tableChanges")} | {
        "table": value["source"]["table"],
    }


def shown(case: Case) -> tuple[Schema, dict[TableId, str]]:
    """Return the structures that the snapshot has, and the statements that it shows of them."""
    schema, statements, database = Schema({case.name: default(case)}), {}, case.name
    for event in events(case, True):
        text = event["value"]["ddl"]
        database = event["value"]["databaseName"]
        if text.startswith("CREATE"):
            applied = ddl.apply(schema, text, Session(database), SERVERS[case.connector])
            schema = applied.schema
            statements.update({change.id: text for change in applied.changes})
    return schema, statements


def followed(case: Case, logged: list[str]) -> Iterator[SchemaChange]:
    """Yield the events of a case's statements after its setup."""
    schema, _ = shown(case)
    session = Session(case.name)
    for text in case.statements:
        if case.connector == "mariadb" and "IF NOT EXISTS" in text:
            continue  # MariaDB doesn't log a statement that does nothing
        # The log holds what a query selects as a table with columns.
        text = next((one for one in logged if "`copied`" in one), text) if "copied AS" in text else text
        applied = ddl.apply(schema, text, session, SERVERS[case.connector])
        schema = applied.schema
        yield from schema_changes(applied, text, case.name)


def uncommented(event: dict[str, Any], case: Case) -> dict[str, Any]:
    """Return an event without comments: Debezium keeps them in columns that lose them, and loses them in copies."""
    for change in event["tableChanges"]:
        if change["table"] is not None and case.name != "ddl_comments":
            change["table"]["comment"] = None
            for column in change["table"]["columns"]:
                column["comment"] = None
    return event


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case.connector}-{case.name}")
def test_statements_of_the_log_make_the_events_that_debezium_makes(case: Case) -> None:
    streamed = events(case, False)
    ours = [made(change, comments(case)) for change in followed(case, [event["value"]["ddl"] for event in streamed])]
    theirs = list(map(expected, streamed))
    assert streamed
    assert [one["ddl"] for one in ours] == [one["ddl"] for one in theirs]
    for mine, wanted in zip(ours, theirs, strict=True):
        if not mine["ddl"].startswith(OLD_CHARSET):
            assert uncommented(mine, case) == uncommented(wanted, case)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case.connector}-{case.name}")
def test_a_snapshot_begins_with_the_events_that_debezium_begins_with(case: Case) -> None:
    schema, statements = shown(case)
    changes = snapshot_changes(schema, statements, default(case), list(statements))
    assert [made(change, comments(case)) for change in changes] == [expected(event) for event in events(case, True)]


def test_keys_and_values_carry_debezium_s_schemas() -> None:
    case = next(case for case in RECORDED if case.name == "ddl_topic_schemas" and case.connector == "mysql")
    event = events(case, False)[-1]
    assert key_schema("mysql") == event["key"]["schema"]
    assert value_schema("mysql") == event["whole"]["schema"]
    assert json.loads(key_text(SchemaChange("ddl_topic_schemas", ""))) == event["key"]["payload"]


def test_a_change_survives_json() -> None:
    applied = ddl.apply(Schema(), "CREATE TABLE d.t (a INT PRIMARY KEY)", Session("d"), SERVER)
    (change,) = schema_changes(applied, "", "d")
    assert SchemaChange.from_json(json.loads(json.dumps(change.to_json()))) == change
    dropped = SchemaChange("d", "DROP TABLE t", "t", "DROP", ("d", "t"))
    assert SchemaChange.from_json(json.loads(json.dumps(dropped.to_json()))) == dropped


def test_what_changes_no_table_structure_is_not_told() -> None:
    schema = ddl.apply(Schema(), "CREATE TABLE d.t (a INT)", Session("d"), SERVER).schema
    for text in ("TRUNCATE d.t", "CREATE VIEW v AS SELECT 1", "GRANT ALL ON *.* TO x", "BEGIN"):
        assert schema_changes(ddl.apply(schema, text, Session("d"), SERVER), text, "d") == []


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        ("BOOL DEFAULT TRUE", ("BOOL", 16, None, None, "TRUE")),
        ("TINYINT(1)", ("TINYINT", 5, 1, None, None)),
        ("INTEGER UNSIGNED", ("INTEGER UNSIGNED", 4, None, None, None)),
        ("SMALLINT(4) ZEROFILL", ("SMALLINT UNSIGNED ZEROFILL", 5, 4, None, None)),
        ("NUMERIC", ("NUMERIC", 2, 10, 0, None)),
        ("DOUBLE PRECISION DEFAULT -1.5", ("DOUBLE PRECISION", 8, None, None, "-1.5")),
        ("FLOAT(7,3)", ("FLOAT", 6, 7, 3, None)),
        ("NATIONAL VARCHAR(3)", ("NATIONAL VARCHAR", -9, 3, None, None)),
        ("NCHAR", ("NCHAR", -15, 1, None, None)),
        ("VARCHAR(9) BINARY DEFAULT 'it''s'", ("VARCHAR BINARY", 12, 9, None, "it''s")),
        ("TIMESTAMP(3) NULL DEFAULT NOW(3)", ("TIMESTAMP", 2014, 3, None, "1970-01-01 00:00:00")),
        ("SET('x','y','z')", ("SET", 1, 5, None, None)),
        ("BIT(8) DEFAULT b'101'", ("BIT", -7, 8, None, "101")),
        ("VARBINARY(10) DEFAULT 'a'", ("VARBINARY", -3, 10, None, "a")),
        ("VARCHAR(36) DEFAULT (UUID())", ("VARCHAR", 12, 36, None, None)),
        ("POINT", ("POINT", 1111, None, None, None)),
        ("TEXT(300)", ("TEXT", 12, 300, None, None)),
    ],
)
def test_columns_are_described_as_they_were_declared(definition: str, told: tuple[object, ...]) -> None:
    applied = ddl.apply(Schema(), f"CREATE TABLE d.t (a {definition})", Session("d"), SERVER)
    (column,) = made(schema_changes(applied, "", "d")[0], False)["tableChanges"][0]["table"]["columns"]
    names = ("typeName", "jdbcType", "length", "scale", "defaultValueExpression")
    assert tuple(column[name] for name in names) == told
