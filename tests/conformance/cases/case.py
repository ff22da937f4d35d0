"""What a conformance case is."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One conformance case.

    Args:
        name: the golden file's name.
        setup: SQL scripts that run before the connector starts.
        statements: SQL statements that run while it streams.
        options: connector options by Debezium's names.
        schemas: whether keys and values carry their schemas.
    """

    name: str
    setup: tuple[str, ...]
    statements: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)
    schemas: bool = False
