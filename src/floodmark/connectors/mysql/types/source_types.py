"""What Debezium knows of a column's type: its name, length and scale, as they were declared.

It writes them into schemas (``column.propagate.source.type``), and cuts hashes to the length.
"""

from __future__ import annotations

from floodmark.connectors.mysql.schema.table import Column
from floodmark.rows.structure import SourceType

NONE = -1
"""A length that was not declared."""

_TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"}
_TEMPORAL = {"time", "datetime", "timestamp"}


def source_type(column: Column) -> SourceType:
    """Return what Debezium knows of a column's type."""
    words = [column.type.upper()]
    words += ["UNSIGNED"] * column.unsigned + ["ZEROFILL"] * column.zerofill
    return SourceType(" ".join(words), _length(column), _scale(column), column.type in _TEXTS)


def _length(column: Column) -> int:
    """Return the length; that of times is the digits of a second's fraction."""
    if column.type in _TEMPORAL:
        return NONE if column.scale is None else column.scale
    if column.type == "enum":
        return 1
    if column.type == "set":
        return max(0, 2 * len(column.values) - 1)
    if column.type == "decimal":
        return column.length or 10
    if column.length is None:
        return 1 if column.type in ("bit", "char", "binary") else NONE
    return column.length


def _scale(column: Column) -> int:
    if column.type == "decimal":
        return column.scale or 0
    return NONE if column.scale is None or column.type in _TEMPORAL else column.scale
