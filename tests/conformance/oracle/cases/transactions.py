"""Transactions that overlap, are undone in part or as a whole, and change keys; in tables with and without one."""

from __future__ import annotations

from dataclasses import replace

from tests.conformance.oracle.cases.case import SCHEMA, Case, table
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import column

SECOND = 1000
"""Change numbers in a second of the stand-in's clock."""


def _setup(database: OracleDatabase) -> None:
    columns = [column("ID", "NUMBER(9,0)", nullable=False), column("NAME", "VARCHAR2(50)"), column("V", "NUMBER(9,0)")]
    keyed = database.create_table(SCHEMA, "KEYED", columns, ["ID"], logged=False)
    bare = database.create_table(SCHEMA, "BARE", columns[1:], logged=False)
    database.create_table(
        SCHEMA, "PAIRS", [*columns[:2], column("B", "NUMBER(4)", nullable=False)], ["B", "ID"], logged=False
    )
    transaction = database.begin()
    for number in range(3):
        transaction.insert(keyed, ID=number, NAME=f"row {number}", V=number)
        transaction.insert(bare, NAME=f"row {number}")
    transaction.commit()


def _overlapping(database: OracleDatabase) -> None:
    keyed, bare = table(database, "KEYED"), table(database, "BARE")
    first, second = database.begin("ANN"), database.begin("BEN", client="ben's client")
    first.insert(keyed, ID=10, NAME="first")
    database.clock.advance(2 * SECOND)
    second.insert(keyed, ID=20, NAME="second")
    second.update(keyed, {"ID": 1}, V=11)
    database.clock.advance(2 * SECOND)
    first.update(keyed, {"ID": 10}, NAME=None)
    first.update(bare, {"NAME": "row 0"}, V=5)
    database.clock.advance(2 * SECOND)
    second.commit()
    first.delete(keyed, {"ID": 0})
    database.clock.advance(2 * SECOND)
    first.commit()


def _undone(database: OracleDatabase) -> None:
    keyed, bare = table(database, "KEYED"), table(database, "BARE")
    kept, lost = database.begin(), database.begin()
    lost.insert(keyed, ID=30, NAME="lost")
    lost.delete(keyed, {"ID": 2})
    kept.insert(keyed, ID=31, NAME="kept")
    kept.savepoint("a")
    kept.update(keyed, {"ID": 31}, NAME="undone")
    kept.insert(bare, NAME="undone")
    kept.rollback_to("a")
    lost.rollback()
    kept.update(keyed, {"ID": 31}, NAME="kept again")
    kept.commit()
    empty = database.begin()
    empty.savepoint("b")
    empty.insert(bare, NAME="undone")
    empty.rollback_to("b")
    empty.commit()


def _keys(database: OracleDatabase) -> None:
    keyed, bare, pairs = (table(database, name) for name in ("KEYED", "BARE", "PAIRS"))
    transaction = database.begin()
    transaction.insert(pairs, ID=1, B=2, NAME="a")
    transaction.update(pairs, {"ID": 1}, ID=5)
    transaction.update(pairs, {"ID": 5}, NAME="b")
    transaction.delete(pairs, {"ID": 5})
    transaction.update(keyed, {"ID": 1}, ID=101, NAME="moved")
    transaction.delete(bare, {"NAME": "row 1"})
    transaction.commit()


TRANSACTION = Case("transactions", _setup, [_overlapping, _undone, _keys], tables=("KEYED", "BARE", "PAIRS"))
_SCHEMAS = {"key.converter.schemas.enable": "true", "value.converter.schemas.enable": "true"}
TRANSACTIONS = (
    TRANSACTION,
    replace(TRANSACTION, name="transactions_schemas", options=_SCHEMAS),
    replace(TRANSACTION, name="redo_sql", options={"log.mining.include.redo.sql": "true"}),
    replace(TRANSACTION, adapter="logminer_unbuffered"),
    replace(
        TRANSACTION,
        name="transaction_metadata",
        options={"provide.transaction.metadata": "true"},
        adapter="logminer_unbuffered",
    ),
    replace(TRANSACTION, name="skipped_u", options={"skipped.operations": "u"}),
    replace(TRANSACTION, name="skipped_d", options={"skipped.operations": "d"}),
    replace(TRANSACTION, name="no_tombstones", options={"tombstones.on.delete": "false"}),
    replace(TRANSACTION, name="transaction_metadata", options={"provide.transaction.metadata": "true"}),
)
