"""Reads the statements that create tables, as of a read point, for the announcements in the schema change topic.

The server returns them one table at a time, and only for tables as they are now. So they are read while the read point
is opened, between two reads of all structures that must be the same. What is announced is stored with the schema
history, where a process that repeats the micro-batch finds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from floodmark.connectors.mysql.ddl.column_types import Charset
from floodmark.connectors.mysql.ddl.schema import Schema, TableId
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.server.connection import Connection, run
from floodmark.connectors.mysql.structures.table import Table, table_name
from floodmark.errors import SourceStateError
from floodmark.logger import get_logger

log = get_logger(__name__)


@dataclass(frozen=True)
class Announced:
    """What is announced of the tables of a snapshot.

    Attributes:
        server: the server's default character set.
        schema: the structures of the announced tables, and all databases.
        statements: the result of ``SHOW CREATE TABLE`` for each table; a table without one is not announced.
    """

    server: Charset
    schema: Schema
    statements: Mapping[TableId, str] = field(default_factory=dict)

    def to_lines(self) -> list[dict[str, Any]]:
        """Return it as JSON data, one table per line."""
        databases = {name: [charset.charset, charset.collation] for name, charset in self.schema.databases.items()}
        first = {"server": [self.server.charset, self.server.collation], "databases": databases}
        tables = (
            {"table": self.schema.tables[at].to_json(), "statement": text} for at, text in self.statements.items()
        )
        return [first, *tables]

    @classmethod
    def from_lines(cls, lines: Sequence[Mapping[str, Any]]) -> Self:
        """Create it from the lines of ``to_lines``."""
        first, *rest = lines
        tables = [(Table.from_json(line["table"]), str(line["statement"])) for line in rest]
        structures = {(table.database, table.name): table for table, _ in tables}
        databases = {name: Charset(*charset) for name, charset in first["databases"].items()}
        statements = {(table.database, table.name): text for table, text in tables}
        return cls(Charset(*first["server"]), Schema(databases, structures), statements)


class Definitions:
    """Reads the statements that create tables.

    Args:
        options: the source's options, which select what is announced.
    """

    def __init__(self, options: BinlogOptions) -> None:
        self._options = options
        self._known: dict[TableId, tuple[Table, str]] = {}
        self._refused: dict[TableId, tuple[Table, str]] = {}

    def read(self, conn: Connection, schema: Schema) -> bool:
        """Read the statements of tables that have not been read, or have changed since.

        Args:
            conn: an ordinary connection.
            schema: the structures as they were just before.

        Returns:
            False if a table was refused for the first time: it may be gone, so read the structures again.
        """
        settled = True
        for at in announced_tables(self._options, schema):
            table = schema.tables[at]
            known = self._known.get(at)
            if known is not None and known[0] == table:
                continue
            try:
                self._known[at] = (table, _statement(conn, table))
                self._refused.pop(at, None)
            except SourceStateError as exc:
                before = self._refused.get(at)
                settled &= before is not None and before[0] == table
                self._refused[at] = (table, str(exc))
        return settled

    def announced(self, conn: Connection, schema: Schema) -> Announced:
        """Return what is announced of a snapshot.

        Args:
            conn: an ordinary connection.
            schema: the structures at the read point, as they were passed to ``read``.
        """
        statements = {}
        for at in announced_tables(self._options, schema):
            known = self._known.get(at)
            if known is not None and known[0] == schema.tables[at]:
                statements[at] = known[1]
            else:
                error = self._refused[at][1] if at in self._refused else "it has changed since"
                log.warning("table_is_not_announced", table=".".join(at), error=error)
        ((charset, collation),) = run(conn, "SELECT @@character_set_server, @@collation_server", "the server's charset")
        return Announced(Charset(charset, collation), schema, statements)


def announced_tables(options: BinlogOptions, schema: Schema) -> list[TableId]:
    """Return the tables that a snapshot announces, in order."""
    return sorted(
        at
        for at, table in schema.tables.items()
        if options.reports_database(at[0])
        and not table.sequence
        and (not options.history_only_captured_tables or options.captures(*at))
    )


def _statement(conn: Connection, table: Table) -> str:
    name = table_name(table)
    return str(run(conn, f"SHOW CREATE TABLE {name}", f"reading the definition of {name}")[0][1])
