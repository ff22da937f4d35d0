"""Keeps the structures of all tables up to date along the log."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from floodmark.capture.gaps import AcceptedGaps, Gap
from floodmark.config.kafka_clients import client_is_missing
from floodmark.connectors.mysql.binlog.queries import Query
from floodmark.connectors.mysql.ddl.schema import Schema, TableId
from floodmark.connectors.mysql.ddl.statements import apply, done_by_failed
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.schema.logged_statement import LoggedStatement
from floodmark.connectors.mysql.schema.moved_rows import MovedRows, moved_rows
from floodmark.connectors.mysql.schema.row_statements import changed_tables, changes_rows, fills_table
from floodmark.connectors.mysql.schema_history.records import HistoryEntry
from floodmark.connectors.mysql.schema_history.schema_events import TRUNCATE, SchemaChange, schema_changes
from floodmark.connectors.mysql.schema_history.store import SchemaHistory
from floodmark.connectors.mysql.structures.session import Server, Session, session_of, statement_text
from floodmark.connectors.mysql.structures.table import Table
from floodmark.connectors.schema_history.files import HistoryFiles, StateDirFiles
from floodmark.errors import DdlError
from floodmark.json_data import Json
from floodmark.logger import get_logger

log = get_logger(__name__)

LOGGED_AS_TEXT = "a statement that is in the log as text (the session's binlog_format was not ROW)"


class SchemaFollower:
    """Holds the structures at the position that capture has reached, and loads those at earlier ones.

    Args:
        options: the source's options.
        gaps: gets the changes that are left out because an option accepts that.
    """

    def __init__(self, options: BinlogOptions, gaps: AcceptedGaps) -> None:
        self._options = options
        self._gaps = gaps
        self._server = Server()
        self._collations: Mapping[int, str] = {}
        self._history = SchemaHistory(history_files(options), options.topic_prefix)
        self._position = ""
        self._schema = Schema()
        self._warned_of: set[TableId] = set()

    def know(self, server: Server, collations: Mapping[int, str]) -> None:
        """Set the properties of the server.

        Args:
            server: its properties.
            collations: its collations by their numbers.
        """
        self._server, self._collations = server, collations

    def begin(self, position: str, schema: Schema) -> None:
        """Start with structures that were read from the server.

        Args:
            position: the log position at which they are in force.
            schema: the structures.
        """
        self._history.begin(position, schema)
        self._position, self._schema = position, schema

    @property
    def schema(self) -> Schema:
        """The structures at the position that was reached."""
        return self._schema

    def newest(self, position: str) -> str | None:
        """Return the position of the last change of a structure up to a position; None if it isn't known."""
        return self._history.newest(position)

    def rewind(self, position: str, newest: str | None = None) -> None:
        """Load the structures at a position and continue from there.

        Args:
            position: the log position.
            newest: what ``newest`` returned for it in an earlier process, if known.

        Raises:
            SchemaHistoryError: the history doesn't reach back to that position, or is damaged.
        """
        self._position, self._schema = position, self._history.load(position, newest)

    def announce(self, position: str, lines: Sequence[Mapping[str, Json]]) -> None:
        """Store what is announced of the tables at a position."""
        self._history.announce(position, lines)

    def announced(self, position: str) -> list[dict[str, Json]] | None:
        """Return what is announced of the tables at a position; None if it isn't stored."""
        return self._history.announced(position)

    def forget(self, position: str) -> None:
        """Remove what is only needed before a position."""
        self._history.forget(position)

    def apply(self, query: Query, position: str) -> LoggedStatement | None:
        """Apply a statement of the log.

        Args:
            query: the statement.
            position: of its event.

        Returns:
            What becomes events, or is an error when the segment is decoded; None if there is nothing of that.

        Raises:
            DdlError: it can't be parsed, and the options don't allow it to be left out.
        """
        text = statement_text(query, self._collations)
        session = session_of(query, self._collations, self._server)
        if changes_rows(text, session, self._server):
            unseen = self._unseen(self._changed(text, session, query), LOGGED_AS_TEXT, text, position)
            return LoggedStatement(unseen=unseen, why=LOGGED_AS_TEXT) if unseen else None
        before = self._schema
        try:
            if query.failed:
                text = done_by_failed(text, session, self._server)
            found = apply(before, text, session, self._server)
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
        changes = tuple(change for change in schema_changes(found, text, query.database) if self._is_reported(change))
        emptied = tuple(
            before.tables[change.id]
            for change in found.changes
            if change.kind == TRUNCATE and change.id in before.tables and self._options.captures(*change.id)
        )
        created = {change.id for change in found.changes if change.kind == "CREATE"}
        filled = created if created and fills_table(text, session, self._server) else set()
        why = LOGGED_AS_TEXT
        unseen = self._unseen(filled, why, text, position)
        moved = None if unseen else moved_rows(text, session, self._server)
        if moved is not None:
            why = f"ALTER TABLE … {moved.action}, of whose rows the log has none"
            unseen = self._moved(moved, why, text, position)
        if not changes and not emptied and not unseen:
            return None
        return LoggedStatement(changes, emptied, unseen, why)

    def _changed(self, text: str, session: Session, query: Query) -> set[TableId]:
        """Return the tables whose rows a statement may change.

        A statement that calls a function, or whose names are of no known table, such as views, may change any.
        """
        named = changed_tables(text, session, self._server)
        if named is not None and not all(self._may_hide_others(name) for name in named):
            others = {name for name in named if name in self._schema.tables and not self._options.captures(*name)}
            if not others <= self._warned_of:
                self._warned_of |= others
                log.warning(
                    "a_statement_changes_rows_of_other_tables",
                    tables=sorted(".".join(name) for name in others),
                    statement=text,
                    next="if triggers or foreign keys let it change captured tables, the log has nothing of that",
                )
            return named
        return {name for name in self._schema.tables if query.databases is None or name[0] in query.databases}

    def _may_hide_others(self, name: TableId) -> bool:
        return name not in self._schema.tables and self._options.reports_database(name[0])

    def _moved(self, moved: MovedRows, why: str, text: str, position: str) -> tuple[Table, ...]:
        """Return captured tables that gain or lose rows without events.

        Where truncates are left out, rows that are only removed stay in the target: they are a truncate of a part.
        """
        if not moved.only_go or not self._options.skips("t"):
            return self._unseen(moved.tables, why, text, position)
        captured = [f"{database}.{name}" for database, name in moved.tables if self.table(database, name) is not None]
        if captured:
            log.warning(
                "rows_go_without_events",
                tables=captured,
                statement=text,
                position=position,
                next="they stay in the target, as after a TRUNCATE, which skipped.operations leaves out",
            )
        return ()

    def _unseen(self, tables: Collection[TableId], why: str, text: str, position: str) -> tuple[Table, ...]:
        """Return captured tables whose rows a statement changes without row events in the log.

        If ``inconsistent.schema.handling.mode`` accepts that, record a gap and return none. Some tools log statements
        so on purpose, for tables of their own.
        """
        found = tuple(self._schema.tables[name] for name in sorted(tables) if self.table(*name) is not None)
        mode = self._options.inconsistent_schema_handling_mode
        if not found or mode == "fail":
            return found
        place = Position.parse(position)
        names = ", ".join(f"{table.database}.{table.name}" for table in found)
        reason = f"Rows of {names} were changed by {why}."
        before = Position(place.epoch, place.file, place.transaction)
        self._gaps.add(Gap(str(before), position, reason, f"inconsistent.schema.handling.mode={mode}"))
        if mode == "warn":
            log.warning("rows_are_changed_by_a_statement", statement=text, position=position, reason=reason)
        return ()

    def _is_reported(self, change: SchemaChange) -> bool:
        if change.table is not None and self._options.history_only_captured_tables:
            return self._options.captures(*change.table)
        return not change.database or self._options.reports_database(change.database)

    def table(self, database: str, name: str) -> Table | None:
        """Return the structure of a captured table; None if it isn't known, or not captured."""
        return self._schema.tables.get((database, name)) if self._options.captures(database, name) else None


def history_files(options: BinlogOptions) -> HistoryFiles:
    """Return where the schema history is kept."""
    if not options.history_in_kafka:
        return StateDirFiles(options.state_dir, options.owner)
    try:
        from floodmark.connectors.mysql.schema_history.kafka import topic_files
    except ModuleNotFoundError as exc:
        raise client_is_missing("schema.history.internal", f"is '{options.history}'", exc) from None
    return topic_files(options)
