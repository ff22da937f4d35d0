"""The structures of all tables, as they follow the log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from floodmark.config.mysql import BinlogOptions
from floodmark.connectors.mysql.log.queries import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, REAL_AS_FLOAT, Query
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.schema.charsets import python_codec
from floodmark.connectors.mysql.schema.ddl import apply
from floodmark.connectors.mysql.schema.schema import Change, Schema
from floodmark.connectors.mysql.schema.session import Server, Session
from floodmark.connectors.mysql.schema.table import Table
from floodmark.errors import DdlError, SchemaHistoryError
from floodmark.log import get_logger

log = get_logger(__name__)


class SchemaFollower:
    """Knows the structures at the place of the log that capture has reached, and at earlier ones.

    Args:
        options: the source's options.
    """

    def __init__(self, options: BinlogOptions) -> None:
        self._options = options
        self._server = Server()
        self._collations: Mapping[int, str] = {}
        self._positions: list[str] = []
        self._schemas: list[Schema] = []

    def begin(self, position: str, schema: Schema, server: Server, collations: Mapping[int, str]) -> None:
        """Start with what the server said.

        Args:
            position: the place in the log where it is so.
            schema: the structures.
            server: it.
            collations: the server's collations by their numbers.
        """
        self._server, self._collations = server, collations
        self._positions, self._schemas = [position], [schema]

    @property
    def schema(self) -> Schema:
        """The structures at the place that was reached."""
        return self._schemas[-1]

    @property
    def epoch(self) -> int:
        """The epoch of the place that was reached; 0 before it is known."""
        return 0 if not self._positions else Position.parse(self._positions[-1]).epoch

    def rewind(self, position: str) -> None:
        """Be as the log has it at a position.

        Raises:
            SchemaHistoryError: nothing is known of that place.
        """
        found = bisect_right(self._positions, position)
        if not found:
            raise SchemaHistoryError(f"The structures of the tables at {position} are not known.")
        del self._positions[found:], self._schemas[found:]

    def apply(self, query: Query, position: str) -> dict[str, Any] | None:
        """Take a statement of the log.

        Args:
            query: the statement.
            position: of its event.

        Returns:
            What it changes, as a segment's header says it; None if it changes no tables.

        Raises:
            DdlError: it can't be understood, and that is not to be passed over.
        """
        codec = python_codec(self._collations.get(query.client_charset or 0, "utf8mb4"))
        text = query.raw.decode(codec, "replace")
        try:
            found = apply(self.schema, text, self._session(query), self._server)
        except DdlError as exc:
            if not self._options.history_skip_unparseable:
                raise DdlError(
                    f"{exc.what} It is at {position}.",
                    "Set schema.history.internal.skip.unparseable.ddl to true if it does not concern captured tables.",
                ) from None
            log.warning("ddl_is_left_out", error=exc.what, position=position)
            return None
        if found.schema is not self.schema:
            self._positions.append(position)
            self._schemas.append(found.schema)
        if not found.changes and found.database is None:
            return None
        database = found.database or query.database
        return {"database": database, "ddl": text, "changes": [_change(change) for change in found.changes]}

    def table(self, database: str, name: str) -> Table | None:
        """Return the structure of a captured table; None if it isn't known, or not captured."""
        return self.schema.tables.get((database, name)) if self._options.captures(database, name) else None

    def _session(self, query: Query) -> Session:
        mode = query.sql_mode or 0
        return Session(
            database=query.database,
            ansi_quotes=bool(mode & ANSI_QUOTES),
            no_backslash_escapes=bool(mode & NO_BACKSLASH_ESCAPES),
            real_as_float=bool(mode & REAL_AS_FLOAT),
            collation=self._collations.get(query.server_collation or 0),
            utf8mb4_collation=self._collations.get(query.utf8mb4_collation or 0),
            explicit_timestamps=query.explicit_timestamps is not False,
        )


def _change(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "id": list(change.id),
        "previous": list(change.previous) if change.previous is not None else None,
        "table": change.table.to_json() if change.table is not None else None,
        "statement": change.statement,
    }
