"""Columns of random types, and random values of them: those at the ends of what a type holds are frequent."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from tests.support.oracle.model.large_values import Apart, Later
from tests.support.oracle.model.tables import Column, column
from tests.support.oracle.model.types import UNSET_SCALE, OracleType
from tests.support.oracle.model.values import Moment

_LETTERS = "abcXYZ019 _-'\"\\\n\t;,()=?:&%ЖéВ漢🐘"
_NATIONAL = _LETTERS.replace("\\", "")
"""Debezium can't read a backslash beside a letter that isn't ASCII."""
_YEARS = (1, 99, 1582, 1899, 1969, 1970, 1999, 2000, 2024, 2026, 2038, 9998)


def random_column(chance: random.Random, name: str, large: bool) -> Column:
    """Return a column.

    Args:
        chance: of the choices.
        name: its name. That of a column of local time begins with ``L``, which comparisons know it by.
        large: whether it may hold large objects.
    """
    kinds = [*_TYPES, *([*_LARGE] * 3 if large else [])]
    text = _TYPE_TEXTS[chance.choice(kinds)](chance)
    # The stand-in gives Debezium no local times in a snapshot.
    local = "LOCAL" in text
    # Debezium has null for what is out of nanoseconds' range, and fails if a column must have a value.
    nullable = chance.random() < 0.85 or text.startswith(("DATE", "TIMESTAMP"))
    return column(f"{'L' if local else 'C'}{name}", text, nullable=nullable, default=_default(chance, text))


def random_value(chance: random.Random, one: Column, before: Any = None) -> Any:
    """Return a value of a column, or None.

    Args:
        chance: of the choices.
        one: the column.
        before: what it held; large objects only grow, since Debezium doesn't know what was behind their end.
    """
    if one.nullable and chance.random() < 0.15:
        return None
    type_ = one.type
    if type_.base in _LARGE:
        return _large(chance, type_, before)
    return _value(chance, type_)


def _value(chance: random.Random, type_: OracleType) -> Any:
    base = type_.base
    if base in ("NUMBER", "FLOAT"):
        return _number(chance, type_)
    if base in ("BINARY_FLOAT", "BINARY_DOUBLE"):
        return _binary_float(chance, "f" if base == "BINARY_FLOAT" else "d")
    if base in ("CHAR", "VARCHAR2"):
        return _text(chance, type_.length, _LETTERS, "utf-8", 1)
    if base in ("NCHAR", "NVARCHAR2"):
        return _text(chance, type_.length, _NATIONAL, "utf-16-be", 2)
    if base == "RAW":
        return chance.randbytes(_length(chance, type_.length))
    if base == "DATE" or base.startswith("TIMESTAMP"):
        return _moment(chance, type_)
    if base.startswith("INTERVAL YEAR"):
        years = chance.choice([0, 1, 10 ** int(type_.precision or 2) - 1])
        return f"{chance.choice('+-')}{years:0{type_.precision}d}-{chance.randrange(12):02d}"
    if base.startswith("INTERVAL DAY"):
        days = chance.choice([0, 1, 10 ** int(type_.precision or 2) - 1])
        time = f"{chance.randrange(24):02d}:{chance.randrange(60):02d}:{chance.randrange(60):02d}"
        fraction = chance.randrange(10**type_.fraction)
        return f"{chance.choice('+-')}{days:0{type_.precision}d} {time}.{fraction:0{type_.fraction}d}"
    raise ValueError(f"No values of {type_.name} are known.")


def _number(chance: random.Random, type_: OracleType) -> Decimal:
    if type_.scale == UNSET_SCALE:
        digits = Decimal(chance.randrange(10 ** chance.choice([1, 5, 15])))
        return digits.scaleb(chance.choice([0, 0, -2, -10, 5])) * chance.choice([1, -1])
    size: int = 10 ** int(type_.precision or 38)
    whole = chance.choice([0, 1, size - 1, chance.randrange(size), chance.randrange(min(size, 1000))])
    # By its text: the context of arithmetic has fewer digits than Oracle.
    return Decimal(f"{chance.choice(['', '-'])}{whole}E{-type_.scale}")


def _binary_float(chance: random.Random, form: str) -> float:
    value = chance.choice([0.0, 1.5, -2.25, 1e10, chance.uniform(-1e6, 1e6), chance.uniform(-1, 1) * 1e-30])
    (found,) = struct.unpack(form, struct.pack(form, value))
    return float(found)


def _text(chance: random.Random, length: int, letters: str, encoding: str, unit: int) -> str:
    # A text without letters is null to Oracle.
    text, room = "", _length(chance, length) * unit
    while True:
        letter = chance.choice(letters)
        room -= len(letter.encode(encoding))
        if room < 0:
            return text or "x"
        text += letter


def _length(chance: random.Random, length: int) -> int:
    return chance.choice([1, min(length, 5), min(length, 20), length])


def _moment(chance: random.Random, type_: OracleType) -> datetime | Moment:
    zoned = "ZONE" in type_.base
    year = chance.choice(_YEARS[3:-1] if zoned else _YEARS)
    time = datetime(year, 1, 1) + timedelta(seconds=chance.choice([0, 366 * 86400 - 1, chance.randrange(365 * 86400)]))
    if zoned:
        minutes = chance.choice([0, 330, -180, -570, 840, -720])
        time = time.replace(tzinfo=timezone(timedelta(minutes=minutes)) if minutes else UTC)
    if type_.base == "DATE":
        return time
    nanos = chance.choice([0, 10**9 - 1, chance.randrange(10**9)])
    nanos -= nanos % 10 ** (9 - type_.fraction)
    return Moment(time.replace(microsecond=nanos // 1000), nanos % 1000)


def _large(chance: random.Random, type_: OracleType, before: Any) -> Any:
    length = (len(before) if before else 0) + chance.choice([1, 10, 100])
    text = "".join(chance.choices("abc'Ж ", k=length))
    value = text.encode() if type_.base == "BLOB" else text
    return chance.choice([value, Later(value), Apart(value, chance.choice([7, 2000]))])


def _default(chance: random.Random, type_: str) -> str:
    if chance.random() < 0.8:
        return ""
    if type_.startswith(("NUMBER(", "FLOAT", "INTEGER")) and "-" not in type_ and "*" not in type_:
        return "0"
    return "'x'" if type_.startswith(("VARCHAR2", "NVARCHAR2")) else ""


def _precise(chance: random.Random) -> str:
    precision = chance.choice([1, 2, 3, 4, 5, 9, 10, 18, 19, 20, 37, 38])
    # The stand-in sorts rows by numbers of 38 digits at most.
    scales = [0, 0, 0, 1, 2, precision, -2 if precision < 30 else 0]
    return f"NUMBER({precision},{chance.choice(scales)})"


def _digits(name: str, rest: str = "") -> Callable[[random.Random], str]:
    return lambda chance: f"{name}({chance.randrange(10)}){rest}"


def _sized(name: str, *lengths: int) -> Callable[[random.Random], str]:
    return lambda chance: f"{name}({chance.choice(lengths)})"


def _fixed(*texts: str) -> Callable[[random.Random], str]:
    return lambda chance: chance.choice(texts)


_TYPE_TEXTS: Mapping[str, Callable[[random.Random], str]] = {
    "precise": _precise,
    "whole": _fixed("INTEGER", "NUMBER(9)", "NUMBER(18,0)", "NUMBER(*,0)"),
    "any": _fixed("NUMBER", "FLOAT", "FLOAT(20)", "REAL"),
    "binary": _fixed("BINARY_FLOAT", "BINARY_DOUBLE"),
    "char": _sized("CHAR", 1, 4, 9),
    "varchar": _sized("VARCHAR2", 1, 10, 50, 200),
    "nchar": _sized("NCHAR", 2, 5),
    "nvarchar": _sized("NVARCHAR2", 2, 30, 100),
    "raw": _sized("RAW", 1, 16, 100),
    "date": _fixed("DATE"),
    "timestamp": _digits("TIMESTAMP"),
    "zoned": _digits("TIMESTAMP", " WITH TIME ZONE"),
    "local": _digits("TIMESTAMP", " WITH LOCAL TIME ZONE"),
    "months": _fixed("INTERVAL YEAR(2) TO MONTH", "INTERVAL YEAR(4) TO MONTH"),
    "seconds": _fixed("INTERVAL DAY(2) TO SECOND(6)", "INTERVAL DAY(5) TO SECOND(3)", "INTERVAL DAY(2) TO SECOND(1)"),
    "CLOB": _fixed("CLOB"),
    "NCLOB": _fixed("NCLOB"),
    "BLOB": _fixed("BLOB"),
}
_LARGE = ("CLOB", "NCLOB", "BLOB")
_TYPES = tuple(one for one in _TYPE_TEXTS if one not in _LARGE)
