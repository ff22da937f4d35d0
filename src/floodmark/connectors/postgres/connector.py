"""The planner's side of the PostgreSQL connector."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import psycopg
from psycopg.rows import TupleRow

from floodmark.capture.gaps import AcceptedGaps
from floodmark.capture.log_stream import LogStream
from floodmark.capture.segment import SegmentData
from floodmark.codecs.conversions import load_converters
from floodmark.connectors.contract.base import ChunkOutcome, Connector, KeyRanges, ReadPoint, Window
from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.chunk import Chunk, DescribedTable
from floodmark.connectors.contract.table_key import TableKey
from floodmark.connectors.postgres.capture.stream import PostgresStream
from floodmark.connectors.postgres.checks.tables import silent_tables_text, too_many_tables
from floodmark.connectors.postgres.continuity.check import Continuity, StandbyError
from floodmark.connectors.postgres.continuity.published import PublicationProof, Seen
from floodmark.connectors.postgres.decode.relation import Column, Relation, as_read, key_columns
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import parse_lsn, parse_position, position
from floodmark.connectors.postgres.server import slots
from floodmark.connectors.postgres.server.attached import AttachedPartitions
from floodmark.connectors.postgres.server.catalog import (
    Table,
    captured_tables,
    silent_tables,
    stored_tables,
    structures,
)
from floodmark.connectors.postgres.server.connection import (
    MIN_VERSION,
    connect,
    connect_for_queries,
    limit_statements,
    limit_waits,
    run,
    server_version,
)
from floodmark.connectors.postgres.server.policies import check_policies
from floodmark.connectors.postgres.server.publication import NewTables, ensure_publication
from floodmark.connectors.postgres.server.replica_identity import set_identities
from floodmark.connectors.postgres.server.side_work import OldestTransaction, PostgresSideSession
from floodmark.connectors.postgres.server.structure import CatalogStructure
from floodmark.connectors.postgres.snapshot import chunks
from floodmark.connectors.postgres.snapshot.commit_log import CommitLog
from floodmark.connectors.postgres.snapshot.key_ranges import PostgresKeyRanges, key_of, message_key_of
from floodmark.connectors.postgres.snapshot.locks import lock_tables, make_lock
from floodmark.connectors.postgres.snapshot.read_point import (
    SLOT_CURE,
    PostgresReadPoint,
    create_slot,
    first_lsn,
    log_end,
)
from floodmark.connectors.postgres.snapshot.row_filters import row_filter, row_query
from floodmark.connectors.postgres.snapshot.tables import NO_FILE, WHOLE, SnapshotTables
from floodmark.connectors.postgres.snapshot.visibility import Visibility
from floodmark.connectors.postgres.snapshot.watermarks import PostgresMarks, PostgresWindow
from floodmark.connectors.postgres.wire.messages import OWN_PREFIX
from floodmark.connectors.side_statements import SideStatements
from floodmark.errors import (
    ConfigError,
    ConnectError,
    FloodmarkError,
    LogGoneError,
    SourceStateError,
    StatementTimeoutError,
)
from floodmark.logger import get_logger
from floodmark.snapshots.modes import make_query

log = get_logger(__name__)


class PostgresConnector:
    """A ``Connector``; opens its connection at the first use."""

    tasks_read = True

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        load_converters(options)
        self._tables = SnapshotTables(options, make_query(options))
        self._lock = make_lock(options)
        self._marks = PostgresMarks(options) if options.incremental_snapshot_read_points == "watermarks" else None
        self._conn: psycopg.Connection[TupleRow] | None = None
        self._capture_conn: psycopg.Connection[TupleRow] | None = None
        self.gaps = AcceptedGaps()
        self._continuity = Continuity(options)
        self._publication = PublicationProof(options, self.gaps)
        self._attached = AttachedPartitions(options)
        self._streams = self._limited = False
        self._new = NewTables()
        self._commits = CommitLog()
        self._first_xid: int | None = None
        self._half_made: set[int] = set()
        self._oldest = OldestTransaction(options)
        self._background = SideStatements(lambda: PostgresSideSession(options))

    def identity(self) -> dict[str, str]:
        """Return the server's system identifier, the database and the slot."""
        conn = connect(self._options, replication=True)
        try:
            system = run(conn, "IDENTIFY_SYSTEM", "the server's identity", SLOT_CURE)[0][0]
        finally:
            conn.close()
        self._continuity.identified(system)
        return {"system": system, "database": self._options.dbname, "slot": self._options.slot_name}

    def prepare(
        self,
        snapshot: bool,
        position: str | None,
        bookmark: dict[str, Any] | None = None,
        known: Sequence[str] = (),
    ) -> tuple[str, ReadPoint | None]:
        """Create publication and slot, or verify that the slot still holds the log from ``position`` on."""
        try:
            self._prove_log(position, bookmark)
        except StandbyError as exc:
            if position is not None:
                raise
            # A new query has no server of its own that may be about to be promoted, so it doesn't wait.
            raise SourceStateError(exc.what, exc.cure) from None
        conn = self._ordinary()
        self._check_server(conn)
        tables = captured_tables(conn, self._options)
        self._check_tables(tables, new=position is None)
        if self._marks is not None:
            self._marks.check(conn)
        late = self._publish(conn, tables)
        while late and position is None:
            # A new query must have all changes from its first position on, so all tables are published before that.
            late = ensure_publication(conn, self._options, tables)
        set_identities(conn, self._options, tables)
        slot = slots.wait_until_free(conn, self._options, self._half_made)
        if slot is not None:
            slots.check_slot(slot, self._options)
            self._continuity.prove_kept(slot)
        if position is not None:
            slots.check_position(slot, self._options, parse_position(position)[0], self.gaps)
        seen = Seen.from_json(bookmark["publication"]) if bookmark and bookmark.get("publication") else None
        self._publication.begin(conn, tables, position, seen, known)
        self._attached.begin(seen.oldest if seen is not None else None)
        with contextlib.suppress(StatementTimeoutError):
            self._attached.look(conn, tables)
        if position is not None:
            self._tables.begun = True
            return position, None
        if snapshot:
            self._check_policies(conn)
        if slot is None:
            lsn, point = create_slot(self._options, self._continuity, False, self._half_made)
        elif snapshot:
            lsn, point = create_slot(self._options, self._continuity, temporary=True)
        else:
            return _position(slot.confirmed), None
        if not snapshot:
            point.release()
            return _position(lsn), None
        return _position(lsn), self._locked(point)

    def _publish(self, conn: psycopg.Connection[TupleRow], tables: Sequence[Table]) -> frozenset[int]:
        """Publish the tables; return those that can't be published yet because another session has locked them."""
        late = ensure_publication(conn, self._options, tables)
        names = [table.full_name for table in tables if table.oid in late]
        if any(self._publication.published(name) for name in names):
            log.warning(
                "tables_are_not_published_yet",
                tables=names,
                reason="another session holds a lock on them",
                next="tried again; until then they are not captured",
            )
        return late

    def _prove_log(self, position: str | None, bookmark: dict[str, Any] | None = None) -> None:
        """Verify that the server has the log that a checkpoint's position belongs to, and is not a standby."""
        if position is not None:
            self._continuity.resume(position, bookmark)
        conn = connect(self._options, replication=True)
        try:
            self._continuity.prove(conn)
        finally:
            conn.close()

    def check_planned(self, position: str, bookmark: dict[str, Any] | None) -> None:
        """Verify that the log still holds what an earlier process planned up to a position."""
        self._prove_log(position, bookmark)

    def bookmark(self, position: str) -> dict[str, Any]:
        """Return what identifies the log before a position; verify that the publication left nothing out of it."""
        marks = self._continuity.bookmark(position)
        self.prove_complete(position)
        seen = self._publication.seen
        return {**marks, "publication": seen.to_json() if seen is not None else None}

    def prove_complete(self, position: str, ends: bool = False) -> None:
        """Verify that the publication has left nothing out of the log."""
        if not (ends or self._publication.due):
            return
        # If the server can't be reached, the checkpoint keeps what the last check saw.
        with contextlib.suppress(ConnectError, StatementTimeoutError):
            conn = self._ordinary()
            if self._publication.outdated(conn, position) or ends:
                tables = captured_tables(conn, self._options)
                self._publication.follow(conn, tables)
                self._attached.look(conn, tables)

    def discard_lost_log(self) -> None:
        """Drop the slot if the server has invalidated it, or has removed log that it needs."""
        slot = slots.wait_until_free(self._ordinary(), self._options)
        if slot is not None and (slot.invalidated or not self._is_kept(slot)):
            slots.drop_slot(self._ordinary(), slot.name)

    def _is_kept(self, slot: slots.Slot) -> bool:
        try:
            self._continuity.prove_kept(slot)
        except LogGoneError:
            return False
        return True

    def read_point(self, begins: bool = False) -> ReadPoint:
        """Open a read point at the end of the log; waits for all transactions that are writing."""
        del begins
        self._check_policies(self._ordinary())
        return self._locked(create_slot(self._options, self._continuity, temporary=True)[1])

    def _locked(self, point: PostgresReadPoint) -> PostgresReadPoint:
        """Lock the snapshot's tables in the transaction that holds the read point."""
        if self._lock is not None:
            readings = self._tables.readings(self._ordinary())
            lock_tables(point, self._options, self._lock, [reading.stored.quoted for reading in readings])
        return point

    def fresh_point(self) -> PostgresReadPoint:
        """Open a read point without waiting for transactions; it is not settled yet."""
        point = PostgresReadPoint(self._options)
        self._prove_point(point)
        if not point.flushed:
            self._flush_log()
        return point

    def _prove_point(self, point: PostgresReadPoint) -> None:
        """Verify that a view of the tables is one of the server whose log is read."""
        if not self._continuity.same_place(point.token["place"]):
            point.release()
            raise ConnectError("The connections to PostgreSQL lead to different servers.")

    def open_window(self, after: str) -> Window | None:
        """Write a window's first watermark to the signal table, and take a snapshot after it."""
        assert self._marks is not None
        conn = self._ordinary()
        if not self._shows(conn, first_lsn(after)):
            return None
        mark = self._marks.open(conn)
        window = PostgresWindow(self._options, mark, log_end(conn)[0])
        self._prove_point(window)
        return window

    def _shows(self, conn: psycopg.Connection[TupleRow], lsn: int) -> bool:
        """Return whether everything that was committed before an LSN, as far as capture knows, is visible."""
        text = run(conn, "SELECT pg_current_snapshot()::text", "the running transactions")[0][0]
        return self._commits.first_hidden(Visibility.parse(text), frozenset(), lsn, lsn) == lsn

    def window_rows(self, window: ReadPoint, chunk: Chunk) -> Generator[SegmentData, None, ChunkOutcome]:
        """Return the rows of a chunk as the window sees them, in COPY's text format."""
        assert isinstance(window, PostgresWindow)
        return window.rows(chunk)

    def close_window(self, window: Window) -> None:
        """Write the window's second watermark to the signal table."""
        assert isinstance(window, PostgresWindow)
        assert self._marks is not None
        window.end_view()
        conn = self._ordinary()
        self._marks.close(conn, window.mark)
        lsn, flushed = log_end(conn)
        window.close(lsn)
        if not flushed:
            self._flush_log()

    def _flush_log(self) -> None:
        """Make the server write its log to disk, which it puts off for many seconds while there are no commits."""
        conn = self._ordinary()
        try:
            run(conn, "SET synchronous_commit = local", "the session's commits")
            run(conn, f"SELECT pg_logical_emit_message(true, '{OWN_PREFIX}', '')", "flushing the log")
        except SourceStateError as exc:
            log.info("log_is_not_flushed", error=str(exc))

    def settle(self, point: ReadPoint, after: str) -> bool:
        """Find the exact position of a fresh read point."""
        assert isinstance(point, PostgresReadPoint)
        visible = point.visible
        doubtful: frozenset[int] = frozenset()
        if point.waiting is None:
            # Any transaction that was running when this process began may have been committed before capture began.
            if self._first_xid is None:
                row = run(self._ordinary(), "SELECT pg_current_xact_id()::text::int8", "a transaction's number")[0]
                self._first_xid = int(row[0])
            if visible.oldest < self._first_xid:
                return False
        else:
            waiting = np.array(sorted(point.waiting), np.int64)
            doubtful = frozenset(visible.full(waiting)[~visible.sees(waiting)].tolist())
        return point.settle(self._commits, doubtful, after)

    def delivered(self, position: str) -> None:
        """Record that the log was delivered up to ``position``; forget transactions that no read point needs."""
        self._continuity.deliver(parse_position(position)[0])
        if self._commits.large:
            text = run(self._ordinary(), "SELECT pg_current_snapshot()::text", "the running transactions")[0][0]
            self._commits.compact(Visibility.parse(text), first_lsn(position))

    def current_position(self) -> str:
        """Return the end of the log that is on the server's disk."""
        row = run(self._ordinary(), "SELECT pg_current_wal_flush_lsn()::text", "the end of the log")[0]
        return _position(parse_lsn(row[0]))

    def lag_bytes(self, position: str) -> int:
        """Return how many bytes of log lie between a position and the end of the log."""
        return max(parse_position(self.current_position())[0] - parse_position(position)[0], 0)

    def snapshot_tables(self) -> list[CapturedTable]:
        """Return the tables that hold captured rows, with their pages."""
        conn = self._ordinary()
        readings = self._tables.readings(conn)
        whole = {reading.stored.oid for reading in readings if reading.statement is not None}
        found = self._described([(reading.stored, reading.published) for reading in readings])
        return [replace(table, file=NO_FILE, units=WHOLE) if table.oid in whole else table for table in found]

    def announcements(self, position: str, token: dict[str, Any]) -> list[dict[str, Any]]:
        """Return no events: PostgreSQL's log doesn't hold the statements that change structures."""
        del position, token
        return []

    def follow_tables(self, known: Collection[str]) -> frozenset[str]:
        """Update a ``filtered`` publication; return the new tables that can't be taken over yet."""
        conn = self._ordinary()
        tables = captured_tables(conn, self._options)
        if self._options.publication_autocreate_mode == "filtered":
            self._publish(conn, tables)
        self._publication.follow(conn, tables, known)
        if self._options.publication_autocreate_mode == "all_tables":
            return frozenset()
        pairs = stored_tables(conn, self._options)
        unpublished = {
            table.oid for pair in pairs for table in pair if not self._publication.published(table.full_name)
        }
        new = {table.oid for pair in pairs if pair[1].full_name not in known for table in pair} - unpublished
        waited = unpublished | self._new.unsettled(conn, new)
        return frozenset(pair[1].full_name for pair in pairs if any(table.oid in waited for table in pair))

    def tables(self, sized: bool = False) -> list[CapturedTable]:
        """Return all tables that hold captured rows, whatever the initial snapshot reads of them.

        One that was created since and isn't published yet is left out until it is: its changes are not in the log.
        """
        return self._described(self._captured(), sized)

    def table_names(self) -> list[str]:
        """Return the names under which the changes of all captured tables come."""
        return [published.full_name for _, published in self._captured()]

    def _captured(self) -> list[tuple[Table, Table]]:
        pairs = stored_tables(self._ordinary(), self._options)
        return [pair for pair in pairs if self._publication.published(pair[1].full_name)]

    def _described(self, tables: Sequence[tuple[Table, Table]], sized: bool = True) -> list[CapturedTable]:
        conn = self._ordinary()
        oids = [table.oid for table, _ in tables]
        # Reading a table's size waits for sessions that alter the table.
        sizes = chunks.table_pages(conn, oids) if sized else dict.fromkeys(oids, 0)
        files = chunks.fingerprints(conn, oids)
        return [
            CapturedTable(
                name=table.full_name,
                published=published.full_name,
                oid=table.oid,
                logged=published.oid,
                file=files[table.oid],
                units=sizes[table.oid],
                rows=table.rows,
            )
            for table, published in tables
            if table.oid in sizes and table.oid in files
        ]

    def key_of(self, oid: int, surrogate: str | None) -> TableKey | None:
        """Return the columns that a table is cut by; None if there are none."""
        found = key_of(self._ordinary(), oid, surrogate)
        # Rows read between watermarks are compared with the log by the table's own key, so there it must have one.
        if found is None and surrogate is None and self._options.message_key_columns and self._marks is None:
            found = message_key_of(self._ordinary(), oid, self._options)
        return found

    def fingerprints(self, oids: Sequence[int]) -> dict[int, str]:
        """Return texts that change when tables are rewritten or altered; tables that are gone are left out."""
        return chunks.fingerprints(self._ordinary(), oids)

    def key_ranges(self, point: ReadPoint, oid: int, key: TableKey, condition: str) -> KeyRanges:
        """Return a table as a read point sees it, to be cut by its key."""
        assert isinstance(point, PostgresReadPoint)
        rows = run(
            self._ordinary(),
            "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c "
            f"JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = {oid}",
            "the name of a table",
        )
        if not rows:
            raise SourceStateError(f"The table with OID {oid} does not exist any more.")
        return PostgresKeyRanges(point, rows[0][0], key, condition)

    def row_filter(self, oid: int, condition: str) -> str:
        """Return a signal's condition on the rows of a table as SQL that can do nothing else."""
        return row_filter(self._ordinary(), self._one(oid), condition, self._options)

    def row_query(self, oid: int, statement: str) -> str:
        """Return a blocking signal's statement on a table as SQL that reads its rows and can do nothing else."""
        return row_query(self._ordinary(), self._one(oid), statement, self._options)

    def _one(self, oid: int) -> DescribedTable:
        found = self.describe([oid]).get(oid)
        if found is None:
            raise SourceStateError(f"The table with OID {oid} does not exist any more.")
        return found

    def cuts(self, point: ReadPoint, oid: int, count: int) -> list[list[str]]:
        """Return no keys: tasks read the tables, by ranges of pages."""
        del point, oid, count
        return []

    def chunk_units(self) -> int:
        """Return how many pages make a chunk of ``snapshot.chunk.bytes``."""
        return max(self._options.snapshot_chunk_bytes // chunks.block_size(self._ordinary()), 1)

    def describe(self, oids: Sequence[int]) -> dict[int, DescribedTable]:
        """Return tables as chunks name them; their ``structure`` is the ``Relation`` that events have."""
        conn = self._ordinary()
        own = self._tables.with_statements(conn)
        pairs = {table.oid: (table, published) for table, published in stored_tables(conn, self._options)}
        pairs |= {oid: (reading.stored, reading.published) for oid, reading in own.items()}
        wanted = [oid for oid in oids if oid in pairs]
        columns = chunks.describe_tables(
            conn, sorted({pairs[oid][1].oid for oid in wanted}), self._options.publication_name
        )
        types = {oid: {int(column[1]) for column in listed} for oid, listed in columns.items()}
        known = structures(conn, types)
        result = {}
        for oid in wanted:
            table, published = pairs[oid]
            relation = as_read(_relation(published, columns[published.oid], known[published.oid]), self._options)
            result[oid] = DescribedTable(oid, table.quoted, relation, own[oid].statement if oid in own else None)
        return result

    def oldest_transaction(self) -> int | None:
        """Return the slot's oldest transaction, as of at most ``xmin.fetch.interval.ms`` ago."""
        if self._oldest.wanted:
            # If the server can't be reached, the last known number is good enough.
            with contextlib.suppress(ConnectError):
                self._oldest.fetch(self._ordinary())
        return self._oldest.known

    def execute_in_background(self, statement: str) -> None:
        """Run a statement without waiting for it."""
        self._background.run(statement)

    def log_stream(self) -> LogStream:
        """Return a new replication stream."""
        self._streams = True
        return PostgresStream(self._options, self._catalog, self._commits, self._continuity, self.gaps)

    def stop(self) -> None:
        """Close the connections; drop the slot if ``slot.drop.on.stop`` is set."""
        if self._options.slot_drop_on_stop and self._conn is not None:
            try:
                slots.wait_until_free(self._conn, self._options)
                slots.drop_slot(self._conn, self._options.slot_name)
            except FloodmarkError:
                pass
        self._background.stop()
        for conn in (self._conn, self._capture_conn):
            if conn is not None:
                conn.close()
        self._conn = self._capture_conn = None

    def _ordinary(self) -> psycopg.Connection[TupleRow]:
        if self._conn is None or self._conn.closed or self._conn.broken:
            self._conn = self._connect()
            limit_waits(self._conn, self._options)
            self._limited = False
        if self._streams and not self._limited:
            limit_ms = self._options.snapshot_statement_timeout_ms
            limit_statements(self._conn, min(self._options.query_timeout_ms or limit_ms, limit_ms))
            self._limited = True
        return self._conn

    def _catalog(self) -> psycopg.Connection[TupleRow]:
        """Return the capture thread's own connection for catalog look-ups."""
        if self._capture_conn is None or self._capture_conn.closed or self._capture_conn.broken:
            self._capture_conn = self._connect()
        return self._capture_conn

    def _connect(self) -> psycopg.Connection[TupleRow]:
        """Open an ordinary connection to the server whose log is read: an address may lead to another one by now."""
        conn = connect_for_queries(self._options)
        try:
            if not self._continuity.leads_here(conn):
                self._prove_log(None)
                if not self._continuity.leads_here(conn):
                    raise ConnectError("The connections to PostgreSQL lead to different servers.")
        except BaseException:
            conn.close()
            raise
        return conn

    def _check_policies(self, conn: psycopg.Connection[TupleRow]) -> None:
        stored = [reading.stored for reading in self._tables.readings(conn) if reading.statement is None]
        check_policies(conn, stored)

    def _check_server(self, conn: psycopg.Connection[TupleRow]) -> None:
        if server_version(conn) < MIN_VERSION:
            raise SourceStateError(
                f"The server is PostgreSQL {server_version(conn)}; {MIN_VERSION} or later is needed.",
                "Upgrade the server.",
            )
        level = run(conn, "SHOW wal_level", "wal_level")[0][0]
        if level != "logical":
            raise SourceStateError(
                f"The server's wal_level is '{level}'; capture needs 'logical'.",
                "ALTER SYSTEM SET wal_level = 'logical' and restart the server.",
            )
        role = run(
            conn,
            "SELECT rolsuper OR rolreplication OR EXISTS (SELECT FROM pg_roles managed WHERE managed.rolname = "
            "'rds_replication' AND pg_has_role(current_user, managed.oid, 'member')) "
            "FROM pg_roles WHERE rolname = current_user",
            "the role",
        )
        if not role[0][0]:
            raise SourceStateError(
                f"The role '{self._options.user}' may not replicate.",
                f'ALTER ROLE "{self._options.user}" REPLICATION.',
            )

    def _check_tables(self, tables: Sequence[Table], new: bool) -> None:
        excess = too_many_tables(len(tables), self._options)
        if excess:
            if self._options.guardrail_collections_limit_action == "fail":
                raise ConfigError(excess, "Narrow the filters, or raise the limit.")
            log.warning("too_many_tables", text=excess)
        via_root = self._options.publish_via_partition_root
        silent = silent_tables(tables, via_root) if self._options.table_include_list else []
        if silent:
            text, fix = silent_tables_text([table.full_name for table in silent], via_root)
            if new and len(silent) == len(tables):
                raise SourceStateError(f"No changes would be captured. {text}", fix)
            log.warning("tables_capture_nothing", text=text, cure=fix)
        if tables or not self._options.table_include_list:
            return
        patterns = ", ".join(pattern.pattern for pattern in self._options.table_include_list)
        raise SourceStateError(
            f"No table of the database '{self._options.dbname}' matches table.include.list ({patterns}).",
            "Its items are regular expressions of whole names, schema.table; check them and the role's rights.",
        )


def _relation(table: Table, columns: Sequence[tuple[Any, ...]], structure: CatalogStructure) -> Relation:
    made = tuple(
        Column(name, oid, modifier, name in structure.identity, not required, structure.defaults.get(name))
        for name, oid, modifier, required in columns
    )
    indexed = table.replica_identity == "i" and structure.identity
    key = key_columns("i" if indexed else "f", made, structure.key)
    return Relation(table.oid, table.schema, table.name, table.replica_identity, made, key, structure.types)


def _position(lsn: int) -> str:
    return position(lsn)


def make_connector(options: PostgresOptions) -> Connector:
    """Return the planner's side of a source."""
    return PostgresConnector(options)
