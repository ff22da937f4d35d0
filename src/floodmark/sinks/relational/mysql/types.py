"""Which types of MySQL and MariaDB hold the values of Arrow columns."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from floodmark.sinks.relational.texts import decimal_type

KEY_BYTES = 3072
"""Bytes of a key of InnoDB's default row format. MySQL's manual: "InnoDB Limits"."""
_BYTES_A_CHARACTER = 4
_LONGEST_DECIMAL, _MOST_PLACES = 65, 30
_TYPES: Mapping[pa.DataType, str] = {
    pa.bool_(): "tinyint(1)",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "tinyint unsigned",
    pa.uint16(): "smallint unsigned",
    pa.uint32(): "int unsigned",
    pa.uint64(): "bigint unsigned",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
}
_WHOLE = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
_DIGITS = {1: 3, 2: 5, 3: 8, 4: 10, 8: 20}
_WIDTH = re.compile(r"((?:tiny|small|medium|big)?int)(?:\(\d+\))?( unsigned)?")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)( unsigned)?")
_TEXTS = re.compile(r"(char|varchar)\(\d+\)|(tiny|medium|long)?text|json|enum\(.*\)|set\(.*\)|uuid|inet[46]")
_KEPT_TEXT, _KEPT_BYTES = re.compile(r"varchar\(\d+\)|(tiny|medium|long)?text"), re.compile(r"varbinary\(\d+\)|.*blob")
"""Types that keep every text, and all bytes, that they take as they are."""
_BYTES = re.compile(r"(binary|varbinary)\(\d+\)|(tiny|medium|long)?blob")


def column_type(kind: pa.DataType, collation: str, keys: int = 0) -> str | None:
    """Return the type for values; None: there is none.

    Args:
        collation: the one in which texts compare as bytes.
        keys: of how many columns the key is that the column belongs to; 0: it belongs to none.
    """
    if kind in _TYPES:
        return _TYPES[kind]
    if pa.types.is_decimal(kind):
        fits = kind.precision <= _LONGEST_DECIMAL and 0 <= kind.scale <= _MOST_PLACES
        return f"decimal({kind.precision},{kind.scale})" if fits else None
    if pa.types.is_string(kind):
        text = f"varchar({KEY_BYTES // _BYTES_A_CHARACTER // keys})" if keys else "longtext"
        return f"{text} CHARACTER SET utf8mb4 COLLATE {collation}"
    if pa.types.is_binary(kind):
        return f"varbinary({KEY_BYTES // keys})" if keys else "longblob"
    if pa.types.is_timestamp(kind):
        return "datetime(6)"
    if pa.types.is_time(kind):
        return "time(6)"
    return "json" if pa.types.is_list(kind) and not keys else None


def plain_type(found: str) -> str:
    """Return a column's type without what only concerns how numbers are shown."""
    whole = _WIDTH.fullmatch(found)
    return f"{whole[1]}{whole[2] or ''}" if whole and found != "tinyint(1)" else found


def accepts(found: str, kind: pa.DataType) -> bool:
    """Return whether a column takes all values of a type, or none that it would change.

    Args:
        found: the column's type as ``information_schema`` has it.
        kind: the values' type.
    """
    if pa.types.is_string(kind):
        return _TEXTS.fullmatch(found) is not None
    if pa.types.is_binary(kind):
        return _BYTES.fullmatch(found) is not None
    if pa.types.is_list(kind):
        # MariaDB's JSON is a text.
        return found in ("json", "longtext")
    if pa.types.is_boolean(kind):
        return found in ("tinyint(1)", "tinyint")
    wanted = column_type(kind, "")
    return wanted is not None and holds(plain_type(found), wanted)


def compared_as(found: str, kind: pa.DataType) -> pa.DataType | None:
    """Return the type as which a column is compared with values that it was written with; None: it can't be.

    That is only where the column has the values as they were written.

    Args:
        found: the column's type as ``information_schema`` has it.
        kind: the values' type.
    """
    decimal = _DECIMAL.fullmatch(found)
    if decimal is not None and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return decimal_type(int(decimal[1]), int(decimal[2]))
    if pa.types.is_boolean(kind):
        return pa.int64() if found in ("tinyint(1)", "tinyint") else None
    if pa.types.is_integer(kind):
        known = _parts(plain_type(found))
        return None if known is None else pa.uint64() if known == (_WHOLE["bigint"], True) else pa.int64()
    if pa.types.is_floating(kind):
        return {"float": pa.float32(), "double": pa.float64()}.get(found)
    if pa.types.is_string(kind):
        return kind if _KEPT_TEXT.fullmatch(found) else None
    if pa.types.is_binary(kind):
        return kind if _KEPT_BYTES.fullmatch(found) else None
    plain = (pa.types.is_date, pa.types.is_timestamp)
    return kind if any(test(kind) for test in plain) and found == column_type(kind, "") else None


def holds(wide: str, narrow: str) -> bool:
    """Return whether a type of numbers holds all values of another one."""
    if wide == narrow or (wide, narrow) == ("double", "float"):
        return True
    inner = _parts(narrow)
    outer = _parts(wide)
    decimal = _DECIMAL.fullmatch(wide)
    if inner is not None and outer is not None:
        (size, unsigned), (room, positive) = inner, outer
        return (size <= room and unsigned == positive) or (unsigned and not positive and size < room)
    if decimal is None or decimal[3]:
        return False
    if inner is not None:
        return int(decimal[1]) - int(decimal[2]) >= _DIGITS[inner[0]]
    other = _DECIMAL.fullmatch(narrow)
    if other is None:
        return False
    return int(decimal[2]) >= int(other[2]) and (int(decimal[1]) - int(decimal[2]) >= int(other[1]) - int(other[2]))


def _parts(kind: str) -> tuple[int, bool] | None:
    """Return how many bytes a type of whole numbers has, and whether it is unsigned; None: it is another one."""
    name, _, sign = kind.partition(" ")
    return (_WHOLE[name], bool(sign)) if name in _WHOLE else None
