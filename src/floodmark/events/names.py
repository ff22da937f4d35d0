"""Adjusts names to what Kafka and Avro allow.

Debezium replaces UTF-16 units, so a character beyond U+FFFF counts as two.
"""

from __future__ import annotations

import string
from collections.abc import Callable

from floodmark.config.columns import Adjustment

MAX_TOPIC = 249
_LETTERS = frozenset(string.ascii_letters)
_DIGITS = frozenset(string.digits)
_UNICODE_TOPIC = _LETTERS | _DIGITS | frozenset(".-")
_TOPIC = _UNICODE_TOPIC | frozenset("_")

Replacement = Callable[[str], str]


def legal_topic(name: str, unicode: bool) -> str:
    """Return a topic's name with ``_`` for what Kafka does not allow, or with ``_uXXXX`` for that and ``_``."""
    legal = _replaced(name, _UNICODE_TOPIC, _escape) if unicode else _replaced(name, _TOPIC, _underscore)
    return legal[:MAX_TOPIC]


def adjusted_schema_name(name: str, mode: Adjustment) -> str:
    """Adjust a schema's name as ``schema.name.adjustment.mode`` requires."""
    return _adjusted(name, mode, frozenset("."))


def adjusted_field_name(name: str, mode: Adjustment) -> str:
    """Adjust a field's name as ``field.name.adjustment.mode`` requires."""
    return _adjusted(name, mode, frozenset())


def _adjusted(name: str, mode: Adjustment, more: frozenset[str]) -> str:
    if mode == "none" or not name:
        return name
    first = _LETTERS | (frozenset("_") if mode == "avro" else frozenset())
    replacement = _underscore if mode == "avro" else _escape
    head, rest = name[0], name[1:]
    start = _replaced(head, first, replacement)
    if mode == "avro" and head.isdigit():
        start += head
    return start + _replaced(rest, first | _DIGITS | more, replacement)


def _replaced(text: str, allowed: frozenset[str], replacement: Replacement) -> str:
    if allowed.issuperset(text):
        return text
    return "".join(char if char in allowed else "".join(map(replacement, _units(char))) for char in text)


def _units(char: str) -> list[str]:
    data = char.encode("utf-16-be", "surrogatepass")
    return [chr(int.from_bytes(data[at : at + 2], "big")) for at in range(0, len(data), 2)]


def _underscore(unit: str) -> str:  # noqa: ARG001
    return "_"


def _escape(unit: str) -> str:
    # As in Debezium, two zeros precede one or two digits; other numbers are not padded.
    digits = f"{ord(unit):x}"
    return f"_u00{digits}" if len(digits) <= 2 else f"_u{digits}"
