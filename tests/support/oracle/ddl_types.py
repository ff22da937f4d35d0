"""Types of columns in all their spellings, and what the dictionary makes of them."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Spelled:
    """A type: its words, and what ``Column`` has of it."""

    text: str
    type: str
    length: int | None = None
    scale: int | None = None


def any_type(chance: random.Random, common: bool) -> Spelled:
    """Return a type.

    Args:
        chance: of the choices.
        common: whether Debezium knows it by the same words and numbers.
    """
    makers = [_number, _number, _whole, _float, _text, _text, _time, _time, _interval, _other]
    return chance.choice(makers)(chance, common)


def _number(chance: random.Random, common: bool) -> Spelled:
    digits, scale = chance.randint(1, 38), chance.randint(-84, 127)
    choices = [
        Spelled("NUMBER", "NUMBER"),
        Spelled(f"NUMBER({digits})", "NUMBER", digits, 0),
        Spelled(f"NUMBER({digits}, {scale})", "NUMBER", digits, scale),
        Spelled("NUMBER(*, 0)", "NUMBER", 38, 0),
    ]
    if not common:
        choices += [Spelled("NUMBER(*)", "NUMBER"), Spelled(f"NUMBER(*, {scale})", "NUMBER", 38, scale)]
    return chance.choice(choices)


def _whole(chance: random.Random, common: bool) -> Spelled:
    digits, scale = chance.randint(1, 38), chance.randint(0, 30)
    name = chance.choice(["NUMERIC", "DECIMAL"] if common else ["NUMERIC", "DECIMAL", "DEC"])
    return chance.choice(
        [
            Spelled(chance.choice(["INTEGER", "INT", "SMALLINT", name]), "NUMBER", 38, 0),
            Spelled(f"{name}({digits})", "NUMBER", digits, 0),
            Spelled(f"{name}({digits},{scale})", "NUMBER", digits, scale),
        ]
    )


def _float(chance: random.Random, common: bool) -> Spelled:
    del common
    digits = chance.randint(1, 126)
    return chance.choice(
        [
            Spelled("FLOAT", "FLOAT", 126),
            Spelled(f"FLOAT({digits})", "FLOAT", digits),
            Spelled("REAL", "FLOAT", 63),
            Spelled("DOUBLE PRECISION", "FLOAT", 126),
            Spelled("BINARY_FLOAT", "BINARY_FLOAT"),
            Spelled("BINARY_DOUBLE", "BINARY_DOUBLE"),
        ]
    )


def _text(chance: random.Random, common: bool) -> Spelled:
    length = chance.randint(1, 4000)
    semantics = chance.choice(["", "", " BYTE", " CHAR"])
    choices = [
        Spelled(f"VARCHAR2({length}{semantics})", "VARCHAR2", length),
        Spelled(f"VARCHAR({length}{semantics})", "VARCHAR2", length),
        Spelled(f"CHAR({length}{semantics})", "CHAR", length),
        Spelled(f"CHARACTER({length})", "CHAR", length),
        Spelled("CHAR", "CHAR", 1),
        Spelled(f"NVARCHAR2({length})", "NVARCHAR2", length),
        Spelled(f"NCHAR({length})", "NCHAR", length),
        Spelled("NCHAR", "NCHAR", 1),
        Spelled(f"RAW({length})", "RAW", length),
    ]
    if not common:
        choices += [
            Spelled(f"CHARACTER VARYING({length})", "VARCHAR2", length),
            Spelled(f"CHAR VARYING({length})", "VARCHAR2", length),
            Spelled(f"NATIONAL CHAR({length})", "NCHAR", length),
            Spelled(f"NATIONAL CHARACTER VARYING({length})", "NVARCHAR2", length),
            Spelled(f"NCHAR VARYING({length})", "NVARCHAR2", length),
            Spelled("LONG VARCHAR", "LONG"),
            Spelled("LONG RAW", "LONG RAW"),
        ]
    return chance.choice(choices)


def _time(chance: random.Random, common: bool) -> Spelled:
    del common
    digits = chance.choice([None, *range(10)])
    precision = "" if digits is None else chance.choice([f"({digits})", f" ({digits})"])
    zone = chance.choice(["", " WITH TIME ZONE", " WITH LOCAL TIME ZONE"])
    scale = 6 if digits is None else digits
    return chance.choice(
        [Spelled("DATE", "DATE"), Spelled(f"TIMESTAMP{precision}{zone}", f"TIMESTAMP{zone}", None, scale)]
    )


def _interval(chance: random.Random, common: bool) -> Spelled:
    leading, digits = chance.choice([None, *range(1, 10)]), chance.choice([None, *range(10)])
    if common and leading is None:
        digits = None
    first = "" if leading is None else f"({leading})"
    second = "" if digits is None else f"({digits})"
    length = 2 if leading is None else leading
    return chance.choice(
        [
            Spelled(f"INTERVAL YEAR{first} TO MONTH", "INTERVAL YEAR TO MONTH", length, 0),
            Spelled(
                f"INTERVAL DAY{first} TO SECOND{second}",
                "INTERVAL DAY TO SECOND",
                length,
                6 if digits is None else digits,
            ),
        ]
    )


def _other(chance: random.Random, common: bool) -> Spelled:
    choices = ["CLOB", "NCLOB", "BLOB", "ROWID", "XMLTYPE", "SDO_GEOMETRY"]
    if not common:
        if chance.random() < 0.5:
            owner, name = chance.choice([("SYS", "XMLTYPE"), ("MDSYS", "SDO_GEOMETRY")])
            return Spelled(f'"{owner}"."{name}"', name)
        choices += ["BFILE", "LONG", "JSON", "BOOLEAN"]
    name = chance.choice(choices)
    return Spelled(name, name)
