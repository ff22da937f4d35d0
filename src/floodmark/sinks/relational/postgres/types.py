"""Which types of PostgreSQL hold the values of Arrow columns."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from floodmark.sinks.relational.texts import decimal_type

_TYPES: Mapping[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "integer",
    pa.uint32(): "bigint",
    pa.uint64(): "numeric(20,0)",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.binary(): "bytea",
    pa.date32(): "date",
}
_STRICT = re.compile(
    r"(smallint|integer|bigint|numeric|real|double precision|boolean|date|bytea|money|oid|time|timestamp)\b.*|.*\[\]"
)
"""Types that would change texts that they accept, such as ``01`` as a number."""
_KEPT_TEXT = re.compile(r"text|character varying(\(\d+\))?")
"""Types that keep every text that they take as it is."""
_NUMERIC = re.compile(r"numeric(?:\((\d+),(-?\d+)\))?")
_WHOLE_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
_WIDER = {
    "smallint": ("integer", "bigint"),
    "integer": ("bigint",),
    "real": ("double precision",),
}


def column_type(kind: pa.DataType) -> str | None:
    """Return the type for values; None: there is none."""
    if kind in _TYPES:
        return _TYPES[kind]
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp with time zone" if kind.tz else "timestamp without time zone"
    if pa.types.is_time(kind):
        return "time without time zone"
    if pa.types.is_list(kind):
        element = column_type(kind.value_type)
        return None if element is None or element.endswith("[]") else f"{element}[]"
    return None


def accepts(found: str, kind: pa.DataType) -> bool:
    """Return whether a column takes all values of a type, or none that it would change.

    Args:
        found: the column's type as ``format_type`` writes it.
        kind: the values' type.
    """
    wanted = column_type(kind)
    if wanted is None:
        return False
    return found == wanted or holds(found, wanted) or (pa.types.is_string(kind) and not _STRICT.fullmatch(found))


def compared_as(found: str, kind: pa.DataType) -> pa.DataType | None:
    """Return the type as which a column is compared with values that it was written with; None: it can't be.

    That is only where the column has the values as they were written.

    Args:
        found: the column's type as ``format_type`` writes it.
        kind: the values' type.
    """
    numeric = _NUMERIC.fullmatch(found)
    if numeric is not None and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        if numeric[1] is None:
            return kind if pa.types.is_decimal(kind) else pa.decimal128(20, 0)
        precision, scale = int(numeric[1]), int(numeric[2])
        return decimal_type(precision, scale)
    if pa.types.is_integer(kind):
        return pa.int64() if found in _WHOLE_DIGITS else None
    if pa.types.is_floating(kind):
        return {"real": pa.float32(), "double precision": pa.float64()}.get(found)
    if pa.types.is_string(kind):
        return kind if _KEPT_TEXT.fullmatch(found) else None
    plain = (pa.types.is_boolean, pa.types.is_binary, pa.types.is_date, pa.types.is_timestamp)
    return kind if any(test(kind) for test in plain) and found == column_type(kind) else None


def holds(wide: str, narrow: str) -> bool:
    """Return whether a type of numbers holds all values of another one."""
    if wide == narrow or wide in _WIDER.get(narrow, ()):
        return True
    found = _NUMERIC.fullmatch(wide)
    if found is None:
        return False
    inner = _NUMERIC.fullmatch(narrow)
    if inner is None and narrow not in _WHOLE_DIGITS:
        return False
    if found[1] is None:
        return True
    if inner is None:
        return int(found[1]) - int(found[2]) >= _WHOLE_DIGITS[narrow]
    if inner[1] is None:
        return False
    room, needed = int(found[1]) - int(found[2]), int(inner[1]) - int(inner[2])
    return int(found[2]) >= int(inner[2]) and room >= needed
