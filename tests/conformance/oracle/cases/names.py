"""Names that must be quoted, long ones, and tables with very many columns."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from tests.conformance.oracle.cases.case import SCHEMA, Case, Pause, Step, table
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import Column, column

_ID, _VALUE = column("ID", "NUMBER(9,0)", nullable=False), column("V", "VARCHAR2(20)")
_TABLES = {
    "lower": ["id", "Mixed Case", "v"],
    "With Space": ["ID", "a b", "c,d"],
    "DOT.TED": ["ID", "a.b", "c.d.e"],
    "SIGNS$#_": ["ID", "A$B", "C#D"],
    "TÄBLE": ["ID", "SPÄLTE", "列"],
    "VALUES": ["ID", "SELECT", "WHERE"],
    "A_NAME_OF_MORE_THAN_THIRTY_CHARACTERS_IS_SHOWN": ["ID", "A_COLUMN_OF_MORE_THAN_THIRTY_CHARACTERS_TOO", "V"],
    "DASH-ED": ["ID", "a-b", "1st"],
}


def _columns(names: list[str]) -> list[Column]:
    first, *others = names
    return [replace(_ID, name=first), *(replace(_VALUE, name=one) for one in others)]


def _setup(database: OracleDatabase) -> None:
    transaction = database.begin()
    for name, columns in _TABLES.items():
        made = database.create_table(SCHEMA, name, _columns(columns), columns[:1], logged=False)
        transaction.insert(made, **dict.fromkeys(columns[1:], "read"), **{columns[0]: 1})
    transaction.commit()


def _changes(database: OracleDatabase) -> None:
    transaction = database.begin()
    for name, columns in _TABLES.items():
        made = table(database, name)
        transaction.insert(made, **dict.fromkeys(columns[1:], "new"), **{columns[0]: 2})
        transaction.update(made, {columns[0]: 2}, **{columns[1]: None})
        transaction.delete(made, {columns[0]: 2})
    transaction.commit()


def _altered(database: OracleDatabase) -> None:
    made = table(database, "With Space")
    more = replace(_VALUE, name="e f")
    columns = (*made.structure.columns, more)
    database.ddl(made, f'ALTER TABLE "{SCHEMA}"."With Space" ADD ("e f" VARCHAR2(20))', columns=columns)
    transaction = database.begin()
    transaction.insert(made, **{"ID": 3, "e f": "new"})
    transaction.commit()


def _wide(count: int) -> tuple[Step, Step]:
    names = [f"C{number}" for number in range(count)]

    def setup(database: OracleDatabase) -> None:
        columns = [
            _ID,
            *(column(name, "NUMBER(9,2)" if place % 2 else "VARCHAR2(9)") for place, name in enumerate(names)),
        ]
        made = database.create_table(SCHEMA, "WIDE", columns, ["ID"], logged=False)
        transaction = database.begin()
        transaction.insert(made, ID=1)
        transaction.commit()

    def change(database: OracleDatabase) -> None:
        made = table(database, "WIDE")
        transaction = database.begin()
        row = {name: Decimal(place) / 4 if place % 2 else f"v{place}" for place, name in enumerate(names)}
        transaction.insert(made, ID=2, **row)
        transaction.update(made, {"ID": 2}, **{names[-1]: None})
        transaction.update(made, {"ID": 2}, **{names[0]: "it's"})
        transaction.delete(made, {"ID": 2})
        transaction.commit()

    return setup, change


_SCHEMAS = {"key.converter.schemas.enable": "true", "value.converter.schemas.enable": "true"}
_ODD = Case("names/odd", _setup, [_changes, Pause(), _altered], tables=tuple(_TABLES), compact=True)


def _adjusted(mode: str) -> Case:
    options = {"schema.name.adjustment.mode": mode, "field.name.adjustment.mode": mode, **_SCHEMAS}
    return replace(_ODD, name=f"names/odd_{mode}", options=options)


def _wide_case(count: int) -> Case:
    setup, change = _wide(count)
    return Case(f"names/columns_{count}", setup, [change], tables=["WIDE"], compact=True)


NAMES = (
    _ODD,
    replace(_ODD, name="names/odd_schemas", options=_SCHEMAS),
    _adjusted("avro"),
    _adjusted("avro_unicode"),
    replace(
        _ODD,
        name="names/odd_unicode_topics",
        options={"topic.naming.strategy": "io.debezium.schema.SchemaUnicodeTopicNamingStrategy"},
    ),
    replace(_ODD, name="names/odd_redo_sql", options={"log.mining.include.redo.sql": "true"}),
    _wide_case(300),
    _wide_case(999),
)
