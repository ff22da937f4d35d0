"""Records of the schema history: Debezium's, with one more member, which is what Floodmark reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from floodmark.connectors.mysql.ddl.column_types import Charset
from floodmark.connectors.mysql.ddl.schema import Applied, Change, Schema, TableId
from floodmark.connectors.mysql.schema_history.schema_events import SchemaChange, schema_changes
from floodmark.connectors.mysql.structures.described import described_column, described_table, has_default, table_id
from floodmark.connectors.mysql.structures.stored import MakeError
from floodmark.connectors.mysql.structures.table import Table
from floodmark.json_data import Json, JsonObject

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
    offset: Mapping[str, str | int]
    millis: int
    text: str
    database: str
    applied: Applied


@dataclass(frozen=True)
class StoredChange:
    """The member of a record that Floodmark reads: what changes in the structures.

    Attributes:
        after: name of the file before; None: it isn't the first record of a file.
        dropped: tables that are gone; None: none.
        tables: tables that are new or altered, as they are now; None: none.
        databases: all databases with their default character sets; None: as before.
    """

    after: str | None = None
    dropped: tuple[TableId, ...] | None = None
    tables: tuple[Table, ...] | None = None
    databases: Mapping[str, Charset] | None = None

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON data, without members that are None."""
        data: dict[str, Json] = {}
        if self.after is not None:
            data["after"] = self.after
        if self.dropped is not None:
            data["dropped"] = [list(table) for table in self.dropped]
        if self.tables is not None:
            data["tables"] = [table.to_json() for table in self.tables]
        if self.databases is not None:
            data["databases"] = {name: [one.charset, one.collation] for name, one in self.databases.items()}
        return data

    @classmethod
    def from_json(cls, data: Json, error: MakeError) -> Self:
        """Return the change that ``to_json`` described.

        Args:
            data: the data.
            error: makes the error for other data.

        Raises:
            FloodmarkError: it describes something else.
        """
        change = JsonObject(data, f"its member '{OWN}'", error)
        databases = change.member("databases") if change.value("databases") is not None else None
        return cls(
            change.optional_text("after"),
            tuple(_pair(table, error) for table in change.items("dropped")) if "dropped" in change else None,
            tuple(Table.from_json(one, error) for one in change.items("tables")) if "tables" in change else None,
            None if databases is None else {name: Charset(*_pair(databases.value(name), error)) for name in databases},
        )


def _pair(data: Json, error: MakeError) -> tuple[str, str]:
    if isinstance(data, list) and len(data) == 2:
        one, other = data
        if isinstance(one, str) and isinstance(other, str):
            return one, other
    raise error(f"it has {data!r} in place of two texts")


class Structures:
    """Databases and tables as they result from records."""

    def __init__(self) -> None:
        self._databases: Mapping[str, Charset] = {}
        self._tables: dict[TableId, Table] = {}

    def take(self, change: StoredChange) -> None:
        """Apply what changes by a record."""
        if change.databases is not None:
            self._databases = change.databases
        for table in change.dropped or ():
            self._tables.pop(table, None)
        for structure in change.tables or ():
            self._tables[structure.database, structure.name] = structure

    def schema(self) -> Schema:
        """Return the structures after the records that were applied."""
        return Schema(self._databases, self._tables)


def records(entry: HistoryEntry, server: str, before: Schema, after: str) -> list[dict[str, Json]]:
    """Return the records of a statement; the first has the member that Floodmark reads.

    Args:
        server: the option ``topic.prefix``.
        before: the structures before it.
        after: name of the file before.
    """
    reported = schema_changes(entry.applied, entry.text, entry.database) or [SchemaChange(entry.database, entry.text)]
    previous = {change.id: change.previous for change in entry.applied.changes}
    found: list[dict[str, Json]] = [
        {
            "source": {"server": server},
            "position": dict(entry.offset),
            "ts_ms": entry.millis,
            "databaseName": change.database,
            "ddl": change.ddl,
            "tableChanges": _table_changes(change, previous),
        }
        for change in reported
    ]
    found[0][OWN] = _difference(before, entry.applied.schema, entry.applied.changes, after).to_json()
    return found


