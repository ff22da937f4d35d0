"""What a statement does to a table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from floodmark.connectors.oracle.structures.described import described_table, table_id
from floodmark.connectors.oracle.structures.table import Table
from floodmark.json_data import Json

TableName = tuple[str, str]
"""Schema and name."""


class Kind(StrEnum):
    """What is done to a table."""

    CREATE = "CREATE"
    ALTER = "ALTER"
    DROP = "DROP"
    TRUNCATE = "TRUNCATE"
    COMMENT = "COMMENT"


@dataclass(frozen=True)
class TableChange:
    """What a statement does to one table.

    Attributes:
        kind: what it does.
        name: the table's schema and name after the statement.
        table: its structure after the statement, or the one that it had if it is dropped; None if that isn't known.
        previous: its schema and name before the statement, if those were others.
        reread: whether its structure must be read from the dictionary: the statement doesn't say what it is, or the
            table before it isn't known. There may be no such table then, or it may be a view.
    """

    kind: Kind
    name: TableName
    table: Table | None = None
    previous: TableName | None = None
    reread: bool = False

    def described(self, comments: bool = False) -> list[Json]:
        """Return the change in the form of the schema change topic (``tableChanges``); empty if it has none.

        Args:
            comments: whether schemas include comments; without them, Debezium doesn't report comments either.
        """
        if self.table is None or self.kind is Kind.TRUNCATE or (self.kind is Kind.COMMENT and not comments):
            return []
        # Debezium reports a comment as if the table were created.
        kind = Kind.CREATE if self.kind is Kind.COMMENT else self.kind
        table = None if kind is Kind.DROP else described_table(self.table, comments)
        return [{"type": kind, "id": table_id(self.table), "table": table}]
