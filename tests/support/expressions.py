"""Rows of many types as records, and as rows of Spark, for the same expressions."""

from __future__ import annotations

import base64
import itertools
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from floodmark.codecs.floats import java_number
from floodmark.events.connect_schema import ConnectSchema, field_schema, struct
from floodmark.events.json_text import Fragment, string
from floodmark.transforms.records import Header, Records
from floodmark.transforms.structs import Struct

DECIMAL: ConnectSchema = {
    "type": "bytes",
    "name": "org.apache.kafka.connect.data.Decimal",
    "version": 1,
    "parameters": {"scale": "2"},
}
COLUMNS: dict[str, tuple[str, ConnectSchema, list[Any]]] = {
    "i": ("int", {"type": "int32"}, [0, 1, -7, None, 2147483647]),
    "j": ("int", {"type": "int32"}, [3, None, 2, -7]),
    "l": ("bigint", {"type": "int64"}, [0, None, 5, -(1 << 62), 2]),
    "d": ("double", {"type": "double"}, [1.5, -0.0, None, math.nan, math.inf, 1e10, -2.0]),
    "f": ("float", {"type": "float"}, [0.5, None, math.nan, -3.25]),
    "s": ("string", {"type": "string"}, ["", "a", "Straße", None, "a%b_c", "x\ny", "😀é", "5", " A "]),
    "t": ("string", {"type": "string"}, ["a", "b", None, ""]),
    "b": ("boolean", {"type": "boolean"}, [True, False, None]),
    "n": ("decimal(10,2)", DECIMAL, [Decimal("1.50"), None, Decimal("-0.01"), Decimal("100.00")]),
    "odd name": ("string", {"type": "string"}, ["q", None]),
}
ROWS = 63
SPARK_SCHEMA = (
    "topic string, key struct<id:int>, header struct<h:string>, value struct<op:string, "
    f"after:struct<{', '.join(f'`{name}`:{kind}' for name, (kind, _, _) in COLUMNS.items())}>>"
)


def rows() -> list[dict[str, Any]]:
    """Return rows whose columns' values are combined in many ways."""
    cycles = [itertools.cycle(values) for _, _, values in COLUMNS.values()]
    return [dict(zip(COLUMNS, (next(cycle) for cycle in cycles), strict=True)) for _ in range(ROWS)]


def spark_rows() -> list[tuple[Any, ...]]:
    """Return the rows for ``SPARK_SCHEMA``."""
    return [
        (f"t{number % 3}", (number,), ("h",), ("cu"[number % 2], tuple(row.values())))
        for number, row in enumerate(rows())
    ]


def records() -> Records:
    """Return the same as records."""
    every = rows()
    fields = [field_schema(schema, True, name) for name, (_, schema, _) in COLUMNS.items()]
    row = struct(fields, True, "t.Value")
    after = Struct(row, [_fragment(kind, [one[name] for one in every]) for name, (kind, _, _) in COLUMNS.items()])
    operations = string(pa.array(["cu"[number % 2] for number in range(ROWS)]))
    schema = struct([field_schema({"type": "string"}, False, "op"), field_schema(row, True, "after")], False, "t.Env")
    key = struct([field_schema({"type": "int32"}, False, "id")], False, "t.Key")
    numbers = Fragment(pa.array([str(number) for number in range(ROWS)]))
    header = Header("h", {"type": "string", "optional": True}, '"h"')
    topics = pa.array([f"t{number % 3}" for number in range(ROWS)])
    value = Struct(schema, [operations, after])
    return Records("rows of s.t", ROWS, topics, Struct(key, [numbers]), value, (header,), np.arange(ROWS))


def _fragment(kind: str, values: list[Any]) -> Fragment:
    if kind == "string":
        return string(pa.array(values, pa.string()))
    if kind in ("double", "float"):
        arrow = pa.float64() if kind == "double" else pa.float32()
        return Fragment(java_number(pa.array(values, arrow).cast(pa.string()), arrow))
    if kind == "boolean":
        return Fragment(pa.array([None if one is None else str(one).lower() for one in values]))
    if kind.startswith("decimal"):
        unscaled = [None if one is None else int(one.scaleb(2)) for one in values]
        raw = [None if one is None else one.to_bytes(8, "big", signed=True) for one in unscaled]
        return Fragment(pa.array([None if one is None else base64.b64encode(one).decode() for one in raw]), quoted=True)
    return Fragment(pa.array([None if one is None else str(one) for one in values]))
