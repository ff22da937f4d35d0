"""Selects rows of a table, in the form that LogMiner shows values in, so that both go through the same codecs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.oracle.sql import quoted
from floodmark.connectors.oracle.structures.table import Column
from floodmark.connectors.oracle.values import texts

_DAY = "'YYYY-MM-DD HH24:MI:SS'"
_MOMENT = "'YYYY-MM-DD HH24:MI:SS.FF9'"
_ZONED = "'YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM'"
_FORMATS = {"DATE": _DAY, "TIMESTAMP": _MOMENT}
_INT64_DIGITS, _DIGITS = 18, 38
_ALL_DIGITS = "'TM9'"
"""As many digits as a number has."""
_FLOATS = {"BINARY_FLOAT": pa.float32(), "BINARY_DOUBLE": pa.float64()}
_BINARY = frozenset(("RAW", "BLOB"))


class Selection:
    """The columns of a query.

    Args:
        columns: the table's. Large objects are read whatever ``lob.enabled`` says, as Debezium does.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self.schema = pa.schema([(f"C{place}", _type(column)) for place, column in enumerate(columns)])
        """The columns of the result."""

    @property
    def expressions(self) -> str:
        """What is selected."""
        return ", ".join(f"{_expression(column)} AS C{place}" for place, column in enumerate(self._columns))

    def raw_columns(self, rows: pa.Table) -> list[RawColumn]:
        """Return rows of the result as the table's columns.

        Raises:
            DecodeError: a value isn't what the column's type has.
        """
        return [
            RawColumn(_values(rows.column(place).combine_chunks(), column))
            for place, column in enumerate(self._columns)
        ]


def _kind(column: Column) -> pa.DataType | None:
    """Return the type of a number that Arrow holds exactly; None: text must do."""
    digits, scale = column.length, column.scale
    if column.type != "NUMBER" or scale is None or digits is None or not 0 <= scale <= digits <= _DIGITS:
        return None
    return pa.int64() if scale == 0 and digits <= _INT64_DIGITS else pa.decimal128(_DIGITS, scale)


def _type(column: Column) -> pa.DataType:
    if column.type in _FLOATS:
        return _FLOATS[column.type]
    if column.type in _BINARY:
        return pa.binary()
    return _kind(column) or pa.string()


def _expression(column: Column) -> str:
    name = quoted(column.name)
    kind = column.type
    if kind in ("NUMBER", "FLOAT"):
        return name if _kind(column) is not None else f"TO_CHAR({name}, {_ALL_DIGITS})"
    if kind in _FORMATS:
        return f"TO_CHAR({name}, {_FORMATS[kind]})"
    if kind.startswith("TIMESTAMP"):
        return f"TO_CHAR({name}, {_ZONED})"
    if kind.startswith("INTERVAL"):
        return f"TO_CHAR({name})"
    return f"XMLSERIALIZE(CONTENT {name} AS CLOB)" if kind == "XMLTYPE" else name


def _values(values: pa.Array, column: Column) -> pa.Array:
    kind = column.type
    if kind in _FLOATS or kind in _BINARY:
        return values
    if kind in ("NUMBER", "FLOAT"):
        return texts.numbers(values.cast(pa.string()), column.scale if kind == "NUMBER" else None)
    if kind in _FORMATS or kind.startswith("TIMESTAMP"):
        return texts.moments(values)
    if kind == "INTERVAL YEAR TO MONTH":
        return texts.month_intervals(values)
    return texts.day_intervals(values) if kind == "INTERVAL DAY TO SECOND" else values
