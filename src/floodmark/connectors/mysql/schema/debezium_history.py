"""Rebuilds the tables' structures at a position from Debezium's schema history, and makes a history for Debezium.

A record of Debezium's history has the position of its statement, the statement, and the tables that it changed. The
statements are applied as those of the log are.

Source: Debezium's ``HistoryRecord`` and ``BinlogHistoryRecordComparator``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from floodmark.connectors.mysql.ddl.schema import Schema, TableId
from floodmark.connectors.mysql.ddl.statements import apply
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.schema.catalog import read_schema
from floodmark.connectors.mysql.schema_history.records import stored_change
from floodmark.connectors.mysql.server.binlogs import split_name
from floodmark.connectors.mysql.server.connection import Connection, run
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.connectors.mysql.structures.table import Table
from floodmark.errors import DdlError, OffsetError
from floodmark.json_data import Json, JsonObject
from floodmark.logger import get_logger

log = get_logger(__name__)

HISTORY_CURE = "Give the schema history of the connector whose offset it is."


class HistoryReader:
    """Rebuilds structures.

    Args:
        conn: an ordinary connection.
        options: the source's options.
        server: the server's properties.
    """

    def __init__(self, conn: Connection, options: BinlogOptions, server: Server) -> None:
        self._conn = conn
        self._options = options
        self._server = server

    def structures(self, records: Iterable[Mapping[str, Json]], upto: tuple[int, int]) -> Schema:
        """Return the structures of all tables at a position.

        Tables that the options leave out and that the history lacks are as the server has them now.

        Args:
            records: Debezium's history, the oldest first.
            upto: number of the binlog file, and the offset in it; records that end there are included.

        Raises:
            OffsetError: the history is another one, or damaged.
            DdlError: a statement can't be parsed, and the options don't allow it to be left out.
        """
        collation = str(run(self._conn, "SELECT @@GLOBAL.collation_server", "the server's settings")[0][0])
        schema, count = Schema(), 0
        for record in records:
            stored = JsonObject(record, "a record", _damaged)
            if stored.member("source").value("server") != self._options.topic_prefix:
                continue
            count += 1
            if _place(stored.member("position")) > upto:
                continue
            text = stored.optional_text("ddl")
            own = stored_change(record, _damaged)
            if own is not None:
                # Floodmark has written this record, when it handed over to Debezium.
                schema = replace(schema, tables={**schema.tables, **{_id(one): one for one in own.tables or ()}})
            elif text:
                session = Session(database=stored.optional_text("databaseName") or "", collation=collation)
                schema = self._applied(schema, text, session)
        if not count:
            raise OffsetError(
                f"Debezium's schema history has no record of the topic.prefix '{self._options.topic_prefix}'.",
                HISTORY_CURE,
            )
        now = read_schema(self._conn, self._server)
        others = {name: table for name, table in now.tables.items() if not self._options.captures(*name)}
        return Schema({**now.databases, **schema.databases}, {**others, **schema.tables})

    def _applied(self, schema: Schema, text: str, session: Session) -> Schema:
        try:
            return apply(schema, text, session, self._server).schema
        except DdlError as exc:
            if not self._options.history_skip_unparseable:
                raise
            log.warning("ddl_is_left_out", error=exc.what)
            return schema


def _id(table: Table) -> TableId:
    return table.database, table.name


def _place(position: JsonObject) -> tuple[int, int]:
    return split_name(position.text("file"))[1], position.integer("pos", 0)


def _damaged(problem: str) -> OffsetError:
    return OffsetError(f"Debezium's schema history cannot be used: {problem}.", HISTORY_CURE)
