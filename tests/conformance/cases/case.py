"""What a conformance case is."""

from __future__ import annotations

from dataclasses import dataclass, field

DDL = ("CREATE", "ALTER", "DROP")
"""What statements begin with that change tables: what came before is delivered first, since keys and defaults are
those of the catalog."""


@dataclass(frozen=True)
class Case:
    """One conformance case.

    Args:
        name: the golden file's name.
        setup: SQL scripts that run before the connector starts.
        statements: SQL statements that run while it streams.
        options: connector options by Debezium's names.
        schemas: whether keys and values carry their schemas.
        extensions: whether it needs a server with PostgreSQL's contrib extensions.
        connector: ``postgres``, ``mysql`` or ``mariadb``.
        reference: options that Debezium is recorded with in the place of those of the same names.
        settings: variables that a MySQL or MariaDB server is started with.
    """

    name: str
    setup: tuple[str, ...]
    statements: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)
    schemas: bool = False
    extensions: bool = False
    connector: str = "postgres"
    settings: dict[str, str] = field(default_factory=dict)
    reference: dict[str, str] = field(default_factory=dict)
