"""Modes of snapshots, signals that ask for one, and rows that LogMiner doesn't understand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from tests.conformance.oracle.cases.case import END, SCHEMA, Case, Pause, Step, table
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.redo import Operation
from tests.support.oracle.model.tables import column

_ID, _V = column("ID", "NUMBER(9,0)", nullable=False), column("V", "VARCHAR2(30)")
_SIGNAL = [
    column("ID", "VARCHAR2(42)", nullable=False),
    column("TYPE", "VARCHAR2(32)"),
    column("DATA", "VARCHAR2(2048)"),
]
_ROWS = 5


def _setup(database: OracleDatabase) -> None:
    transaction = database.begin()
    database.create_table(SCHEMA, "SIGNALS", _SIGNAL, ["ID"], logged=False)
    for name in ("A", "B"):
        made = database.create_table(SCHEMA, name, [_ID, _V], ["ID"], logged=False)
        for number in range(_ROWS):
            transaction.insert(made, ID=number, V=f"{name} {number}")
    bare = database.create_table(SCHEMA, "BARE", [_V], logged=False)
    transaction.insert(bare, V="bare")
    transaction.commit()


def _changes(database: OracleDatabase) -> None:
    transaction = database.begin()
    for name in ("A", "B"):
        transaction.insert(table(database, name), ID=10, V="new")
        transaction.update(table(database, name), {"ID": 1}, V="changed")
        transaction.delete(table(database, name), {"ID": 2})
    transaction.commit()


def _more(database: OracleDatabase) -> None:
    transaction = database.begin()
    for name in ("A", "B"):
        transaction.insert(table(database, name), ID=30, V="more")
        transaction.update(table(database, name), {"ID": 3}, V="changed later")
    transaction.commit()


def _unsupported(database: OracleDatabase) -> None:
    transaction = database.begin()
    transaction.insert(table(database, "A"), ID=20, V="before")
    transaction.write(Operation.UNSUPPORTED, table(database, "A"), info="Unsupported")
    transaction.insert(table(database, "A"), ID=21, V="after")
    transaction.commit()


def _signal(kind: str, **data: object) -> Step:
    def signal(database: OracleDatabase) -> None:
        transaction = database.begin()
        transaction.insert(table(database, "SIGNALS"), ID="a signal", TYPE=kind, DATA=json.dumps(data))
        transaction.commit()

    return signal


_BASE = Case("", _setup, [_changes], tables=("A", "B", "BARE"), compact=True)
_SIGNALS = {"signal.data.collection": f"ORCLPDB1.{SCHEMA}.SIGNALS"}
_CAPTURED_DDL = {"schema.history.internal.store.only.captured.tables.ddl": "true"}
_TABLES = ",".join(rf"{SCHEMA}\.{name}" for name in ("A", "B", "BARE", END))


def _case(name: str, options: dict[str, str], reads: bool = True) -> Case:
    return replace(_BASE, name=f"snapshots/{name}", options=options, reads=reads)


def _signalled(name: str, steps: Sequence[Step | Pause], **options: str) -> Case:
    given = {
        **_SIGNALS,
        **_CAPTURED_DDL,
        "table.include.list": _TABLES,
        **{k.replace("_", "."): v for k, v in options.items()},
    }
    return replace(_BASE, name=f"snapshots/{name}", steps=steps, options=given)


_A, _B = (rf"(ORCLPDB1\.)?{SCHEMA}\.{name}" for name in "AB")
"""Debezium's names of tables begin with the database here, Floodmark's with the schema as everywhere."""
_SNAPSHOT_A = _signal("execute-snapshot", **{"type": "incremental", "data-collections": [_A]})
_SNAPSHOT_BOTH = _signal("execute-snapshot", **{"type": "incremental", "data-collections": [_A, _B]})
_BLOCKING_B = _signal("execute-snapshot", **{"type": "blocking", "data-collections": [_B]})
_OVERRIDE = "snapshot.select.statement.overrides"
SNAPSHOTS = (
    *(_case(mode, {"snapshot.mode": mode}) for mode in ("initial", "always", "when_needed")),
    _case("no_data", {"snapshot.mode": "no_data"}, reads=False),
    _case(
        "configuration_based",
        {
            "snapshot.mode": "configuration_based",
            "snapshot.mode.configuration.based.snapshot.data": "true",
            "snapshot.mode.configuration.based.snapshot.schema": "true",
            "snapshot.mode.configuration.based.start.stream": "true",
        },
    ),
    replace(_case("initial_only", {"snapshot.mode": "initial_only"}), steps=(), streams=False),
    _case("some_tables", {"snapshot.include.collection.list": _A}),
    _case(
        "override",
        {_OVERRIDE: f"{SCHEMA}.A", f"{_OVERRIDE}.{SCHEMA}.A": f'SELECT * FROM "{SCHEMA}"."A" WHERE "ID" > 2'},
    ),
    _case("one_thread", {"snapshot.max.threads": "1"}),
    replace(_case("unsupported_warn", {"event.processing.failure.handling.mode": "warn"}), steps=[_unsupported]),
    replace(_case("unsupported_skip", {"event.processing.failure.handling.mode": "skip"}), steps=[_unsupported]),
    _signalled("signal_log", [_signal("log", message="hello"), _changes]),
    _signalled("incremental", [_changes, Pause(), _SNAPSHOT_A, Pause('"snapshot":"incremental"', _ROWS), _more]),
    _signalled(
        "incremental_small_chunks",
        [_changes, Pause(), _SNAPSHOT_BOTH, Pause('"snapshot":"incremental"', 2 * _ROWS), _more],
        incremental_snapshot_chunk_size="2",
    ),
    _signalled("blocking", [_changes, Pause(), _BLOCKING_B, Pause('"op":"r"', 2 * _ROWS + 1 + _ROWS), _more]),
)
