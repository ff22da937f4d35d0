"""The events of the schema change topic (``include.schema.changes``), in Debezium's form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from floodmark.connectors.mysql.binlog.segments import damaged_segment
from floodmark.connectors.mysql.ddl.column_types import Charset
from floodmark.connectors.mysql.ddl.schema import Applied, Change, Schema, TableId
from floodmark.connectors.mysql.source_block import source_schema
from floodmark.connectors.mysql.structures.described import described_column, described_table, table_id
from floodmark.connectors.mysql.structures.table import Table
from floodmark.connectors.schema_history import event_schemas
from floodmark.events.json_text import dumps
from floodmark.json_data import Json, JsonObject

Flavor = Literal["mysql", "mariadb"]

TRUNCATE = "TRUNCATE"
"""A kind of change that the topic doesn't report."""
_FULL = 0.75


@dataclass(frozen=True)
class SchemaChange:
    """An event of the schema change topic.

    Attributes:
        database: the event's key; empty for what concerns the whole server.
        ddl: the statement that it reports.
        tables: what the source block names as the table; None for null.
        kind: ``CREATE``, ``ALTER`` or ``DROP``; None if no table changes.
        table: the table that changes.
        structure: its structure afterwards; None if it is dropped.
    """

    database: str
    ddl: str
    tables: str | None = ""
    kind: str | None = None
    table: TableId | None = None
    structure: Table | None = None

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON data, for a segment's header."""
        return {
            "database": self.database,
            "ddl": self.ddl,
            "tables": self.tables,
            "kind": self.kind,
            "table": None if self.table is None else list(self.table),
            "structure": self.structure.to_json() if self.structure is not None else None,
        }

    @classmethod
    def from_json(cls, data: Json) -> SchemaChange:
        """Create a change from the data of :meth:`to_json`.

        Raises:
            DecodeError: it is other data.
        """
        change = JsonObject(data, "a change of a structure in its header", damaged_segment)
        named = None if change.value("table") is None else change.texts("table")
        if named is not None and len(named) != 2:
            raise change.wrong("table", "a database and a name")
        structure = change.value("structure")
        return cls(
            change.text("database"),
            change.text("ddl"),
            change.optional_text("tables"),
            change.optional_text("kind"),
            None if named is None else (named[0], named[1]),
            None if structure is None else Table.from_json(structure, damaged_segment),
        )


def schema_changes(applied: Applied, text: str, database: str) -> list[SchemaChange]:
    """Return the events that a statement results in.

    Args:
        applied: its outcome.
        text: the statement.
        database: the session's default database.
    """
    reported = [change for change in applied.changes if not change.quiet and change.kind != TRUNCATE]
    if not reported:
        named = None if applied.made else ""
        return [SchemaChange(applied.database or database, text, named)] if applied.understood else []
    by_database: dict[str, list[Change]] = {}
    for change in reported:
        by_database.setdefault(change.id[0], []).append(change)
    return [
        SchemaChange(name, change.statement or text, _names(changes), change.kind, change.id, change.table)
        for name, changes in by_database.items()
        for change in changes
    ]


def snapshot_changes(
    schema: Schema, statements: Mapping[TableId, str], server: Charset, tables: Sequence[TableId]
) -> Iterator[SchemaChange]:
    """Yield the events that a snapshot begins with.

    Args:
        statements: the result of ``SHOW CREATE TABLE`` for each table.
        server: the default character set of databases.
        tables: the tables to report, in order.
    """
    yield SchemaChange("", f"SET character_set_server={server.charset}, collation_server={server.collation}", None)
    for table in tables:
        ddl = f"DROP TABLE IF EXISTS `{table[0]}`.`{table[1]}`"
        yield SchemaChange(table[0], ddl, table[1], "DROP", table)
    for database in dict.fromkeys(database for database, _ in tables):
        charset = schema.databases[database]
        yield SchemaChange(database, f"DROP DATABASE IF EXISTS `{database}`", None)
        ddl = f"CREATE DATABASE `{database}` CHARSET {charset.charset} COLLATE {charset.collation}"
        yield SchemaChange(database, ddl, None)
        yield SchemaChange(database, f"USE `{database}`", None)
        for table in tables:
            if table[0] == database:
                yield SchemaChange(database, statements[table], table[1], "CREATE", table, schema.tables[table])


def key_text(change: SchemaChange) -> str:
    """Return the key of an event, without a schema."""
    return f'{{"databaseName":{dumps(change.database)}}}'


def value_text(change: SchemaChange, source: str, millis: int, comments: bool) -> str:
    """Return the value of an event, without a schema.

    Args:
        source: the source block.
        millis: when the event is created, milliseconds since the epoch.
        comments: whether to include comments.
    """
    return (
        f'{{"source":{source},"ts_ms":{millis},"databaseName":{dumps(change.database)},"schemaName":null,'
        f'"ddl":{dumps(change.ddl)},"tableChanges":{dumps(_table_changes(change, comments))}}}'
    )


def _table_changes(change: SchemaChange, comments: bool) -> list[Json]:
    if change.kind is None or change.table is None:
        return []
    table: dict[str, Json] | None = None
    if change.structure is not None:
        columns = [described_column(one, at, comments) for at, one in enumerate(change.structure.columns, start=1)]
        comment = change.structure.comment if comments else None
        table = {**described_table(change.structure), "columns": columns, "comment": comment}
    return [{"type": change.kind, "id": table_id(*change.table), "table": table}]


@lru_cache(maxsize=2)
def key_schema(flavor: Flavor) -> dict[str, Json]:
    """Return the Connect schema of the keys."""
    return event_schemas.key_schema(flavor)


@lru_cache(maxsize=2)
def value_schema(flavor: Flavor) -> dict[str, Json]:
    """Return the Connect schema of the values."""
    return event_schemas.value_schema(flavor, source_schema(flavor))


def _names(changes: Iterable[Change]) -> str:
    """Return the names of the changed tables in the order of a Java hash set, as Debezium does."""
    tables = list(dict.fromkeys(change.id for change in changes))
    slots = 16
    while len(tables) > slots * _FULL:
        slots *= 2
    return ",".join(name for _, name in sorted(tables, key=lambda table: _java_hash(".".join(table)) & (slots - 1)))


def _java_hash(text: str) -> int:
    """Return the hash code of a string as a Java hash map spreads it."""
    units = text.encode("utf-16-be")
    code = 0
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return code ^ code >> 16
