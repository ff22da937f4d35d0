"""Records of the schema history: Debezium's, with one more member, which is what Floodmark reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from floodmark.connectors.mysql.ddl.column_types import Charset
from floodmark.connectors.mysql.ddl.schema import Applied, Change, Schema, TableId
from floodmark.connectors.mysql.schema_history.schema_events import SchemaChange, schema_changes
from floodmark.connectors.mysql.structures.described import described_table, has_default, table_id
from floodmark.connectors.mysql.structures.table import Table

OWN = "floodmark"
"""The member that Debezium's records don't have."""


@dataclass(frozen=True)
class HistoryEntry:
    """A statement of the log, as the history stores it.

    Attributes:
        position: of its event.
        offset: Debezium's form of the position: ``file``, ``pos``, ``gtids`` …
        millis: when it ran, milliseconds since the epoch.
        text: the statement.
        database: its default database.
        applied: its outcome.
    """

    position: str
    offset: Mapping[str, Any]
    millis: int
    text: str
    database: str
    applied: Applied


class Structures:
    """Databases and tables as they result from records."""

    def __init__(self) -> None:
        self._databases: dict[str, Charset] = {}
        self._tables: dict[TableId, Table] = {}

    def take(self, own: Mapping[str, Any]) -> None:
        """Apply the changes in a record's own member."""
        if own.get("databases") is not None:
            self._databases = {name: Charset(*charset) for name, charset in own["databases"].items()}
        for database, name in own.get("dropped", ()):
            self._tables.pop((database, name), None)
        for data in own.get("tables", ()):
            table = Table.from_json(data)
            self._tables[table.database, table.name] = table

    def schema(self) -> Schema:
        """Return the structures after the records that were applied."""
        return Schema(self._databases, self._tables)


def records(entry: HistoryEntry, server: str, before: Schema, after: str) -> list[dict[str, Any]]:
    """Return the records of a statement; the first has the member that Floodmark reads.

    Args:
        server: the option ``topic.prefix``.
        before: the structures before it.
        after: name of the file before.
    """
    told = schema_changes(entry.applied, entry.text, entry.database) or [SchemaChange(entry.database, entry.text)]
    previous = {change.id: change.previous for change in entry.applied.changes}
    found = [
        {
            "source": {"server": server},
            "position": dict(entry.offset),
            "ts_ms": entry.millis,
            "databaseName": change.database,
            "ddl": change.ddl,
            "tableChanges": _table_changes(change, previous),
        }
        for change in told
    ]
    found[0][OWN] = {"after": after, **_difference(before, entry.applied.schema, entry.applied.changes)}
    return found


def image(schema: Schema, after: str) -> list[dict[str, Any]]:
    """Return the records that hold all structures.

    Args:
        after: name of the file before.
    """
    tables = [{OWN: {"tables": [table.to_json()]}} for table in schema.tables.values()]
    return [{OWN: {"after": after, "databases": _databases(schema)}}, *tables]


def _databases(schema: Schema) -> dict[str, list[str]]:
    return {name: [charset.charset, charset.collation] for name, charset in schema.databases.items()}


def _difference(before: Schema, after: Schema, changes: Sequence[Change]) -> dict[str, Any]:
    touched = {table for change in changes for table in (change.id, change.previous) if table is not None}
    if before.databases != after.databases:
        # Tables of a dropped database are not among the changes.
        touched |= before.tables.keys() - after.tables.keys()
    found: dict[str, Any] = {
        "dropped": sorted(table for table in touched if table not in after.tables),
        "tables": [
            after.tables[table].to_json()
            for table in sorted(touched)
            if table in after.tables and after.tables[table] != before.tables.get(table)
        ],
    }
    if before.databases != after.databases:
        found["databases"] = _databases(after)
    return found


def _table_changes(change: SchemaChange, previous: Mapping[TableId, TableId | None]) -> list[dict[str, Any]]:
    if change.kind is None or change.table is None:
        return []
    found: dict[str, Any] = {"type": change.kind, "id": table_id(*change.table)}
    renamed = previous.get(change.table)
    if renamed is not None:
        found["previousId"] = table_id(*renamed)
    if change.structure is not None:
        found["table"] = {**_stored(change.structure), "attributes": []}
        found["comment"] = change.structure.comment
    return [found]


def _stored(table: Table) -> dict[str, Any]:
    """Return a table as in Debezium's history: without members that are null, and with ``hasDefaultValue``."""
    found = described_table(table, True)
    columns = []
    for column, described in zip(table.columns, found["columns"], strict=True):
        default = described.pop("defaultValueExpression")
        labels = described.pop("enumValues")
        stored = {name: value for name, value in described.items() if value is not None or name in _NULLABLE}
        stored["hasDefaultValue"] = has_default(column)
        if default is not None:
            stored["defaultValueExpression"] = default
        stored["enumValues"] = labels or []
        columns.append(stored)
    return {**found, "columns": columns}


_NULLABLE = ("charsetName", "comment")
