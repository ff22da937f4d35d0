"""Opens read points: exported snapshots whose position in the log is exact.

There are two ways to one. Creating a logical slot exports the snapshot that belongs to its consistent point:
all transactions whose commit record lies before it are visible, none after. The server decides by the log, so
that holds under synchronous replication too; but it waits for all transactions that are writing. The snapshot of an
ordinary transaction waits for none; its position is found afterwards, by the numbers of the transactions that the log
holds. If it has none, because commits became visible in another order than that of the log, another snapshot is taken.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg
from psycopg.rows import TupleRow

from floodmark.connectors.postgres.continuity.check import PLACE, Continuity
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import parse_lsn, parse_position, position
from floodmark.connectors.postgres.server.connection import connect, connection, limit_statements, run
from floodmark.connectors.postgres.server.slots import create_command
from floodmark.connectors.postgres.snapshot.commit_log import CommitLog
from floodmark.connectors.postgres.snapshot.token import ReadPointToken
from floodmark.connectors.postgres.snapshot.visibility import Visibility
from floodmark.errors import ConnectError, FloodmarkError
from floodmark.json_data import Json
from floodmark.logger import get_logger

log = get_logger(__name__)

WAIT_LOGGED_S = 5.0
PAGE = 8192
HEADERS = (24, 40)

SLOT_CURE = (
    "Check that the role has REPLICATION, that wal_level is logical, and that a slot and a walsender are free "
    "(max_replication_slots, max_wal_senders)."
)


class PostgresReadPoint:
    """A snapshot held by a connection of its own.

    Attributes:
        position: log position of the snapshot; of one that isn't settled yet, what the log must have reached
            before it can be.
        flushed: whether the log was on disk up to the position, and so is on its way to capture.
        waiting: transactions whose commit waited for a standby just before, 32 bits; None if unknown.
    """

    def __init__(self, options: PostgresOptions, snapshot: str | None = None, lsn: int | None = None) -> None:
        """Open the snapshot.

        Args:
            options: the source's options.
            snapshot: an exported snapshot to import; a new one if not given.
            lsn: the snapshot's exact position in the log, if it is known.
        """
        self._limit_ms = options.snapshot_statement_timeout_ms
        self._conn: psycopg.Connection[TupleRow] = connect(options)
        # A commit that begins to wait after this query is received by capture, before the point is settled.
        self.waiting = None if snapshot is not None else _waiting_commits(self._conn)
        run(self._conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "opening the snapshot")
        if snapshot is not None:
            run(self._conn, f"SET TRANSACTION SNAPSHOT '{snapshot}'", "importing the snapshot")
        row = run(
            self._conn,
            "SELECT pg_export_snapshot(), pg_current_snapshot()::text, "
            "(pg_snapshot_xmax(pg_current_snapshot())::text::numeric % 4294967296)::int8, "
            "(extract(epoch FROM clock_timestamp()) * 1000000)::int8, "
            "pg_current_wal_insert_lsn()::text, pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn(), "
            f"{PLACE}",
            "exporting the snapshot",
        )[0]
        exported = _reachable(parse_lsn(row[4])) if lsn is None else lsn
        self._token = ReadPointToken(row[0], row[1], row[2], row[3], exported, row[6])
        self.flushed: bool = row[5]
        self._settle(exported)

    def _settle(self, lsn: int) -> None:
        self.position = position(lsn)
        self._token = replace(self._token, lsn=lsn)

    @property
    def visible(self) -> Visibility:
        """What the snapshot sees."""
        return Visibility.parse(self._token.visible)

    @property
    def token(self) -> dict[str, Json]:
        """What a chunk needs to read from it: a ``ReadPointToken`` as JSON data."""
        return self._token.to_json()

    @property
    def snapshot(self) -> str:
        """What it sees, as ``pg_current_snapshot()`` prints it."""
        return self._token.visible

    @property
    def place(self) -> str | None:
        """The server and its timeline."""
        return self._token.place

    def settle(self, commits: CommitLog, doubtful: frozenset[int], after: str) -> bool:
        """Find the exact position, once the log has been received up to the preliminary one.

        Args:
            commits: the transactions that the log holds.
            doubtful: transactions that may have been committed before capture began, though they are not visible.
            after: up to here the log has been delivered, so the position must not lie before.

        Returns:
            False if there is none: take another read point.
        """
        # The log may have been delivered up to the end of a page's header, while the point lies before the header.
        lsn = commits.cut(self.visible, doubtful, _reachable(first_lsn(after)), self._token.lsn)
        if lsn is None:
            return False
        self._settle(lsn)
        return True

    def query(self, statement: str, doing: str, cure: str = "") -> list[TupleRow]:
        """Run a statement that sees the snapshot; an error doesn't end the snapshot."""
        return self._inside(statement, doing, cure, undo=False)

    def probe(self, statement: str, doing: str) -> list[TupleRow]:
        """Run a statement that sees the snapshot, and keep no lock on what it reads; the stream waits for it.

        With a lock, a session that alters the table would wait until the snapshot ends, and the tasks that read the
        table would wait for that session.
        """
        return self._inside(statement, doing, "", undo=True)

    def _inside(self, statement: str, doing: str, cure: str, undo: bool) -> list[TupleRow]:
        try:
            with self._conn.transaction(force_rollback=undo):
                if undo:
                    limit_statements(self._conn, self._limit_ms, local=True)
                return run(self._conn, statement, doing, cure)
        except psycopg.OperationalError as exc:
            # The savepoint found the connection lost.
            raise ConnectError(f"Lost the connection to PostgreSQL while {doing}: {exc}.") from None

    def alive(self) -> bool:
        """Return whether other connections can still import the snapshot."""
        try:
            run(self._conn, "SELECT 1", "checking the snapshot")
        except FloodmarkError:
            return False
        return True

    def release(self) -> None:
        """End the transaction that holds the snapshot."""
        self._conn.close()


