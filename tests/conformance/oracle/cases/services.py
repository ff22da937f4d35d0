"""What a connector does besides rows, and while it does so: heartbeats, notifications, snapshots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from tests.conformance.oracle.cases.case import END, SCHEMA, Case, Pause, Step, table
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import column

NOTES = "notes"
"""The topic of notifications."""
BEATS = "BEATS"
"""The table that the action of a heartbeat writes."""
ROWS = 20
_ID, _V = column("ID", "NUMBER(9,0)", nullable=False), column("V", "VARCHAR2(30)")
_SIGNAL = [
    column("ID", "VARCHAR2(42)", nullable=False),
    column("TYPE", "VARCHAR2(32)"),
    column("DATA", "VARCHAR2(2048)"),
]
_TABLES = ("A", "B", "BARE")


def _setup(database: OracleDatabase) -> None:
    database.create_table(SCHEMA, "SIGNALS", _SIGNAL, ["ID"], logged=False)
    database.create_table(SCHEMA, BEATS, [_V], logged=False)
    transaction = database.begin()
    for name in ("A", "B"):
        made = database.create_table(SCHEMA, name, [_ID, _V], ["ID"], logged=False)
        for number in range(ROWS):
            transaction.insert(made, ID=number, V=f"{name} {number}")
    bare = database.create_table(SCHEMA, "BARE", [_V], logged=False)
    transaction.insert(bare, V="bare")
    transaction.commit()


def _changes(first: int) -> Step:
    """Return a step that inserts, changes and deletes rows of their own."""

    def change(database: OracleDatabase) -> None:
        transaction = database.begin()
        for name in ("A", "B"):
            made = table(database, name)
            transaction.insert(made, ID=100 + first, V=f"new {first}")
            transaction.update(made, {"ID": first}, V=f"changed {first}")
            transaction.delete(made, {"ID": first + 1})
        transaction.insert(table(database, "BARE"), V=f"bare {first}")
        transaction.commit()

    return change


def signal(kind: str, **data: object) -> Step:
    """Return a step that writes a signal into the table."""

    def write(database: OracleDatabase) -> None:
        transaction = database.begin()
        transaction.insert(table(database, "SIGNALS"), ID=f"a {kind}", TYPE=kind, DATA=json.dumps(data))
        transaction.commit()

    return write


def _threads(database: OracleDatabase) -> None:
    """Change rows through two instances, in transactions that overlap."""
    a, b = table(database, "A"), table(database, "B")
    first, second = database.begin("ANN", 1), database.begin("BEN", 2, "ben's client")
    first.insert(a, ID=200, V="first")
    second.insert(a, ID=201, V="second")
    database.switch_log(2)
    second.update(b, {"ID": 5}, V="by the second")
    first.delete(b, {"ID": 6})
    second.commit()
    database.switch_log(1)
    first.savepoint("s")
    first.update(a, {"ID": 7}, V="undone")
    first.rollback_to("s")
    first.commit()
    for thread in (2, 1, 2):
        one = database.begin(thread=thread)
        one.update(a, {"ID": 200}, V=f"again by {thread}")
        one.commit()
    lost = database.begin(thread=2)
    lost.insert(b, ID=300, V="lost")
    lost.rollback()


def _statements_between(database: OracleDatabase) -> None:
    """Let statements come while a transaction is open, and change what they have made in it."""
    a, b, bare = table(database, "A"), table(database, "B"), table(database, "BARE")
    long = database.begin("ANN")
    long.insert(a, ID=200, V="before the statements")
    made = database.create_table(SCHEMA, "MADE", [_ID, _V], ["ID"])
    added = column("N", "NUMBER(5,0)")
    database.ddl(b, f'ALTER TABLE "{SCHEMA}"."B" ADD ({added.ddl})', columns=(*b.structure.columns, added))
    other = database.begin("BEN")
    other.insert(b, ID=201, V="other", N=7)
    other.insert(made, ID=1, V="made")
    other.commit()
    long.update(b, {"ID": 201}, N=8)
    long.update(made, {"ID": 1}, V="changed")
    database.truncate(bare)
    long.insert(bare, V="after the truncate")
    database.ddl(made, f"COMMENT ON TABLE {SCHEMA}.MADE IS 'A table'")
    long.delete(a, {"ID": 3})
    long.commit()
    database.drop_table(database.create_table(SCHEMA, "GONE", [_ID, _V], ["ID"]))
    last = database.begin()
    last.insert(made, ID=2, V="last")
    last.commit()


def _long(database: OracleDatabase) -> None:
    """Switch logs while transactions are open, of which parts are undone."""
    a, b = table(database, "A"), table(database, "B")
    long, lost = database.begin("ANN"), database.begin("BEN")
    long.insert(a, ID=200, V="long")
    lost.insert(a, ID=201, V="lost")
    for number in range(4):
        long.savepoint("s")
        long.update(b, {"ID": number}, V=f"long {number}")
        long.insert(b, ID=300 + number, V="long")
        database.switch_log()
        if number % 2:
            long.rollback_to("s")
        short = database.begin()
        short.update(a, {"ID": number}, V=f"short {number}")
        short.commit()
    lost.delete(b, {"ID": 10})
    lost.rollback()
    long.update(a, {"ID": 200}, V="long again")
    long.commit()


_CAPTURED = {
    "schema.history.internal.store.only.captured.tables.ddl": "true",
    "table.include.list": ",".join(rf"{SCHEMA}\.{name}" for name in (*_TABLES, BEATS, END)),
}
_NOTIFIED = {"notification.enabled.channels": "sink,log", "notification.sink.topic.name": NOTES}
_SIGNALS = {**_CAPTURED, "signal.data.collection": f"ORCLPDB1.{SCHEMA}.SIGNALS"}
_BEATING = {**_CAPTURED, "heartbeat.interval.ms": "1"}
_ACTION = {"heartbeat.action.query": f"INSERT INTO {SCHEMA}.{BEATS} (V) VALUES ('beat')"}
_SCHEMAS = {"key.converter.schemas.enable": "true", "value.converter.schemas.enable": "true"}
_A, _B, _BARE = (rf"(ORCLPDB1\.)?{SCHEMA}\.{name}" for name in _TABLES)
"""Debezium's names of tables begin with the database here, Floodmark's with the schema as everywhere."""


def _snapshot(kind: str, *tables: str, **more: object) -> Step:
    return signal("execute-snapshot", **{"type": kind, "data-collections": tables, **more})


_TOLD = '"type":"COMPLETED"'
_BASE = Case("", _setup, [_changes(0)], tables=_TABLES, compact=True)


def _case(name: str, steps: Sequence[Step | Pause], *options: dict[str, str], threads: int = 1) -> Case:
    given = {name: value for some in options for name, value in some.items()}
    return replace(_BASE, name=f"services/{name}", steps=steps, options=given, threads=threads)


SERVICES = (
    _case("notifications", [_changes(0)], _CAPTURED, _NOTIFIED),
    _case("notifications_schemas", [_changes(0)], _CAPTURED, _NOTIFIED, _SCHEMAS),
    replace(
        _case("notifications_no_data", [_changes(0)], _CAPTURED, _NOTIFIED, {"snapshot.mode": "no_data"}), reads=False
    ),
    _case("heartbeats", [_changes(0), Pause(), _changes(4)], _BEATING),
    _case("heartbeats_schemas", [_changes(0), Pause(), _changes(4)], _BEATING, _SCHEMAS),
    _case("heartbeats_prefix", [_changes(0), Pause(), _changes(4)], _BEATING, {"topic.heartbeat.prefix": "beats-of"}),
    _case("heartbeats_delimiter", [_changes(0), Pause(), _changes(4)], _BEATING, {"topic.delimiter": "_"}),
    _case("heartbeats_action", [_changes(0), Pause(), _changes(4)], _BEATING, _ACTION),
    _case(
        "filtered_by_signal",
        [
            _changes(0),
            Pause(),
            _snapshot("incremental", _A, **{"additional-conditions": [{"data-collection": _A, "filter": "ID > 15"}]}),
            Pause('"snapshot":"incremental"', 5),
            _changes(4),
        ],
        _SIGNALS,
    ),
    _case(
        "incremental_while_changes_come",
        [
            _changes(0),
            Pause(),
            _snapshot("incremental", _A, _B),
            *map(_changes, (2, 4, 6, 8, 10)),
            Pause(_TOLD, 2),
            _changes(12),
        ],
        _SIGNALS,
        _NOTIFIED,
        {"incremental.snapshot.chunk.size": "5"},
    ),
    _case("two_threads", [_threads, _changes(0)], _CAPTURED, threads=2),
    _case(
        "two_threads_metadata", [_threads, _changes(0)], _CAPTURED, {"provide.transaction.metadata": "true"}, threads=2
    ),
    _case("statements_between", [_statements_between]),
    _case("statements_between_schemas", [_statements_between], _SCHEMAS),
    _case("long_transactions", [_long, _changes(12)], _CAPTURED),
    _case("long_transactions_metadata", [_long, _changes(12)], _CAPTURED, {"provide.transaction.metadata": "true"}),
)
