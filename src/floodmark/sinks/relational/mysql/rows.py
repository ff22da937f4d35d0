"""Rows that queries of MySQL and MariaDB return, as Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

_FIRST_DAY = 719_528
"""1970-01-01 as the number of a day."""


def selected(column: str, kind: pa.DataType) -> str:
    """Return what is selected of a column.

    Args:
        column: its name, quoted.
        kind: the type of the values that ``columns_of`` makes of it.
    """
    if pa.types.is_floating(kind):
        # A FLOAT as text has six digits only.
        return f"CAST({column} AS DOUBLE)"
    if pa.types.is_date(kind):
        return f"TO_DAYS({column}) - {_FIRST_DAY}"
    if pa.types.is_timestamp(kind):
        return f"TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {column})"
    return column


def columns_of(rows: Sequence[tuple[Any, ...]], columns: pa.Schema) -> pa.Table:
    """Return rows as columns.

    Args:
        rows: at least one.
        columns: names and types of the columns, of which ``selected`` was selected.

    Raises:
        pyarrow.ArrowInvalid: a value isn't one of the type.
    """
    made = [_typed(list(values), kind) for values, kind in zip(zip(*rows, strict=True), columns.types, strict=True)]
    return pa.table(made, schema=columns)


def _typed(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(pa.timestamp("us", kind.tz)).cast(kind)
    if pa.types.is_floating(kind):
        return pa.array(values, pa.float64()).cast(kind)
    return pa.array(values, kind)
