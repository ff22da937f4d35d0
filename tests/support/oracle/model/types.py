"""The types of columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

UNSET_SCALE = -127
_TYPE = re.compile(
    r"(?P<name>[A-Z][A-Z0-9_]*(?: VARYING)?)\s*"
    r"(?:\(\s*(?P<first>\*|\d+)(?:\s*(?:BYTE|CHAR))?\s*(?:,\s*(?P<second>-?\d+))?\s*\))?"
    r"(?P<rest>.*)"
)
WHOLE_NUMBERS = {"INTEGER", "INT", "SMALLINT", "NUMERIC", "DECIMAL"}
CHARACTERS = {"CHAR", "VARCHAR2", "NCHAR", "NVARCHAR2"}
LARGE = {"CLOB", "NCLOB", "BLOB", "XMLTYPE"}


@dataclass(frozen=True)
class OracleType:
    """A column's type as the dictionary has it.

    Attributes:
        name: as ``ALL_TAB_COLUMNS.DATA_TYPE`` has it, with the precision of fractions of seconds.
        length: characters or bytes; 0: it has none.
        precision: decimal digits (binary ones of FLOAT); None: not given.
        scale: decimal digits after the point; ``UNSET_SCALE``: not given.
        fraction: digits of a second's fraction.
        text: as it is written in DDL.
    """

    name: str
    text: str
    length: int = 0
    precision: int | None = None
    scale: int = UNSET_SCALE
    fraction: int = 6

    @cached_property
    def base(self) -> str:
        """The name without precisions: ``TIMESTAMP WITH TIME ZONE``."""
        return re.sub(r"\(\d+\)", "", self.name)

    @classmethod
    def parse(cls, text: str) -> OracleType:
        """Return the type that DDL names."""
        found = _TYPE.fullmatch(text.strip().upper())
        if found is None:
            raise ValueError(f"No type of Oracle: {text}")
        name, first, second, rest = found.group("name", "first", "second", "rest")
        number = int(first) if first and first != "*" else None
        rest = " ".join(rest.split())
        if name in WHOLE_NUMBERS:
            scale = int(second) if second else 0
            return cls("NUMBER", f"NUMBER({number or '*'},{scale})", precision=number or 38, scale=scale)
        if name == "NUMBER":
            if first is None:
                return cls("NUMBER", "NUMBER")
            scale = int(second) if second else 0
            given = "*" if number is None else str(number)
            return cls("NUMBER", f"NUMBER({given},{scale})", precision=number or 38, scale=scale)
        if name in {"FLOAT", "REAL"}:
            digits = 63 if name == "REAL" else number or 126
            return cls("FLOAT", f"FLOAT({digits})", precision=digits)
        if name in CHARACTERS:
            return cls(name, f"{name}({number or 1})", length=number or 1)
        if name == "RAW":
            return cls(name, f"RAW({number})", length=number or 2000)
        if name == "TIMESTAMP":
            digits = 6 if number is None else number
            zone = f" {rest}" if rest else ""
            return cls(f"TIMESTAMP({digits}){zone}", f"TIMESTAMP ({digits}){zone}", scale=digits, fraction=digits)
        if name == "INTERVAL":
            return _interval(text)
        return cls(name, name)


def _interval(text: str) -> OracleType:
    numbers = [int(one) for one in re.findall(r"\((\d+)\)", text)]
    first = numbers[0] if numbers else 2
    if "YEAR" in text.upper():
        return OracleType(f"INTERVAL YEAR({first}) TO MONTH", f"INTERVAL YEAR ({first}) TO MONTH", precision=first)
    digits = numbers[1] if len(numbers) > 1 else 6
    name = f"INTERVAL DAY({first}) TO SECOND({digits})"
    return OracleType(
        name, f"INTERVAL DAY ({first}) TO SECOND ({digits})", precision=first, scale=digits, fraction=digits
    )
