"""Values as LogMiner writes them into SQL_REDO."""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal
from typing import Any

from tests.support.oracle.mining.session_formats import Formats
from tests.support.oracle.model.types import OracleType
from tests.support.oracle.model.values import Moment, moment, number_text

UNSUPPORTED = {"UROWID", "LONG", "BFILE", "BOOLEAN", "JSON", "VECTOR"}


def literal(type_: OracleType, value: Any, formats: Formats) -> str:
    """Return a value as an expression; ``NULL`` for None.

    Args:
        type_: of its column.
        value: the value.
        formats: of the session.
    """
    if value is None:
        return "NULL"
    base = type_.base
    if base in UNSUPPORTED:
        return "Unsupported Type"
    if base in {"NUMBER", "FLOAT"}:
        return f"'{number_text(Decimal(value))}'"
    if base in {"BINARY_FLOAT", "BINARY_DOUBLE"}:
        return f"'{_scientific(value)}'"
    if base in {"NCHAR", "NVARCHAR2"}:
        return _national(_padded(type_, value))
    if base in {"CHAR", "VARCHAR2", "ROWID"}:
        return _quoted(_padded(type_, value))
    if base == "DATE":
        return f"TO_DATE('{formats.date(moment(value))}', '{formats.date_format}')"
    if base == "TIMESTAMP":
        return f"TO_TIMESTAMP('{formats.timestamp(moment(value), type_.fraction)}')"
    if base == "TIMESTAMP WITH TIME ZONE":
        return f"TO_TIMESTAMP_TZ('{formats.zoned(moment(value), type_.fraction)}')"
    if base == "TIMESTAMP WITH LOCAL TIME ZONE":
        local = moment(value)
        at_session = Moment(local.time.astimezone(UTC).astimezone(formats.zone), local.nanos)
        return f"TO_TIMESTAMP_TZ('{formats.zoned(at_session, type_.fraction)}')"
    if base.startswith("INTERVAL YEAR"):
        return f"TO_YMINTERVAL('{value}')"
    if base.startswith("INTERVAL DAY"):
        return f"TO_DSINTERVAL('{value}')"
    if base == "RAW":
        return f"HEXTORAW('{bytes(value).hex()}')"
    if base in {"CLOB", "NCLOB"}:
        return "EMPTY_CLOB()" if value == "" else _quoted(value)
    if base == "BLOB":
        return "EMPTY_BLOB()" if value == b"" else f"HEXTORAW('{bytes(value).hex()}')"
    raise ValueError(f"LogMiner's text of {base} isn't known.")


def hexadecimal(raw: bytes | None) -> str:
    """Return a value of a column whose type isn't known any more."""
    return "NULL" if raw is None else f"HEXTORAW('{raw.hex()}')"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _national(text: str) -> str:
    """Return a national text: everything that isn't ASCII as UTF-16 in hexadecimal."""
    raw = text.encode("utf-16-be")
    units = [int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw), 2)]
    if all(unit < 0x80 for unit in units):
        return _quoted(text)
    parts = []
    for unit in units:
        if unit == ord("\\"):
            parts.append("\\\\")
        elif unit == ord("'"):
            parts.append("''")
        else:
            parts.append(chr(unit) if unit < 0x80 else f"\\{unit:04X}")
    return f"UNISTR('{''.join(parts)}')"


def _padded(type_: OracleType, value: str) -> str:
    return value.ljust(type_.length) if type_.base in {"CHAR", "NCHAR"} else value


def _scientific(value: float) -> str:
    if value != value:
        return "Nan"
    if value in (float("inf"), float("-inf")):
        return "Inf" if value > 0 else "-Inf"
    mantissa, exponent = f"{value:.17E}".split("E")
    for digits in range(17):
        text = f"{value:.{digits}E}"
        if float(text) == value:
            mantissa, exponent = text.split("E")
            break
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent):+04d}"
