"""Describes results to a client, and writes their rows."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tests.support.oracle.fronts.tns.messages import number, text, with_length
from tests.support.oracle.model.raw_values import date, raw_value
from tests.support.oracle.model.raw_values import number as oracle_number
from tests.support.oracle.model.types import UNSET_SCALE, OracleType
from tests.support.oracle.model.values import Moment
from tests.support.oracle.sql.result import ResultColumn

CODES = {
    "NUMBER": (2, 22),
    "FLOAT": (2, 22),
    "VARCHAR2": (1, 4000),
    "NVARCHAR2": (1, 4000),
    "CHAR": (96, 2000),
    "NCHAR": (96, 2000),
    "DATE": (12, 7),
    "TIMESTAMP": (180, 11),
    "TIMESTAMP WITH TIME ZONE": (181, 13),
    "TIMESTAMP WITH LOCAL TIME ZONE": (231, 11),
    "INTERVAL YEAR TO MONTH": (182, 5),
    "INTERVAL DAY TO SECOND": (183, 11),
    "RAW": (23, 2000),
    "BINARY_FLOAT": (100, 4),
    "BINARY_DOUBLE": (101, 8),
    "ROWID": (1, 18),
    # Large objects come as LONG and LONG RAW do, since a client that wants texts asks for these.
    "CLOB": (8, 0x7FFFFFFF),
    "NCLOB": (8, 0x7FFFFFFF),
    "BLOB": (24, 0x7FFFFFFF),
}
CHARSET, NATIONAL = 873, 2000
TEXTS = {1, 8, 96}
LONGS = {8, 24}


def described(columns: Sequence[ResultColumn]) -> bytes:
    """Return the description of a result's columns."""
    now = date(Moment(datetime.now(UTC)))
    found = b"\x10" + with_length(secrets.token_bytes(16) + now) + number(100) + number(len(columns))
    found += b"\x01" if columns else b""
    for place, one in enumerate(columns):
        found += _column(one, place)
    return found + text(now) + number(0) * 5


def row(columns: Sequence[ResultColumn], values: Sequence[Any]) -> bytes:
    """Return a row."""
    return b"\x07" + b"".join(_value(one.type, value) for one, value in zip(columns, values, strict=True))


def _value(type_: OracleType, value: Any) -> bytes:
    found = with_length(_raw(type_, value))
    # After a long value come an indicator of null and a return code.
    return found + number(0) * 2 if CODES[type_.base][0] in LONGS else found


def _column(column: ResultColumn, place: int) -> bytes:
    type_ = column.type
    code, size = CODES[type_.base]
    if type_.length and code in TEXTS:
        size = type_.length * 4
    precision, scale = 0, 0
    if type_.base in {"NUMBER", "FLOAT"}:
        precision, scale = type_.precision or 0, type_.scale
    elif type_.base.startswith(("TIMESTAMP", "INTERVAL")):
        scale = type_.fraction
    national = type_.base in {"NCHAR", "NVARCHAR2"}
    charset = (NATIONAL if national else CHARSET) if code in TEXTS else 0
    name = column.name.encode()
    return b"".join(
        [
            bytes([code, 0, precision & 0xFF, _scale(scale)]),
            number(size),
            number(0) * 4,
            number(charset),
            bytes([(2 if national else 1) if charset else 0]),
            number(size if charset else 0),
            number(0),
            b"\1",
            bytes([len(name)]),
            text(name),
            number(0) * 2,
            number(place),
            number(0),
        ]
    )


def _scale(scale: int) -> int:
    return 0x81 if scale == UNSET_SCALE else scale & 0xFF


def _raw(type_: OracleType, value: Any) -> bytes | None:
    if value is None:
        return None
    if type_.base in {"NUMBER", "FLOAT"}:
        return oracle_number(Decimal(repr(value) if isinstance(value, float) else value))
    return raw_value(type_, value)
