"""Converts the catalog's expression of a column's default to the text of the value that schemas and rows show.

The catalog stores a default as an expression (``pg_get_expr``). As in Debezium, a constant yields its value, and a call
of any function a stand-in: zero, the epoch, the empty text. Other expressions, and types that are not listed here,
yield no default. Of an expression with several literals, the first is used.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

import numpy as np

from floodmark.codecs import calendar
from floodmark.codecs.codec import Codec
from floodmark.connectors.postgres.types.numeric import scale_of
from floodmark.connectors.postgres.types.type_info import TypeInfo

_CALL = re.compile(r"\(?[A-Za-z0-9_.]+\(.*\)")
_CLOCKS = {"current_timestamp", "current_time", "current_date", "localtime", "localtimestamp"}
_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_NULL = "NULL::"
_INTEGER = re.compile(r"[+-]?\d+")
_TIME = re.compile(r"(\d\d:\d\d)(:\d\d(?:\.\d{1,6})?)?")
_INTERVAL = re.compile(r"(?:[+-]?\d+ (?:year|mon|day)s? ?)*(?:[+-]?\d+:\d\d:\d\d(?:\.\d+)?)?")
_BITS = re.compile(r"[01]*")

Reader = Callable[[str, int], str | None]
"""Converts a constant, given the column's modifier, to the server's text of the value; None if it isn't a value."""


def default_text(
    expression: str | None, type_oid: int, modifier: int, codec: Codec, types: Mapping[int, TypeInfo]
) -> str | None:
    """Return a column's default as the server would print the value, or None.

    Args:
        expression: the default's expression as the catalog prints it; None if there is none.
        type_oid: the column's type.
        modifier: the type's modifier.
        codec: the column's codec.
        types: the catalog's descriptions of the columns' types.
    """
    if expression is None or codec.schema["type"] == "struct":
        return None
    info = types.get(type_oid)
    if info is not None and info.kind == "e":
        return _label(expression)
    return _value(expression, type_oid, modifier) if type_oid in _KINDS else None


def _value(expression: str, oid: int, modifier: int) -> str | None:
    stand_in, read = _KINDS[oid]
    if _CALL.match(expression) or expression.strip().lower() in _CLOCKS:
        constant: str | None = stand_in
    else:
        constant = _constant(expression)
    return None if constant is None else read(constant, modifier)


def _constant(expression: str) -> str | None:
    """Return the first literal's text, or the expression itself if it has none; None for NULL."""
    if "'" not in expression:
        return None if expression.startswith(_NULL) else expression
    if expression.startswith(_NULL):
        return None
    found = _LITERAL.search(expression)
    return found[1].replace("''", "'") if found else None


def _label(expression: str) -> str | None:
    """Return an enum's label; only a literal with a cast is accepted."""
    value, cast, _ = expression.rpartition("::")
    found = _LITERAL.fullmatch(value) if cast else None
    return found[1].replace("''", "'") if found else None


def _text(constant: str, _modifier: int) -> str:
    return constant


def _integer(bits: int) -> Reader:
    def read(constant: str, _modifier: int) -> str | None:
        constant = constant.strip()
        if not _INTEGER.fullmatch(constant):
            return None
        number = int(constant)
        return str(number) if -(1 << bits - 1) <= number < 1 << bits - 1 else None

    return read


def _floating(kind: type[np.floating]) -> Reader:
    names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

    def read(constant: str, _modifier: int) -> str | None:
        try:
            shortest = str(kind(constant.strip()))
        except ValueError:
            return None
        return names.get(shortest, shortest)

    return read


def _numeric(constant: str, modifier: int) -> str | None:
    """Return a decimal with the column's scale; None if it has more digits, or isn't a finite number."""
    try:
        number = Decimal(constant.strip())
    except InvalidOperation:
        return None
    scale = scale_of(modifier)
    if not number.is_finite():
        return None
    if scale is not None:
        rounded = f"{number:.{scale.scale}f}"
        return rounded if Decimal(rounded) == number else None
    return f"{number:f}"


def _boolean(constant: str, _modifier: int) -> str:
    return "t" if constant.strip().lower() == "true" else "f"


def _bit_string(constant: str, _modifier: int) -> str | None:
    constant = constant.strip()
    return constant if _BITS.fullmatch(constant) else None


def _uuid(constant: str, _modifier: int) -> str | None:
    try:
        return str(uuid.UUID(constant.strip()))
    except ValueError:
        return None


def _date(constant: str, _modifier: int) -> str | None:
    moment = _moment(constant)
    return None if moment is None or moment.micros else constant.strip()


def _timestamp(constant: str, _modifier: int) -> str | None:
    constant = constant.strip()
    if _moment(constant) is None:
        return None
    return constant if ":" in constant else f"{constant} 00:00:00"


def _timestamptz(constant: str, modifier: int) -> str | None:
    text = _timestamp(constant, modifier)
    return f"{text}+00" if text and ":" not in constant else text


def _moment(constant: str) -> calendar.Moment | None:
    try:
        return calendar.parse(constant.strip())
    except ValueError:
        return None


def _time(constant: str, _modifier: int) -> str | None:
    found = _TIME.fullmatch(constant.strip())
    return f"{found[1]}{found[2] or ':00'}" if found else None


def _interval(constant: str, _modifier: int) -> str | None:
    constant = constant.strip()
    return constant if constant and _INTERVAL.fullmatch(constant) else None


_KINDS: dict[int, tuple[str, Reader]] = {
    16: ("false", _boolean),
    20: ("0", _integer(64)),
    21: ("0", _integer(16)),
    23: ("0", _integer(32)),
    25: ("", _text),
    114: ("{}", _text),  # json
    142: ("", _text),  # xml
    700: ("0.0", _floating(np.float32)),
    701: ("0.0", _floating(np.float64)),
    1042: ("", _text),  # char(n)
    1043: ("", _text),  # varchar
    1082: ("1970-01-01", _date),
    1083: ("00:00", _time),
    1114: ("1970-01-01", _timestamp),
    1184: ("1970-01-01", _timestamptz),
    1186: ("00:00:00", _interval),
    1560: ("00", _bit_string),
    1562: ("0", _bit_string),
    1700: ("0.0", _numeric),
    2950: ("00000000-0000-0000-0000-000000000000", _uuid),
    3802: ("{}", _text),  # jsonb
}
"""The stand-in for a function's result, and the reader of constants, by the type's OID."""
