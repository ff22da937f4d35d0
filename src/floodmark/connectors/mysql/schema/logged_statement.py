"""What is known of a statement of the log when its tables' structures have been followed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from floodmark.connectors.mysql.binlog.segments import damaged_segment
from floodmark.connectors.mysql.schema_history.schema_events import SchemaChange
from floodmark.connectors.mysql.structures.table import Table
from floodmark.json_data import Json, JsonObject


@dataclass(frozen=True)
class LoggedStatement:
    """A statement that becomes events.

    Attributes:
        changes: its events in the schema change topic.
        emptied: the tables that it truncates.
        unseen: the tables whose rows it changes without row events in the log.
        why: what changes these rows, for the error message.
    """

    changes: tuple[SchemaChange, ...] = ()
    emptied: tuple[Table, ...] = ()
    unseen: tuple[Table, ...] = ()
    why: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return it for a segment's header."""
        return {
            "changes": [change.to_json() for change in self.changes],
            "emptied": [table.to_json() for table in self.emptied],
            "unseen": [table.to_json() for table in self.unseen],
            "why": self.why,
        }

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the statement that a segment's header describes.

        Raises:
            DecodeError: the header describes something else.
        """
        statement = JsonObject(data, "a statement in its header", damaged_segment)
        emptied, unseen = (
            tuple(Table.from_json(table, damaged_segment) for table in statement.items(name))
            for name in ("emptied", "unseen")
        )
        changes = tuple(SchemaChange.from_json(change) for change in statement.items("changes"))
        return cls(changes, emptied, unseen, statement.text("why"))
