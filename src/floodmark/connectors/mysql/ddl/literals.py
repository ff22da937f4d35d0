"""Literals of DEFAULT clauses, in the form in which MySQL's information_schema prints them."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np

from floodmark.connectors.mysql.ddl.column_types import ColumnType
from floodmark.connectors.mysql.ddl.temporal_literals import USUAL, Clock, date_time, plain_number, time_of_day
from floodmark.connectors.mysql.ddl.tokens import BITS, NUMBER, STRING
from floodmark.connectors.mysql.structures.charsets import decoded
from floodmark.connectors.mysql.structures.number_texts import ROOM, number_text
from floodmark.connectors.mysql.structures.type_names import INTEGERS, SIZED, TEMPORAL
from floodmark.connectors.mysql.values.text import NAMES

_ZEROFILL_WIDTHS = {"tinyint": 3, "smallint": 5, "mediumint": 8, "int": 10, "bigint": 20, "float": 12, "double": 22}
_NUMERIC = frozenset({*INTEGERS, "decimal", "float", "double", "year"})
_APPROXIMATE = frozenset({"float", "double"})
_EXACT = Context(prec=130, rounding=ROUND_HALF_UP)
"""Has room for the digits of any decimal, 65, and for as many more in its literal."""
_BYTES = frozenset({"binary", "varbinary"})
_CENTURY_TURNS = 70
_PARSED: dict[str, Callable[[str], bytes]] = {
    "uuid": lambda text: uuid.UUID(text).bytes,
    "inet4": lambda text: ipaddress.IPv4Address(text).packed,
    "inet6": lambda text: ipaddress.IPv6Address(text).packed,
}


def default_text(type_: ColumnType, kind: str, value: str, clock: Clock = USUAL) -> str:
    """Return a literal in the form that the server stores for a column.

    A literal that cannot be converted is returned as it is: the server has accepted the statement.

    Args:
        type_: with its character set.
        kind: kind of the token.
        value: its value, with its sign.
        clock: how times are converted.
    """
    try:
        return _default_text(type_, kind, value, clock)
    except (InvalidOperation, ValueError, OverflowError, LookupError):
        return value


def _default_text(type_: ColumnType, kind: str, value: str, clock: Clock) -> str:
    name = type_.name
    if name == "bit":
        return f"b'{_bit_number(kind, value):b}'"
    if kind == BITS and name in _BYTES:
        return _hexadecimal(name, bytes.fromhex(value))
    if kind == BITS and name in _NUMERIC:
        kind, value = NUMBER, str(int(value or "0", 16))
    if name in INTEGERS:
        return _filled(type_, str(int(Decimal(value.strip()).quantize(Decimal(1), ROUND_HALF_UP))))
    text = decoded(bytes.fromhex(value), type_.charset or "latin1") if kind == BITS else value
    if name in NAMES:
        return NAMES[name][1](bytes.fromhex(value) if kind == BITS else _PARSED[name](text.strip()))
    if name == "decimal":
        number = Decimal(text.strip()).quantize(Decimal(1).scaleb(-(type_.scale or 0)), context=_EXACT)
        return _filled(type_, f"{number or abs(number):f}")
    if name in ("float", "double"):
        return _filled(type_, _approximate(type_, text))
    if kind == NUMBER and name != "year":
        # MariaDB cuts off a number with an exponent that is too long; other texts that are too long are refused.
        text = plain_number(text) if name in ("date", *TEMPORAL) else _number(text, _width(type_))[: _width(type_)]
    if name in _BYTES:
        return _hexadecimal(name, text.encode())
    if name == "year":
        return _year(text, kind == STRING)
    if name in ("date", "datetime", "timestamp"):
        return date_time(name, text, kind == STRING, type_.scale or 0, clock)
    if name == "time":
        return time_of_day(text, type_.scale or 0, clock)
    if name == "enum":
        return _label(type_.values, text, kind)
    if name == "set":
        wanted = {item.rstrip(" ").lower() for item in text.split(",")}
        return ",".join(label for label in type_.values if label.lower() in wanted)
    return text.rstrip(" ") if name == "char" else text


def _filled(type_: ColumnType, number: str) -> str:
    """Return a number with the zeros of ``ZEROFILL``."""
    if not type_.zerofill:
        return number
    # FLOAT(53) says how precise the number is, not how wide.
    declared = None if type_.name in _APPROXIMATE and type_.scale is None else type_.length
    width = declared or _ZEROFILL_WIDTHS[type_.name]
    return number.zfill(width + (1 if type_.name == "decimal" and type_.scale else 0))


def _width(type_: ColumnType) -> int:
    return (1 if type_.length is None else type_.length) if type_.name in SIZED else ROOM


def _number(text: str, width: int) -> str:
    """Return a number as the server converts it to text for a column of so many characters."""
    if "e" in text.lower():
        return number_text(np.float64(text), width)
    number = Decimal(text)
    return f"{number or abs(number):f}"


def _bit_number(kind: str, value: str) -> int:
    if kind == BITS:
        return int(value or "0", 16)
    if kind == STRING:
        return int.from_bytes(value.encode("latin-1"), "big")
    return int(Decimal(value).quantize(Decimal(1), ROUND_HALF_UP))


def _approximate(type_: ColumnType, text: str) -> str:
    if type_.scale is not None:
        return f"{Decimal(text).quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP):f}"
    number = np.float32(text) if type_.name == "float" else np.float64(text)
    return number_text(number)


def _hexadecimal(name: str, content: bytes) -> str:
    # Only one of the servers pads values of fixed width, so the padding is removed.
    content = content.rstrip(b"\0") if name == "binary" else content
    return "0x" + content.hex().upper() if content else ""


def _year(text: str, quoted: bool) -> str:
    number = int(Decimal(text.strip()).quantize(Decimal(1), ROUND_HALF_UP))
    if number == 0 and not (quoted and len(text.strip()) < 4):
        return "0000"
    if number >= 100:
        return str(number)
    return str(number + (2000 if number < _CENTURY_TURNS else 1900))


def _label(labels: tuple[str, ...], text: str, kind: str) -> str:
    for label in labels:
        if label.lower() == text.rstrip(" ").lower():
            return label
    return labels[int(text) - 1] if kind != STRING else text
