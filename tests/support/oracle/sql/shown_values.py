"""Values as ``TO_CHAR`` shows them."""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal
from typing import Any

from sqlglot import exp

from tests.support.oracle.errors import OracleError
from tests.support.oracle.mining.session_formats import Formats
from tests.support.oracle.model.types import OracleType
from tests.support.oracle.model.values import Moment, moment, number_text

TEXT = OracleType("VARCHAR2", "VARCHAR2(4000)", length=4000)
_ALL_DIGITS = "TM9"


def is_shown_column(one: exp.Expr) -> bool:
    """Return whether an expression is ``TO_CHAR`` of a column."""
    return isinstance(one, exp.ToChar) and isinstance(one.this, exp.Column)


def shown(one: exp.Expr, type_: OracleType, value: Any, formats: Formats) -> str | None:
    """Return a value as ``TO_CHAR`` shows it.

    Args:
        one: the call.
        type_: of the column.
        value: the value.
        formats: of the session.

    Raises:
        OracleError: the format isn't one of the type's.
    """
    if value is None:
        return None
    pattern = one.args.get("format")
    base, given = type_.base, "" if pattern is None else str(pattern.name)
    if base in {"NUMBER", "FLOAT"} and given == _ALL_DIGITS:
        return number_text(Decimal(value))
    if base.startswith("INTERVAL") and not given:
        return str(value)
    if (base == "DATE" or base.startswith("TIMESTAMP")) and given:
        found = moment(value)
        if base == "TIMESTAMP WITH LOCAL TIME ZONE":
            found = Moment(found.time.astimezone(UTC).astimezone(formats.zone), found.nanos)
        return formats.shown(found, given)
    raise OracleError(1722, text=f"invalid number (TO_CHAR of {base} as '{given}' isn't known to the stand-in)")
