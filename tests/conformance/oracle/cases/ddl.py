"""Structures that change while a connector streams, and rows that are changed after that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from tests.conformance.oracle.cases.case import SCHEMA, Case, table
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import Column, column

ID, V = column("ID", "NUMBER(9,0)", nullable=False), column("V", "VARCHAR2(20)", default="'before'")
DAY = column("D", "DATE", nullable=False, default="SYSDATE")
BEFORE: dict[str, Sequence[Column]] = {
    "ADDED": [ID, V],
    "MODIFIED": [ID, column("N", "NUMBER(5)"), column("T", "TIMESTAMP(6)"), DAY],
    "DROPPED": [ID, column("A", "NUMBER(9)"), column("B", "CHAR(3)", default="'b'"), V],
    "RENAMED": [ID, column("OLD", "NUMBER(9,2)", default="1.5")],
    "OLD_NAME": [ID, V],
    "COMMENTED": [ID, V],
    "EMPTIED": [ID, V],
    "GONE": [ID, V],
    "REKEYED": [ID, column("B", "NUMBER(9)")],
    "STORED": [ID, V],
}
NEW = (
    'CREATE TABLE "CASES"."NEW" ("ID" NUMBER(9,0) NOT NULL ENABLE, "WHOLE" INTEGER DEFAULT 7, "ANY" NUMBER, '
    '"F" FLOAT, "C" CHAR(3 CHAR) DEFAULT \'c\', "NV" NVARCHAR2(9), "D" DATE DEFAULT SYSDATE NOT NULL, '
    '"T" TIMESTAMP (3), "Z" TIMESTAMP (6) WITH TIME ZONE, "M" INTERVAL YEAR (3) TO MONTH, '
    '"S" INTERVAL DAY (3) TO SECOND (6), "R" RAW(8), "BD" BINARY_DOUBLE DEFAULT 1.5, '
    'CONSTRAINT "NEW_PK" PRIMARY KEY ("ID") USING INDEX PCTFREE 10 INITRANS 2 TABLESPACE "USERS" ENABLE) '
    'SEGMENT CREATION IMMEDIATE PCTFREE 10 LOGGING TABLESPACE "USERS"'
)
NEW_COLUMNS = [
    ID,
    column("WHOLE", "INTEGER", default="7"),
    column("ANY", "NUMBER"),
    column("F", "FLOAT"),
    column("C", "CHAR(3)", default="'c'"),
    column("NV", "NVARCHAR2(9)"),
    DAY,
    column("T", "TIMESTAMP(3)"),
    column("Z", "TIMESTAMP(6) WITH TIME ZONE"),
    column("M", "INTERVAL YEAR(3) TO MONTH"),
    column("S", "INTERVAL DAY(3) TO SECOND(6)"),
    column("R", "RAW(8)"),
    column("BD", "BINARY_DOUBLE", default="1.5"),
]


def _setup(database: OracleDatabase) -> None:
    for name, columns in BEFORE.items():
        database.create_table(SCHEMA, name, columns, ["ID"], logged=False)
    # A connector says that its snapshot ends with the last row.
    transaction = database.begin()
    transaction.insert(table(database, "STORED"), ID=0, V="a row")
    transaction.commit()


def _statements(database: OracleDatabase) -> None:
    added, modified, dropped = (table(database, name) for name in ("ADDED", "MODIFIED", "DROPPED"))
    database.create_table(SCHEMA, "NEW", NEW_COLUMNS, ["ID"], text=NEW)
    more = (column("N", "NUMBER(5)"), column("E", "VARCHAR2(5)", nullable=False, default="'e'"))
    database.ddl(
        added,
        "ALTER TABLE cases.added ADD (n NUMBER(5), e VARCHAR2(5) DEFAULT 'e' NOT NULL)",
        columns=(*added.structure.columns, *more),
    )
    database.ddl(
        modified,
        "ALTER TABLE cases.modified MODIFY (n NUMBER(12,2) DEFAULT 2.5 NOT NULL, t TIMESTAMP(9))",
        columns=(ID, column("N", "NUMBER(12,2)", nullable=False, default="2.5"), column("T", "TIMESTAMP(9)"), DAY),
    )
    database.ddl(dropped, 'ALTER TABLE "CASES"."DROPPED" DROP ("A", "B")', columns=(ID, V))
    renamed = table(database, "RENAMED")
    new = replace(renamed.structure.columns[1], name="new")
    database.ddl(renamed, 'alter table cases.renamed rename column old to "new"', columns=(ID, new))
    database.ddl(table(database, "OLD_NAME"), "ALTER TABLE cases.old_name RENAME TO new_name", name="NEW_NAME")
    rekeyed = table(database, "REKEYED")
    database.ddl(rekeyed, "ALTER TABLE cases.rekeyed DROP PRIMARY KEY", key=())
    keyed = (ID, column("B", "NUMBER(9)", nullable=False))
    database.ddl(
        rekeyed,
        'ALTER TABLE "CASES"."REKEYED" ADD CONSTRAINT "REKEYED_PK" PRIMARY KEY ("B", "ID") USING INDEX ENABLE',
        key=("B", "ID"),
        columns=keyed,
    )
    database.ddl(table(database, "STORED"), "ALTER TABLE cases.stored SHRINK SPACE CASCADE")
    commented = table(database, "COMMENTED")
    database.ddl(commented, "COMMENT ON TABLE cases.commented IS 'A table'")
    database.ddl(commented, "COMMENT ON COLUMN cases.commented.v IS 'A value'")


def _rows(database: OracleDatabase) -> None:
    transaction = database.begin()
    for name in AFTER:
        changed = table(database, name)
        for number in (1, 2):
            row = {one.name: VALUES[one.type.base] for one in changed.structure.columns}
            transaction.insert(changed, **{**row, "ID": number})
        transaction.delete(changed, {"ID": 2})
    transaction.commit()


VALUES = {
    "NUMBER": 12,
    "FLOAT": None,
    "VARCHAR2": "text",
    "CHAR": "c",
    "NVARCHAR2": "Вы",
    "DATE": datetime(2026, 1, 2, 3, 4, 5),
    "RAW": b"\x01",
    "BINARY_DOUBLE": 1.5,
    "TIMESTAMP": None,
    "TIMESTAMP WITH TIME ZONE": None,
    "INTERVAL YEAR TO MONTH": "+001-02",
    "INTERVAL DAY TO SECOND": "+001 02:03:04.500000",
}


def _endings(database: OracleDatabase) -> None:
    database.truncate(table(database, "EMPTIED"))
    gone = table(database, "GONE")
    database.ddl(gone, 'DROP TABLE "CASES"."GONE" AS "BIN$aBcDeFgHiJkLmNoPqRsTuA==$0"')
    gone.dropped = True


AFTER = tuple(name for name in [*BEFORE, "NEW", "NEW_NAME"] if name not in ("OLD_NAME", "GONE"))
"""The tables at the end."""
CASE = Case("ddl", _setup, [_statements, _rows, _endings], tables=AFTER)
_SCHEMAS = {"key.converter.schemas.enable": "true", "value.converter.schemas.enable": "true"}
DDL = (
    CASE,
    replace(CASE, name="ddl_comments", options={"include.schema.comments": "true", **_SCHEMAS}),
    replace(CASE, adapter="logminer_unbuffered"),
)
