"""How a column of a table's key is written: as text, which only the source compares, and as a value of Debezium's."""

from __future__ import annotations

import uuid
from decimal import Decimal, InvalidOperation
from typing import Literal

from floodmark.debezium.snapshot_state import KeyValue

KeyForm = Literal["number", "text", "uuid", "hex", "bytea"]
"""``hex`` and ``bytea`` are bytes: as capital digits, and as PostgreSQL writes them."""


def text_of(form: KeyForm | None, value: KeyValue | None) -> str | None:
    """Return a value as the source's text.

    Args:
        form: of the column; None: there is no exact one.
        value: the value; None: it isn't known.

    Returns:
        None if the value isn't one of such a column.
    """
    match form, value:
        case "number", int():
            return str(value)
        case "number", Decimal():
            return f"{value:f}"
        case ("text", str()) | ("uuid", uuid.UUID()):
            return str(value)
        case "hex", bytes():
            return value.hex().upper()
        case "bytea", bytes():
            return rf"\x{value.hex()}"
    return None


def value_of(form: KeyForm | None, text: str) -> KeyValue | None:
    """Return what ``text_of`` makes a text of; None if there is no exact value."""
    try:
        match form:
            case "number":
                number = Decimal(text)
                if not number.is_finite():
                    return None
                return number if "." in text else int(number)
            case "text":
                return text
            case "uuid":
                return uuid.UUID(text)
            case "hex":
                return bytes.fromhex(text)
            case "bytea":
                return bytes.fromhex(text.removeprefix(r"\x")) if text.startswith(r"\x") else None
    except (ValueError, InvalidOperation):
        return None
    return None