def _reachable(lsn: int) -> int:
    """Return the LSN that the log reaches when everything before an insert position is written.

    At the start of a page, the insert position lies behind the page's header, which no record needs yet.
    """
    return lsn - lsn % PAGE if lsn % PAGE in HEADERS else lsn


def log_end(conn: psycopg.Connection[TupleRow]) -> tuple[int, bool]:
    """Return the LSN that the log reaches when all of it is received, and whether all of it is on disk."""
    statement = "SELECT pg_current_wal_insert_lsn()::text, pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()"
    lsn, flushed = run(conn, statement, "the end of the log")[0]
    return _reachable(parse_lsn(lsn)), bool(flushed)


def first_lsn(after: str) -> int:
    """Return the lowest LSN of a read point that doesn't lie before a log position."""
    lsn, ordinal = parse_position(after)
    return lsn + (ordinal > 0)


def _waiting_commits(conn: psycopg.Connection[TupleRow]) -> frozenset[int] | None:
    """Return the transactions whose commit waits for a standby; None if the role may not see them."""
    none_waits, informed, waiting = run(
        conn,
        "SELECT current_setting('synchronous_standby_names') = '', "
        "pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'), "
        "ARRAY(SELECT backend_xid::text::int8 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_xid IS "
        "NOT NULL)",
        "the commits that wait for standbys",
    )[0]
    if none_waits:
        return frozenset()
    return frozenset(waiting) if informed else None


def create_slot(
    options: PostgresOptions, continuity: Continuity, temporary: bool, half_made: set[int] | None = None
) -> tuple[int, PostgresReadPoint]:
    """Create a slot and open the read point at its consistent point.

    The server waits for all transactions that are writing to end; a wait is logged.

    Args:
        options: the source's options.
        continuity: verifies first that the connection leads to the log that is read.
        temporary: whether the slot is dropped when this function returns.
        half_made: gets the server process that may still be creating the slot if the connection to it is lost. The
            server doesn't notice the loss before those transactions have ended.

    Raises:
        SourceStateError: the server refuses.
    """
    name = f"floodmark_tmp_{uuid.uuid4().hex[:20]}" if temporary else options.slot_name
    conn = connect(options, replication=True)
    pid = conn.info.backend_pid
    try:
        continuity.prove(conn)
        command = create_command(conn, name, temporary, options.slot_failover)
        with _watched(options, name, pid):
            row = run(conn, command, f"the creation of the replication slot '{name}'", SLOT_CURE)[0]
        lsn = parse_lsn(row[1])
        return lsn, PostgresReadPoint(options, row[2], lsn)
    except ConnectError:
        if half_made is not None:
            half_made.add(pid)
        raise
    finally:
        conn.close()


@contextmanager
def _watched(options: PostgresOptions, name: str, pid: int) -> Iterator[None]:
    """Log, every few seconds, which server processes the creation of a slot waits for."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(WAIT_LOGGED_S):
            try:
                with connection(options) as conn:
                    blocking = run(conn, f"SELECT pg_blocking_pids({pid})", "what the slot waits for")[0][0]
            except FloodmarkError:
                continue
            log.warning("slot_creation_waits", slot=name, for_transactions_of=blocking)

    watcher = threading.Thread(target=watch, name="floodmark-slot", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
