"""Parses types of columns, and names them as the dictionary does."""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.connectors.oracle.ddl.cursor import Cursor, words
from floodmark.connectors.oracle.ddl.tokens import NAME, WORD
from floodmark.connectors.oracle.structures.table import UNLIMITED_DIGITS

FLOAT_DIGITS, _REAL_DIGITS = 126, 63
"""Binary digits of FLOAT and REAL."""
_FRACTION, _LEADING = 6, 2
_WHOLE = words("INTEGER INT SMALLINT NUMERIC DECIMAL DEC")
_SIZED = {
    "CHAR": "CHAR",
    "CHARACTER": "CHAR",
    "VARCHAR": "VARCHAR2",
    "VARCHAR2": "VARCHAR2",
    "NCHAR": "NCHAR",
    "NVARCHAR2": "NVARCHAR2",
    "RAW": "RAW",
}
_VARYING = {"CHAR": "VARCHAR2", "NCHAR": "NVARCHAR2"}
_ONE = frozenset({"CHAR", "NCHAR"})
"""Types whose length is 1 if it isn't given."""
_SYSTEM = {("SYS", "XMLTYPE"): "XMLTYPE", ("PUBLIC", "XMLTYPE"): "XMLTYPE", ("MDSYS", "SDO_GEOMETRY"): "SDO_GEOMETRY"}
"""Types that need no schema in front of their names."""


@dataclass(frozen=True)
class ColumnType:
    """A type, in the words and numbers of ``Column``."""

    name: str
    length: int | None = None
    scale: int | None = None


def parse_type(cursor: Cursor) -> ColumnType:
    """Parse the type that comes next.

    Oracle Database SQL Language Reference: "Data Types", with "ANSI, DB2, and SQL/DS Data Types".
    """
    token = cursor.next
    if token.kind not in (WORD, NAME):
        cursor.fail("a type")
    if token.kind == NAME or cursor.ahead(1).value == ".":
        return _parse_object_type(cursor)
    word = cursor.take().value
    if word == "NATIONAL":
        if cursor.accept_any("CHARACTER", "CHAR") is None:
            cursor.fail("CHARACTER")
        return _parse_sized(cursor, "NCHAR")
    if word in _SIZED:
        return _parse_sized(cursor, _SIZED[word])
    if word == "NUMBER" or word in _WHOLE:
        return _parse_number(cursor, whole=word != "NUMBER")
    if word in ("FLOAT", "REAL", "DOUBLE"):
        return _parse_float(cursor, word)
    if word == "TIMESTAMP":
        return _parse_timestamp(cursor)
    if word == "INTERVAL":
        return _parse_interval(cursor)
    if word == "LONG":
        if cursor.accept("RAW"):
            return ColumnType("LONG RAW")
        # LONG VARCHAR is an alias.
        cursor.accept("VARCHAR")
        return ColumnType("LONG")
    return _parse_other(cursor, word)


def _parse_object_type(cursor: Cursor) -> ColumnType:
    owner, name = cursor.table_name()
    return ColumnType(_SYSTEM.get((owner, name), name))


def _parse_other(cursor: Cursor, word: str) -> ColumnType:
    if cursor.sees("("):
        # UROWID and VECTOR have sizes, XMLTYPE and JSON may have details of their storage.
        cursor.skip_parentheses()
    return ColumnType("BOOLEAN" if word == "BOOL" else word)


def _parse_sized(cursor: Cursor, name: str) -> ColumnType:
    if name in _VARYING and cursor.accept("VARYING"):
        name = _VARYING[name]
    if not cursor.accept("("):
        if name not in _ONE:
            cursor.fail("a length")
        return ColumnType(name, 1)
    length = cursor.number()
    cursor.accept_any("BYTE", "CHAR")
    cursor.expect(")")
    return ColumnType(name, length)


def _parse_number(cursor: Cursor, whole: bool) -> ColumnType:
    if not cursor.accept("("):
        return ColumnType("NUMBER", UNLIMITED_DIGITS, 0) if whole else ColumnType("NUMBER")
    unlimited = cursor.accept("*")
    length = UNLIMITED_DIGITS if unlimited else cursor.number()
    scale = cursor.number() if cursor.accept(",") else None
    cursor.expect(")")
    if scale is None and unlimited and not whole:
        # NUMBER(*) is NUMBER.
        return ColumnType("NUMBER")
    return ColumnType("NUMBER", length, scale or 0)


def _parse_float(cursor: Cursor, word: str) -> ColumnType:
    if word == "DOUBLE":
        cursor.expect("PRECISION")
    digits = _REAL_DIGITS if word == "REAL" else FLOAT_DIGITS
    return ColumnType("FLOAT", _parse_digits(cursor, digits))


def _parse_timestamp(cursor: Cursor) -> ColumnType:
    digits = _parse_digits(cursor, _FRACTION)
    if cursor.accept("WITH", "LOCAL", "TIME", "ZONE"):
        return ColumnType("TIMESTAMP WITH LOCAL TIME ZONE", scale=digits)
    if cursor.accept("WITH", "TIME", "ZONE"):
        return ColumnType("TIMESTAMP WITH TIME ZONE", scale=digits)
    return ColumnType("TIMESTAMP", scale=digits)


def _parse_interval(cursor: Cursor) -> ColumnType:
    years = cursor.accept("YEAR")
    if not years:
        cursor.expect("DAY")
    leading = _parse_digits(cursor, _LEADING)
    cursor.expect("TO")
    if years:
        cursor.expect("MONTH")
        return ColumnType("INTERVAL YEAR TO MONTH", leading, 0)
    cursor.expect("SECOND")
    return ColumnType("INTERVAL DAY TO SECOND", leading, _parse_digits(cursor, _FRACTION))


def _parse_digits(cursor: Cursor, default: int) -> int:
    if not cursor.accept("("):
        return default
    digits = cursor.number()
    cursor.expect(")")
    return digits
