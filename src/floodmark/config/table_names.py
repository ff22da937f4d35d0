"""How users may write the names of tables in signals and in the list of what a snapshot reads."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WITH_DATABASE = re.compile(r"(?P<database>[\w$#-]+)\\?\.(?![*+?{]).+?\\?\.(?![*+?{]).+", re.DOTALL)
"""A name, or an expression of names, whose first of three parts is a database. A dot may be a wildcard, so this is only
asked of what matches no table."""


@dataclass(frozen=True)
class TableNames:
    """The ways to write a table's name.

    Attributes:
        database: may stand before ``schema.table``; empty: nothing may.
    """

    database: str = ""

    def of(self, table: str) -> tuple[str, ...]:
        """Return the texts that an expression for a table may match.

        Args:
            table: its name, as ``schema.table``.
        """
        return (table, f"{self.database}.{table}") if self.database else (table,)

    def mistake(self, text: str) -> str:
        """Return why an expression that matches no table can't match one, as a clause; empty: that isn't known."""
        found = _WITH_DATABASE.fullmatch(text) if self.database else None
        if found is None or found["database"].lower() == self.database.lower():
            return ""
        return f"it names the database {found['database']}, and the query captures {self.database}"


SCHEMA_AND_TABLE = TableNames()
"""Names without a database."""
