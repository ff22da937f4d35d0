"""Values as OpenLogReplicator writes them into its documents."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.support.oracle.model.tables import Column, Row
from tests.support.oracle.model.types import CHARACTERS, OracleType
from tests.support.oracle.model.values import Moment, moment, number_text

_EPOCH = datetime(1970, 1, 1)
_MICRO = timedelta(microseconds=1)


def row_text(row: Row, columns: list[Column]) -> str:
    """Return the values of a row as a JSON object; columns that it lacks are left out."""
    known = [one for one in columns if one.name in row]
    return "{" + ",".join(f"{json.dumps(one.name)}:{value_text(one.type, row[one.name])}" for one in known) + "}"


def value_text(type_: OracleType, value: Any) -> str:
    """Return a value as JSON."""
    base = type_.base
    # An empty text is NULL in Oracle, but an empty large object isn't.
    if value is None:
        return "null"
    if base in {"NUMBER", "FLOAT"}:
        # As JSON has numbers: with a digit before the point.
        return re.sub(r"^(-?)\.", r"\g<1>0.", number_text(Decimal(value)))
    if base in {"BINARY_FLOAT", "BINARY_DOUBLE"}:
        # No more than six digits, as streams of C++ write them unless they are told otherwise.
        return f"{value:g}"
    if base in {"RAW", "BLOB"}:
        return f'"{bytes(value).hex()}"'
    if base == "TIMESTAMP WITH TIME ZONE":
        return f'"{_nanos(moment(value))},{_zone(moment(value))}"'
    if base == "DATE" or base.startswith("TIMESTAMP"):
        return str(_nanos(moment(value)))
    if base.startswith("INTERVAL YEAR"):
        sign, years, months = _parts(r"([+-]?)0*(\d+)-0*(\d+)", value)
        return f'"{_minus(sign)}{int(years)}-{int(months)}"'
    if base.startswith("INTERVAL DAY"):
        sign, days, time, fraction = _parts(r"([+-]?)0*(\d+) ([\d:]+)\.?(\d*)", value)
        return f'"{_minus(sign)}{int(days)},{time}.{fraction:<09}"'
    text = str(value)
    return json.dumps(text.ljust(type_.length) if base in CHARACTERS and base.endswith("CHAR") else text)


def _parts(pattern: str, value: Any) -> tuple[str, ...]:
    found = re.fullmatch(pattern, str(value))
    assert found is not None, value
    return found.groups()


def _minus(sign: str) -> str:
    return "-" if sign == "-" else ""


def _nanos(value: Moment) -> int:
    time = value.time.astimezone(UTC).replace(tzinfo=None) if value.time.tzinfo else value.time
    return (time - _EPOCH) // _MICRO * 1000 + value.nanos


def _zone(value: Moment) -> str:
    minutes = int((value.time.utcoffset() or timedelta()).total_seconds()) // 60
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02d}:{rest:02d}"
