"""Answers ``java.sql.DatabaseMetaData`` as Oracle's driver does, from the dictionary."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tests.support.oracle.errors import OracleError
from tests.support.oracle.model.database import ROOT
from tests.support.oracle.model.tables import Column, Table
from tests.support.oracle.model.types import UNSET_SCALE
from tests.support.oracle.sql.session import Session

TYPES = {
    "NUMBER": 2,
    "FLOAT": 6,
    "CHAR": 1,
    "VARCHAR2": 12,
    "NCHAR": -15,
    "NVARCHAR2": -9,
    "DATE": 93,
    "TIMESTAMP": 93,
    "TIMESTAMP WITH TIME ZONE": -101,
    "TIMESTAMP WITH LOCAL TIME ZONE": -102,
    "INTERVAL YEAR TO MONTH": -103,
    "INTERVAL DAY TO SECOND": -104,
    "RAW": -3,
    "CLOB": 2005,
    "NCLOB": 2011,
    "BLOB": 2004,
    "BINARY_FLOAT": 100,
    "BINARY_DOUBLE": 101,
    "ROWID": -8,
    "XMLTYPE": 2009,
}
"""``DATA_TYPE`` of columns: those of ``java.sql.Types`` and ``oracle.jdbc.OracleTypes``."""
SIZES = {
    "DATE": 7,
    "TIMESTAMP": 11,
    "TIMESTAMP WITH TIME ZONE": 13,
    "TIMESTAMP WITH LOCAL TIME ZONE": 11,
    "CLOB": 4000,
    "NCLOB": 4000,
    "BLOB": 4000,
    "BINARY_FLOAT": 4,
    "BINARY_DOUBLE": 8,
}
"""``DATA_LENGTH`` of types whose length isn't given."""
_COLUMNS = [
    "TABLE_CAT",
    "TABLE_SCHEM",
    "TABLE_NAME",
    "COLUMN_NAME",
    "DATA_TYPE",
    "TYPE_NAME",
    "COLUMN_SIZE",
    "BUFFER_LENGTH",
    "DECIMAL_DIGITS",
    "NUM_PREC_RADIX",
    "NULLABLE",
    "REMARKS",
    "COLUMN_DEF",
    "SQL_DATA_TYPE",
    "SQL_DATETIME_SUB",
    "CHAR_OCTET_LENGTH",
    "ORDINAL_POSITION",
    "IS_NULLABLE",
    "SCOPE_CATALOG",
    "SCOPE_SCHEMA",
    "SCOPE_TABLE",
    "SOURCE_DATA_TYPE",
    "IS_AUTOINCREMENT",
    "IS_GENERATEDCOLUMN",
]
_KEYS = ["TABLE_CAT", "TABLE_SCHEM", "TABLE_NAME", "COLUMN_NAME", "KEY_SEQ", "PK_NAME"]
_INDEXES = [
    "TABLE_CAT",
    "TABLE_SCHEM",
    "TABLE_NAME",
    "NON_UNIQUE",
    "INDEX_QUALIFIER",
    "INDEX_NAME",
    "TYPE",
    "ORDINAL_POSITION",
    "COLUMN_NAME",
    "ASC_OR_DESC",
    "CARDINALITY",
    "PAGES",
    "FILTER_CONDITION",
]
Answer = tuple[list[str], list[list[Any]]]


def answer(session: Session, method: str, arguments: list[Any]) -> Answer:
    """Return the names of the columns, and the rows.

    Raises:
        OracleError: the method isn't known.
    """
    database = session.database
    with database.lock:
        if method == "getCatalogs":
            return ["TABLE_CAT"], []
        if method == "getSchemas":
            return ["TABLE_SCHEM", "TABLE_CATALOG"], [[name, None] for name in _owners(session)]
        if method == "getTables":
            found = _matching(session, arguments[1], arguments[2])
            return ["TABLE_CAT", "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE"], [
                [None, one.owner, one.name, "TABLE"] for one in found
            ]
        if method == "getColumns":
            rows = [
                _column(table, number, one)
                for table in _matching(session, arguments[1], arguments[2])
                for number, one in enumerate(table.structure.columns, 1)
            ]
            return _COLUMNS, rows
        if method == "getPrimaryKeys":
            return _KEYS, [row for one in _named(session, arguments) for row in _key(one)]
        if method == "getIndexInfo":
            return _INDEXES, [row for one in _named(session, arguments) for row in _index(one)]
    raise OracleError(900, text=f"DatabaseMetaData.{method} isn't known to the stand-in")


def _owners(session: Session) -> list[str]:
    return sorted({one.owner for one in session.database.visible_tables(session.container)})


def _matching(session: Session, schema: str | None, table: str | None) -> Iterable[Table]:
    home = session.container if session.database.pluggable else ROOT
    for one in session.database.visible_tables(home):
        if _matches(schema, one.owner) and _matches(table, one.name):
            yield one


def _named(session: Session, arguments: list[Any]) -> list[Table]:
    return [one for one in _matching(session, None, None) if [one.owner, one.name] == arguments[1:3]]


def _matches(pattern: str | None, name: str) -> bool:
    if pattern is None:
        return True
    parts = re.findall(r"/(.)|(%)|(_)|(.)", pattern, re.DOTALL)
    text = "".join(re.escape(a or d) if a or d else ".*" if b else "." for a, b, c, d in parts)
    return re.fullmatch(text, name, re.DOTALL) is not None


def _column(table: Table, number: int, column: Column) -> list[Any]:
    type_ = column.type
    # As the driver's own query does: DATA_SCALE, but -127 for a NUMBER that has neither precision nor scale.
    digits: int | None = None if type_.scale == UNSET_SCALE else type_.scale
    size = type_.length or SIZES.get(type_.base, 0)
    if type_.base == "NUMBER":
        size, digits = type_.precision or 0, type_.scale
    elif type_.precision is not None:
        size = type_.precision
    if type_.base.startswith("INTERVAL YEAR"):
        digits = 0
    found: dict[str, Any] = {
        "TABLE_SCHEM": table.owner,
        "TABLE_NAME": table.name,
        "COLUMN_NAME": column.name,
        "DATA_TYPE": TYPES[type_.base],
        "TYPE_NAME": type_.name,
        "COLUMN_SIZE": size,
        "DECIMAL_DIGITS": digits,
        "NUM_PREC_RADIX": 10,
        "NULLABLE": int(column.nullable),
        "COLUMN_DEF": column.default or None,
        "ORDINAL_POSITION": number,
        "IS_NULLABLE": "YES" if column.nullable else "NO",
        "IS_AUTOINCREMENT": "NO",
        "IS_GENERATEDCOLUMN": "NO",
    }
    return [found.get(name) for name in _COLUMNS]


def _key(table: Table) -> list[list[Any]]:
    name = f"SYS_C{table.object_id}"
    return [[None, table.owner, table.name, one, place, name] for place, one in enumerate(table.structure.key, 1)]


def _index(table: Table) -> list[list[Any]]:
    name = f"SYS_C{table.object_id}"
    return [
        [None, table.owner, table.name, 0, None, name, 1, place, one, None, 0, 0, None]
        for place, one in enumerate(table.structure.key, 1)
    ]
