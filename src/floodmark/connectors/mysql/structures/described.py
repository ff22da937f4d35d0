"""Tables and columns as Debezium's schema history and schema change topic describe them."""

from __future__ import annotations

import re

from floodmark.connectors.mysql.structures.table import Column, Table
from floodmark.connectors.mysql.structures.type_names import TEMPORAL
from floodmark.json_data import Json

_JDBC_TYPES = {
    "BIT": -7,
    "BOOL": 16,
    "BOOLEAN": 16,
    "TINYINT": 5,
    "INT1": 5,
    "SMALLINT": 5,
    "INT2": 5,
    "MEDIUMINT": 4,
    "INT3": 4,
    "MIDDLEINT": 4,
    "INT": 4,
    "INTEGER": 4,
    "INT4": 4,
    "BIGINT": -5,
    "INT8": -5,
    "REAL": 7,
    "FLOAT": 6,
    "FLOAT4": 6,
    "DOUBLE": 8,
    "DOUBLE PRECISION": 8,
    "FLOAT8": 8,
    "DECIMAL": 3,
    "DEC": 3,
    "FIXED": 3,
    "NUMERIC": 2,
    "DATE": 91,
    "TIME": 92,
    "DATETIME": 93,
    "TIMESTAMP": 2014,
    "YEAR": 4,
    "CHAR": 1,
    "CHARACTER": 1,
    "ENUM": 1,
    "SET": 1,
    "NCHAR": -15,
    "NATIONAL CHAR": -15,
    "NATIONAL CHARACTER": -15,
    "VARCHAR": 12,
    "VARCHARACTER": 12,
    "CHAR VARYING": 12,
    "CHARACTER VARYING": 12,
    "TINYTEXT": 12,
    "TEXT": 12,
    "MEDIUMTEXT": 12,
    "LONGTEXT": 12,
    "LONG": 12,
    "LONG VARCHAR": 12,
    "LONG VARCHARACTER": 12,
    "LONG CHAR VARYING": 12,
    "LONG CHARACTER VARYING": 12,
    "BINARY": -2,
    "VARBINARY": -3,
    "TINYBLOB": 2004,
    "BLOB": 2004,
    "MEDIUMBLOB": 2004,
    "LONGBLOB": 2004,
    "LONG VARBINARY": 2004,
}
_NATIONAL_VARYING = -9
_OTHER = 1111
_ATTRIBUTES = re.compile(r" (?:SIGNED|BINARY)\b")
_OF_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_EPOCH = "1970-01-01 00:00:00"


def table_id(database: str, name: str) -> str:
    """Return a table's name in quotes."""
    return f'"{database}"."{name}"'


def described_table(table: Table) -> dict[str, Json]:
    """Return a table without its columns and its comment."""
    return {"defaultCharsetName": table.charset, "primaryKeyColumnNames": list(table.key)}


def described_column(column: Column, position: int, comments: bool = False) -> dict[str, Json]:
    """Return a column in the form of the schema change topic.

    Args:
        position: its number in the table, from 1.
        comments: whether to include comments.
    """
    name = type_name(column)
    # Debezium sets both for every column that the server fills in by itself, but not for generated columns.
    automatic = column.auto_increment or column.on_update
    return {
        "name": column.name,
        "jdbcType": _jdbc_type(_ATTRIBUTES.sub("", _declared(column))),
        "nativeType": None,
        "typeName": name,
        "typeExpression": name,
        "charsetName": _charset(column),
        "length": declared_length(column),
        "scale": declared_scale(column),
        "position": position,
        "optional": column.optional,
        "autoIncremented": automatic,
        "generated": automatic,
        "comment": column.comment if comments else None,
        "defaultValueExpression": _default(column),
        "enumValues": ["'" + value.replace("'", "''") + "'" for value in column.values] or None,
    }


def type_name(column: Column) -> str:
    """Return a type's name as it was declared, upper case."""
    return _declared(column) + (" UNSIGNED" if column.unsigned else "") + (" ZEROFILL" if column.zerofill else "")


def declared_length(column: Column) -> int | None:
    """Return a type's length as Debezium reports it; that of times is the digits of a second's fraction."""
    if column.type == "enum":
        return 1
    if column.type == "set":
        return max(0, 2 * len(column.values) - 1)
    if column.type in TEMPORAL:
        return column.scale
    if column.declared in ("BOOL", "BOOLEAN"):
        return None
    if column.declared == "NCHAR" and column.length is None:
        return 1
    return column.length


def declared_scale(column: Column) -> int | None:
    """Return the number of digits after the point as Debezium reports it."""
    return None if column.type in TEMPORAL else column.scale


def has_default(column: Column) -> bool:
    """Return whether Debezium reports that a column has a default."""
    return column.default_kind != "none" or (column.generated is not None and column.optional)


def _jdbc_type(declared: str) -> int:
    if declared.startswith("N") and ("VAR" in declared):
        return _NATIONAL_VARYING
    return _JDBC_TYPES.get(declared, _OTHER)


def _declared(column: Column) -> str:
    return column.declared or column.type.upper()


def _charset(column: Column) -> str | None:
    declared = _declared(column)
    if declared == "JSON":
        return None
    if declared.startswith(("NATIONAL ", "NCHAR", "NVARCHAR")):
        return "utf8"
    if column.type in _OF_BYTES and ("CHAR" in declared or "TEXT" in declared):
        return "binary"
    return column.charset


def _default(column: Column) -> str | None:
    text = column.written if column.written is not None else column.default
    if text is None or column.default_kind == "null":
        return None
    if column.default_kind == "expression":
        return _EPOCH if text.startswith("CURRENT_TIMESTAMP") else None
    if column.written is not None:
        return text
    if column.type == "bit":
        return text[2:-1]
    if column.type in _OF_BYTES and text.startswith("0x"):
        text = bytes.fromhex(text[2:]).decode("utf-8", "replace")
    return text.replace("'", "''")
