"""Texts as constants of SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from floodmark.errors import ConfigError

MOST_CONSTANTS = 1000
"""How many constants a list of Oracle's may have."""


def constant(text: str) -> str:
    """Return a text as a constant."""
    return "'" + text.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """Return a name as an identifier.

    Raises:
        ConfigError: Oracle has no such names.
    """
    if '"' in name or "\0" in name or not name:
        raise ConfigError(f"'{name}' is no name of Oracle's.", "Names have no double quotes.")
    return f'"{name}"'


def constants(texts: Iterable[str]) -> str:
    """Return texts as a list of constants."""
    return ",".join(map(constant, texts))


def is_one_of(expression: str, texts: Sequence[str]) -> str:
    """Return the condition that an expression is one of some texts."""
    return _in(expression, texts, "IN", " OR ")


def is_none_of(expression: str, texts: Sequence[str]) -> str:
    """Return the condition that an expression is none of some texts."""
    return _in(expression, texts, "NOT IN", " AND ")


def _in(expression: str, texts: Sequence[str], operator: str, joint: str) -> str:
    parts = [
        f"{expression} {operator} ({constants(texts[at : at + MOST_CONSTANTS])})"
        for at in range(0, len(texts), MOST_CONSTANTS)
    ]
    return parts[0] if len(parts) == 1 else f"({joint.join(parts)})"
