"""Converts columns' defaults from the catalog's text to the value that schemas and rows show, or that is stored.

As in Debezium, the only computed default that counts is the current time: it is shown as the epoch, except that a
nullable ``timestamp`` has none. A zero date is no default, or the epoch where the column is NOT NULL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa

from floodmark.codecs.calendar import INT64_MAX
from floodmark.codecs.codec import Codec
from floodmark.connectors.mysql.structures.table import Column
from floodmark.connectors.mysql.structures.type_names import INTEGERS
from floodmark.connectors.mysql.values.raw_columns import BINARY_TYPES, raw_type

_NOW = re.compile(r"(?:current_timestamp|now|localtime|localtimestamp)(?:\(\d?\))?", re.IGNORECASE)
_BITS = re.compile(r"b'([01]*)'|([01]+)", re.IGNORECASE)
_HEX = re.compile(r"0x([0-9a-f]*)|x'([0-9a-f]*)'", re.IGNORECASE)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,6}))?)?")
_TIME = re.compile(r"(?:\d{4}-\d\d-\d\d )?(-?\d+):(\d\d)(?::(\d\d))?(?:\.(\d{1,6}))?")
_EPOCH, _ZERO_DATE = "1970-01-01", "0000-00-00"
_DATES = {"date", "datetime", "timestamp"}
_WIDE = Context(prec=100)
_WORDS = {"true": "1", "false": "0"}

Reader = Callable[[str, Column], str | None]


def default_value(column: Column, codec: Codec) -> pa.Array | None:
    """Return the default that schemas and rows show, as one raw value; None if there is none.

    Args:
        column: with its default.
        codec: the column's.
    """
    text = _text(column)
    if text is not None and column.type in _DATES and _is_zero(text):
        text = None if column.optional else _EPOCH
    if text is None or codec.schema["type"] in ("struct", "array"):
        return None
    if column.type == "bigint" and codec.schema["type"] == "int64" and text.isdigit():
        # As in Debezium, though the values of BIGINT UNSIGNED themselves go below zero.
        text = str(min(int(text), INT64_MAX))
    return _raw(text, column)


def stored_default(column: Column) -> pa.Array | None:
    """Return what a row has where no value was given, as one raw value; None if only the server knows."""
    if column.default_kind == "literal" and column.default is not None:
        return _raw(column.default, column)
    if column.default_kind == "expression" or not column.optional:
        return None
    return pa.nulls(1, raw_type(column))


def _raw(text: str, column: Column) -> pa.Array | None:
    """Return a constant as one raw value; None if it is not a value of the column's type."""
    kind = raw_type(column)
    if kind == pa.binary():
        raw = _bytes(text, column)
        return None if raw is None else pa.array([raw], pa.binary())
    if kind != pa.string():
        return _number(text, kind)
    value = _READERS.get(column.type, _as_it_is)(text, column)
    return None if value is None else pa.array([value], pa.string())


def _text(column: Column) -> str | None:
    if column.default is None or column.default_kind == "literal":
        return column.default
    if column.default_kind == "expression" and _NOW.fullmatch(column.default.strip()):
        return None if column.type == "timestamp" and column.optional else _EPOCH
    return None


def _as_it_is(text: str, _column: Column) -> str:
    return text


def _integer(text: str, column: Column) -> str | None:
    number = _decimal_of(text)
    if number is None:
        return None
    rounded = int(number.quantize(Decimal(1), ROUND_HALF_UP, _WIDE))
    return f"{rounded:04}" if column.type == "year" else str(rounded)


def _decimal(text: str, column: Column) -> str | None:
    number = _decimal_of(text)
    if number is None:
        return None
    return f"{number.quantize(Decimal(1).scaleb(-(column.scale or 0)), ROUND_HALF_UP, _WIDE):f}"


def _decimal_of(text: str) -> Decimal | None:
    text = text.strip()
    try:
        number = Decimal(_WORDS.get(text.lower(), text))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _number(text: str, kind: pa.DataType) -> pa.Array | None:
    number = _decimal_of(text)
    if number is None:
        return None
    return pa.array([np.float32(number) if kind == pa.float32() else float(number)], kind)


def _date(text: str, column: Column) -> str | None:
    found = _DATE.fullmatch(text.strip() if text.strip() != "0" else _ZERO_DATE)
    if found is None:
        return None
    day, clock, fraction = found.groups()
    if column.type == "date":
        return day
    clock = clock or "00:00:00"
    return f"{day} {clock if clock.count(':') > 1 else clock + ':00'}{_fraction(fraction, column)}"


def _is_zero(text: str) -> bool:
    """Return whether a date has a zero in year, month or day."""
    day = text.strip()[: len(_ZERO_DATE)]
    return day == "0" or day[:4] == "0000" or day[5:7] == "00" or day[8:] == "00"


def _time(text: str, column: Column) -> str | None:
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    hours, minutes, seconds, fraction = found.groups()
    sign = "-" if hours.startswith("-") else ""
    return f"{sign}{int(hours.lstrip('-')):02}:{minutes}:{seconds or '00'}{_fraction(fraction, column)}"


def _fraction(fraction: str | None, column: Column) -> str:
    digits = column.scale or 0
    return f".{(fraction or '').ljust(digits, '0')[:digits]}" if digits else ""


_READERS: dict[str, Reader] = {
    **dict.fromkeys((*INTEGERS, "year"), _integer),
    "decimal": _decimal,
    **dict.fromkeys(("date", "datetime", "timestamp"), _date),
    "time": _time,
}


def _bytes(text: str, column: Column) -> bytes | None:
    assert column.type in BINARY_TYPES
    if column.type == "bit":
        found = _BITS.fullmatch(text.strip())
        if found is None:
            return None
        size = ((column.length or 1) + 7) // 8
        number = int(found[1] or found[2] or "0", 2)
        return number.to_bytes(size, "big") if number < 1 << 8 * size else None
    found = _HEX.fullmatch(text)
    raw = bytes.fromhex(found[1] or found[2] or "") if found is not None else text.encode()
    return raw.ljust(column.length or 1, b"\0") if column.type == "binary" else raw
