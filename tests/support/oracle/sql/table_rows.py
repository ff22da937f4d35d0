"""The rows of tables, as queries compare and sort them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.support.oracle.model.tables import Column, Row, Structure, ordered
from tests.support.oracle.model.types import UNSET_SCALE
from tests.support.oracle.model.values import Moment

ROWID = "ROWID"
PLACE = "the row's place"


def table_rows(structure: Structure, rows: Mapping[str, Row]) -> pa.Table:
    """Return rows with their ROWIDs, as DuckDB reads them."""
    arrays = {PLACE: pa.array(list(rows), pa.string()), ROWID: pa.array(list(map(ordered, rows)), pa.string())}
    for one in structure.columns:
        arrays[one.name] = _array(one, [row.get(one.name) for row in rows.values()])
    return pa.table(arrays)


def _array(column: Column, values: list[Any]) -> pa.Array:
    base = column.type.base
    if base in {"NUMBER", "FLOAT"}:
        if column.type.scale == UNSET_SCALE:
            return pa.array([None if one is None else float(one) for one in values], pa.float64())
        kind = pa.decimal128(38, max(column.type.scale, 0))
        return pa.array([None if one is None else Decimal(one) for one in values], kind)
    if base in {"BINARY_FLOAT", "BINARY_DOUBLE"}:
        return pa.array(values, pa.float64())
    if base == "DATE" or base.startswith("TIMESTAMP"):
        times = [one.time if isinstance(one, Moment) else one for one in values]
        return pa.array([None if one is None else one.replace(tzinfo=None) for one in times], pa.timestamp("us"))
    if base in {"RAW", "BLOB"}:
        return pa.array(values, pa.binary())
    if base == "CHAR":
        return pa.array([None if one is None else one.ljust(column.type.length) for one in values], pa.string())
    return pa.array([None if one is None else str(one) for one in values], pa.string())
