"""The structures of all tables, as they follow the log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from floodmark.config.kafka_clients import client_is_missing
from floodmark.config.mysql import BinlogOptions
from floodmark.connectors.mysql.log.queries import Query
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.schema.ddl import apply
from floodmark.connectors.mysql.schema.history import SchemaHistory
from floodmark.connectors.mysql.schema.history_files import HistoryFiles, StateDirFiles
from floodmark.connectors.mysql.schema.history_records import HistoryEntry
from floodmark.connectors.mysql.schema.schema import Schema
from floodmark.connectors.mysql.schema.schema_events import TRUNCATE, SchemaChange, schema_changes
from floodmark.connectors.mysql.schema.session import Server, session_of, statement_text
from floodmark.connectors.mysql.schema.table import Table
from floodmark.errors import DdlError
from floodmark.log import get_logger

log = get_logger(__name__)

_CHANGES_ROWS = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|LOAD)\b", re.IGNORECASE)


class SchemaFollower:
    """Knows the structures at the place of the log that capture has reached, and at earlier ones.

    Args:
        options: the source's options.
    """

    def __init__(self, options: BinlogOptions) -> None:
        self._options = options
        self._server = Server()
        self._collations: Mapping[int, str] = {}
        self._history = SchemaHistory(_files(options), options.topic_prefix)
        self._position = ""
        self._schema = Schema()

    def know(self, server: Server, collations: Mapping[int, str]) -> None:
        """Take what the server is.

        Args:
            server: it.
            collations: its collations by their numbers.
        """
        self._server, self._collations = server, collations

    def begin(self, position: str, schema: Schema) -> None:
        """Start with what the server said.

        Args:
            position: the place in the log where it is so.
            schema: the structures.
        """
        self._history.begin(position, schema)
        self._position, self._schema = position, schema

    @property
    def schema(self) -> Schema:
        """The structures at the place that was reached."""
        return self._schema

    def rewind(self, position: str) -> None:
        """Be as the log has it at a position.

        Raises:
            SchemaHistoryError: nothing is known of that place.
        """
        self._position, self._schema = position, self._history.load(position)

    def forget(self, position: str) -> None:
        """Remove what is only of use before a position."""
        self._history.forget(position)

    def apply(self, query: Query, position: str) -> dict[str, Any] | None:
        """Take a statement of the log.

        Args:
            query: the statement.
            position: of its event.

        Returns:
            What a segment's header says of it; None if it is not about tables.

        Raises:
            DdlError: it can't be understood, and that is not to be passed over.
        """
        text = statement_text(query, self._collations)
        if _CHANGES_ROWS.match(text) and self._options.captures_database(query.database):
            # Tools log some of their own statements so on purpose, and the tables are not known: no reason to stop.
            log.warning("rows_are_changed_by_a_statement", statement=text, position=position, binlog_format="not ROW")
            return None
        before = self._schema
        try:
            found = apply(before, text, session_of(query, self._collations, self._server), self._server)
        except DdlError as exc:
            if not self._options.history_skip_unparseable:
                raise DdlError(
                    f"{exc.what} It is at {position}.",
                    "Set schema.history.internal.skip.unparseable.ddl to true if it does not concern captured tables.",
                ) from None
            log.warning("ddl_is_left_out", error=exc.what, position=position)
            return None
        if found.schema is not before:
            place = Position.parse(position)
            offset = {"file": place.file, "pos": place.event}
            entry = HistoryEntry(position, offset, query.seconds * 1000, text, query.database, found)
            self._history.append(entry, before)
            self._position, self._schema = position, found.schema
        changes = [change for change in schema_changes(found, text, query.database) if self._is_told(change)]
        emptied = [
            before.tables[change.id]
            for change in found.changes
            if change.kind == TRUNCATE and change.id in before.tables and self._options.captures(*change.id)
        ]
        if not changes and not emptied:
            return None
        return {"changes": [one.to_json() for one in changes], "emptied": [table.to_json() for table in emptied]}

    def _is_told(self, change: SchemaChange) -> bool:
        if change.table is not None and self._options.history_only_captured_tables:
            return self._options.captures(*change.table)
        return not change.database or self._options.tells_of_database(change.database)

    def table(self, database: str, name: str) -> Table | None:
        """Return the structure of a captured table; None if it isn't known, or not captured."""
        return self._schema.tables.get((database, name)) if self._options.captures(database, name) else None


def _files(options: BinlogOptions) -> HistoryFiles:
    if not options.history_in_kafka:
        return StateDirFiles(options.state_dir, options.owner)
    try:
        from floodmark.connectors.mysql.schema.history_topic import topic_files
    except ModuleNotFoundError as exc:
        raise client_is_missing("schema.history.internal", f"is '{options.history}'", exc) from None
    return topic_files(options)
