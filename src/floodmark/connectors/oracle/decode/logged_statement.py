"""A statement about a captured table, as a segment's header holds it, and its event of the schema change topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from floodmark.connectors.oracle import source_block
from floodmark.connectors.schema_history import event_schemas
from floodmark.events.connect_schema import carrying_schema
from floodmark.events.json_text import dumps
from floodmark.json_data import Json, JsonObject
from floodmark.transforms.other_records import SCHEMA_CHANGES, RecordKind

CONNECTOR = "oracle"


@dataclass(frozen=True)
class LoggedStatement:
    """A statement.

    Attributes:
        scn: its change number.
        thread: the redo thread; 0: it isn't known.
        record: ``RS_ID``, without blanks; empty: there is none.
        seconds: when it was executed, since the epoch.
        database: the database.
        owner: the table's schema.
        tables: names of the tables that it concerns.
        text: the statement.
        changes: what becomes of tables, in the form of the topic (``tableChanges``).
        span: of its transaction; see ``source_block.statement_block``.
        lcr: the position of XStream's record, in hexadecimal digits; empty: there is none.
    """

    scn: int
    thread: int
    record: str
    seconds: int
    database: str
    owner: str
    tables: str
    text: str
    changes: Sequence[Json]
    span: tuple[int, ...] = ()
    lcr: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON data, for a segment's header."""
        return {**vars(self), "span": list(self.span)}

    @classmethod
    def from_json(cls, stored: JsonObject) -> Self:
        """Return the statement that ``to_json`` described."""
        return cls(
            stored.integer("scn"),
            stored.integer("thread"),
            stored.text("record"),
            stored.integer("seconds"),
            stored.text("database"),
            stored.text("owner"),
            stored.text("tables"),
            stored.text("text"),
            stored.items("changes"),
            stored.integers("span"),
            stored.text("lcr"),
        )

    def event(self, prefix: str, millis: int, with_schemas: bool) -> dict[str, str]:
        """Return the key and the value of its event.

        Args:
            prefix: the option ``topic.prefix``.
            millis: when the event is made, since the epoch.
            with_schemas: the option ``schemas.enable``.
        """
        record, thread = dumps(self.record) if self.record else "null", self.thread or "null"
        place = f'"rs_id":{record},"ssn":0,"redo_thread":{thread}'
        source = source_block.statement_block(
            prefix,
            self.database,
            self.owner,
            self.tables,
            self.scn,
            self.seconds * 1_000_000,
            "false",
            place,
            "1",
            self.span,
            self.lcr,
        )
        return schema_change(source, self, millis, with_schemas)


def schema_change(source: str, statement: LoggedStatement, millis: int, with_schemas: bool) -> dict[str, str]:
    """Return the key and the value of an event of the schema change topic.

    Args:
        source: the source block.
        statement: what it reports.
        millis: when the event is made, since the epoch.
        with_schemas: the option ``schemas.enable``.
    """
    key = f'{{"databaseName":{dumps(statement.database)}}}'
    value = (
        f'{{"source":{source},"ts_ms":{millis},"databaseName":{dumps(statement.database)},'
        f'"schemaName":{dumps(statement.owner)},"ddl":{dumps(statement.text)},'
        f'"tableChanges":{dumps(list(statement.changes))}}}'
    )
    return {
        "key": carrying_schema(key, schema_changes().key, with_schemas),
        "value": carrying_schema(value, schema_changes().value, with_schemas),
    }


@lru_cache(maxsize=1)
def schema_changes() -> RecordKind:
    """Return what the topic's events are."""
    value = event_schemas.value_schema(CONNECTOR, source_block.source_schema())
    return RecordKind(SCHEMA_CHANGES, event_schemas.key_schema(CONNECTOR), value)
