"""Tables and columns as Debezium's schema history and schema change topic describe them.

Debezium knows columns by JDBC where it has read the dictionary, and by its own parser where it has read a statement.
The two name types differently and have other lengths: JDBC has ``TIMESTAMP(6)``, and the parser ``TIMESTAMP``, whose
length is 6. ``Column.stated`` says which of them applies.
"""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.connectors.oracle.structures.table import UNLIMITED_DIGITS, Column, Table
from floodmark.json_data import Json

_OTHER = 1111
_JDBC_TYPES = {
    "NUMBER": 2,
    "FLOAT": 6,
    "CHAR": 1,
    "VARCHAR2": 12,
    "NCHAR": -15,
    "NVARCHAR2": -9,
    "LONG": -1,
    "LONG RAW": -4,
    "RAW": -3,
    "DATE": 93,
    "TIMESTAMP": 93,
    "TIMESTAMP WITH TIME ZONE": -101,
    "TIMESTAMP WITH LOCAL TIME ZONE": -102,
    "INTERVAL YEAR TO MONTH": -103,
    "INTERVAL DAY TO SECOND": -104,
    "CLOB": 2005,
    "NCLOB": 2011,
    "BLOB": 2004,
    "BFILE": -13,
    "BINARY_FLOAT": 100,
    "BINARY_DOUBLE": 101,
    "ROWID": -8,
    "XMLTYPE": 2009,
    "SDO_GEOMETRY": 2002,
}
"""``java.sql.Types`` and ``oracle.jdbc.OracleTypes``."""
_STATED_JDBC_TYPES = {
    **_JDBC_TYPES,
    "RAW": -2,
    "ROWID": 12,
    "SDO_GEOMETRY": _OTHER,
    **dict.fromkeys(("LONG", "LONG RAW", "BFILE"), _OTHER),
}
_DATA_LENGTHS = {
    "BINARY_FLOAT": 4,
    "BINARY_DOUBLE": 8,
    "TIMESTAMP WITH TIME ZONE": 13,
    "TIMESTAMP WITH LOCAL TIME ZONE": 11,
    **dict.fromkeys(("CLOB", "NCLOB", "BLOB"), 4000),
}
"""``DATA_LENGTH`` of types whose length isn't given, which the driver reports."""


@dataclass(frozen=True)
class DescribedType:
    """A type in Debezium's words and numbers.

    Attributes:
        name: of the type.
        jdbc: its number.
        length: None: it has none.
        scale: None: it has none.
    """

    name: str
    jdbc: int
    length: int | None
    scale: int | None


def table_id(table: Table) -> str:
    """Return a table's full name in quotes."""
    return ".".join(f'"{part}"' for part in (table.database, table.owner, table.name))


def described_table(table: Table, comments: bool = False) -> dict[str, Json]:
    """Return a table in the form of the schema change topic.

    Args:
        table: the table.
        comments: whether to include comments.
    """
    return {
        "defaultCharsetName": None,
        "primaryKeyColumnNames": list(table.key),
        "columns": [described_column(one, place, comments) for place, one in enumerate(table.columns, start=1)],
        "comment": table.comment if comments else None,
    }


def described_column(column: Column, position: int, comments: bool = False) -> dict[str, Json]:
    """Return a column in the form of the schema change topic.

    Args:
        column: the column.
        position: its number in the table, from 1.
        comments: whether to include comments.
    """
    type_ = described_type(column)
    return {
        "name": column.name,
        "jdbcType": type_.jdbc,
        "nativeType": None,
        "typeName": type_.name,
        "typeExpression": type_.name,
        "charsetName": None,
        "length": type_.length,
        "scale": type_.scale,
        "position": position,
        "optional": column.optional,
        "autoIncremented": column.identity,
        # Only computed columns are, which the log doesn't have.
        "generated": False,
        "comment": column.comment if comments else None,
        "defaultValueExpression": column.default,
        "enumValues": None,
    }


def described_type(column: Column) -> DescribedType:
    """Return a column's type as Debezium knows it."""
    return _by_statement(column) if column.stated else _by_dictionary(column)


def _by_statement(column: Column) -> DescribedType:
    kind, length, scale = column.type, column.length, column.scale
    if kind == "NUMBER":
        length = UNLIMITED_DIGITS if length is None else length
    elif kind.startswith("TIMESTAMP"):
        length, scale = scale, None
    elif kind == "INTERVAL YEAR TO MONTH":
        scale = None
    elif kind == "SDO_GEOMETRY":
        length = 1
    return DescribedType(kind, _STATED_JDBC_TYPES.get(kind, _OTHER), length, scale)


def _by_dictionary(column: Column) -> DescribedType:
    kind, length, scale = column.type, column.length, column.scale
    jdbc = _JDBC_TYPES.get(kind, _OTHER)
    if kind == "NUMBER":
        return DescribedType(kind, jdbc, length or 0, scale)
    if kind == "TIMESTAMP":
        return DescribedType(f"TIMESTAMP({scale})", jdbc, scale, None)
    if kind.startswith("TIMESTAMP"):
        return DescribedType(kind.replace(" ", f"({scale}) ", 1), jdbc, _DATA_LENGTHS[kind], scale)
    if kind == "INTERVAL YEAR TO MONTH":
        return DescribedType(f"INTERVAL YEAR({length}) TO MONTH", jdbc, length, 0)
    if kind == "INTERVAL DAY TO SECOND":
        return DescribedType(f"INTERVAL DAY({length}) TO SECOND({scale})", jdbc, length, scale)
    return DescribedType(kind, jdbc, _DATA_LENGTHS.get(kind, length), scale)