def image(schema: Schema, after: str) -> list[dict[str, Json]]:
    """Return the records that hold all structures.

    Args:
        after: name of the file before.
    """
    tables = (StoredChange(tables=(table,)) for table in schema.tables.values())
    return [{OWN: change.to_json()} for change in (StoredChange(after, databases=schema.databases), *tables)]


def debezium_image(schema: Schema, server: str, position: Mapping[str, Json]) -> list[dict[str, Json]]:
    """Return the records of a history of Debezium that holds all structures.

    Args:
        schema: the structures.
        server: the option ``topic.prefix``.
        position: Debezium's form of the position at which they are in force.
    """
    databases = [
        (name, f"CREATE DATABASE `{name.replace('`', '``')}` CHARSET {one.charset} COLLATE {one.collation}", None)
        for name, one in schema.databases.items()
    ]
    tables = [(table.database, "", table) for table in schema.tables.values() if not table.sequence]
    return [
        {
            "source": {"server": server},
            "position": {**position, "snapshot": True},
            "databaseName": database,
            "ddl": ddl,
            **_created(database, table),
        }
        for database, ddl, table in (*databases, *tables)
    ]


def _created(database: str, table: Table | None) -> dict[str, Json]:
    """Return the members of a record that describe a new table: Debezium's, and the one that Floodmark reads."""
    if table is None:
        return {"tableChanges": []}
    changes = _table_changes(SchemaChange(database, "", "", "CREATE", (database, table.name), table), {})
    return {"tableChanges": changes, OWN: StoredChange(tables=(table,)).to_json()}


def stored_change(record: Json, error: MakeError) -> StoredChange | None:
    """Return what changes by a record; None if it is a statement's further record, which is for Debezium alone.

    Args:
        record: as it was stored.
        error: makes the error for something else.

    Raises:
        FloodmarkError: it is something else.
    """
    own = JsonObject(record, "a line", error).value(OWN)
    return None if own is None else StoredChange.from_json(own, error)


def _difference(before: Schema, after: Schema, changes: Sequence[Change], last: str) -> StoredChange:
    affected = {table for change in changes for table in (change.id, change.previous) if table is not None}
    if before.databases != after.databases:
        # Tables of a dropped database are not among the changes.
        affected |= before.tables.keys() - after.tables.keys()
    return StoredChange(
        last,
        tuple(sorted(table for table in affected if table not in after.tables)),
        tuple(
            after.tables[table]
            for table in sorted(affected)
            if table in after.tables and after.tables[table] != before.tables.get(table)
        ),
        after.databases if before.databases != after.databases else None,
    )


def _table_changes(change: SchemaChange, previous: Mapping[TableId, TableId | None]) -> list[Json]:
    if change.kind is None or change.table is None:
        return []
    found: dict[str, Json] = {"type": change.kind, "id": table_id(*change.table)}
    renamed = previous.get(change.table)
    if renamed is not None:
        found["previousId"] = table_id(*renamed)
    if change.structure is not None:
        found["table"] = {**_stored(change.structure), "attributes": []}
        found["comment"] = change.structure.comment
    return [found]


def _stored(table: Table) -> dict[str, Json]:
    """Return a table as in Debezium's history: without members that are null, and with ``hasDefaultValue``."""
    columns = []
    for position, column in enumerate(table.columns, start=1):
        described = described_column(column, position, comments=True)
        default = described.pop("defaultValueExpression")
        labels = described.pop("enumValues")
        stored = {name: value for name, value in described.items() if value is not None or name in _NULLABLE}
        stored["hasDefaultValue"] = has_default(column)
        if default is not None:
            stored["defaultValueExpression"] = default
        stored["enumValues"] = labels or []
        columns.append(stored)
    return {**described_table(table), "columns": columns}


_NULLABLE = ("charsetName", "comment")
