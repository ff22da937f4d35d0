"""Literals of DEFAULT clauses, in the form in which MySQL's information_schema prints them."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

import numpy as np

from floodmark.connectors.mysql.schema.ddl_types import ColumnType, bits_text
from floodmark.connectors.mysql.schema.tokens import BITS, STRING
from floodmark.connectors.mysql.schema.type_names import INTEGERS

_ZEROFILL_WIDTHS = {"tinyint": 3, "smallint": 5, "mediumint": 8, "int": 10, "bigint": 20}
_BYTES = frozenset({"binary", "varbinary"})
_PARTS = re.compile(r"\d+")
_DATE_PARTS, _ALL_PARTS = 3, 6
_CENTURY_TURNS = 70


def default_text(type_: ColumnType, kind: str, value: str) -> str:
    """Return a literal as the server keeps it for a column.

    Args:
        kind: kind of the token.
        value: its value, with its sign.

    What cannot be read stays as it is: the server has accepted the statement.
    """
    try:
        return _default_text(type_, kind, value)
    except (InvalidOperation, ValueError, OverflowError, LookupError):
        return value


def _default_text(type_: ColumnType, kind: str, value: str) -> str:
    name = type_.name
    if name == "bit":
        return f"b'{_bit_number(kind, value):b}'"
    if kind == BITS and name in _BYTES:
        return _hexadecimal(name, bytes.fromhex(value))
    if name in INTEGERS:
        value = str(int(value or "0", 16)) if kind == BITS else value
        number = str(int(Decimal(value.strip()).quantize(Decimal(1), ROUND_HALF_UP)))
        if not type_.zerofill:
            return number
        return number.zfill(type_.length or _ZEROFILL_WIDTHS[name])
    text = bits_text(value) if kind == BITS else value
    if name == "decimal":
        return f"{Decimal(text.strip()).quantize(Decimal(1).scaleb(-(type_.scale or 0)), ROUND_HALF_UP):f}"
    if name in ("float", "double"):
        return _approximate(type_, text)
    if name in _BYTES:
        return _hexadecimal(name, text.encode())
    if name == "year":
        return _year(text, kind == STRING)
    if name in ("date", "datetime", "timestamp"):
        return _date_time(name, text, type_.scale or 0)
    if name == "time":
        return _time(text, type_.scale or 0)
    if name == "enum":
        return _label(type_.values, text, kind)
    if name == "set":
        wanted = {item.lower() for item in text.split(",")}
        return ",".join(label for label in type_.values if label.lower() in wanted)
    return text.rstrip(" ") if name == "char" else text


def _bit_number(kind: str, value: str) -> int:
    if kind == BITS:
        return int(value or "0", 16)
    if kind == STRING:
        return int.from_bytes(value.encode("latin-1"), "big")
    return int(Decimal(value))


def _approximate(type_: ColumnType, text: str) -> str:
    if type_.scale is not None:
        return f"{Decimal(text).quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP):f}"
    number = np.float32(text) if type_.name == "float" else np.float64(text)
    shortest = np.format_float_positional(number, trim="-")
    return "0" if shortest == "-0" else shortest


def _hexadecimal(name: str, content: bytes) -> str:
    # One server pads values of fixed width, the other doesn't.
    return "0x" + (content.rstrip(b"\0") if name == "binary" else content).hex().upper()


def _year(text: str, quoted: bool) -> str:
    number = int(Decimal(text.strip()))
    if number == 0 and not (quoted and len(text.strip()) < 4):
        return "0000"
    if number >= 100:
        return str(number)
    return str(number + (2000 if number < _CENTURY_TURNS else 1900))


def _date_time(name: str, text: str, digits: int) -> str:
    whole, _, fraction = text.strip().partition(".")
    parts = _PARTS.findall(whole)
    if len(parts) == 1:
        parts = _split_digits(parts[0])
    numbers = [int(part) for part in parts] + [0] * (_ALL_PARTS - len(parts))
    if len(parts[0]) <= 2 and any(numbers):
        numbers[0] += 2000 if numbers[0] < _CENTURY_TURNS else 1900
    date = "{:04d}-{:02d}-{:02d}".format(*numbers[:_DATE_PARTS])
    if name == "date":
        return date
    return date + " {:02d}:{:02d}:{:02d}".format(*numbers[_DATE_PARTS:_ALL_PARTS]) + _fraction(fraction, digits)


def _split_digits(text: str) -> list[str]:
    year = 4 if len(text) in (8, 14) else 2
    return [text[:year], *re.findall("..", text[year:])] if len(text) > year else ["0"]


def _time(text: str, digits: int) -> str:
    whole, _, fraction = text.strip().partition(".")
    sign = "-" if whole.startswith("-") else ""
    whole = whole.lstrip("+-")
    days, _, rest = whole.rpartition(" ")
    parts = [int(part) for part in rest.split(":")]
    if len(parts) == 1 and not days:
        padded = rest.zfill(6)
        parts = [int(padded[:-4]), int(padded[-4:-2]), int(padded[-2:])]
    hours, minutes, seconds = [*parts, 0, 0][:3]
    hours += 24 * int(days or 0)
    return f"{sign}{hours:02d}:{minutes:02d}:{seconds:02d}{_fraction(fraction, digits)}"


def _fraction(text: str, digits: int) -> str:
    return "." + text[:digits].ljust(digits, "0") if digits else ""


def _label(labels: tuple[str, ...], text: str, kind: str) -> str:
    for label in labels:
        if label.lower() == text.rstrip(" ").lower():
            return label
    return labels[int(text) - 1] if kind != STRING else text
