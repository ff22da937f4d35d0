"""Opens read points: views of the tables whose positions in the log are known.

The positions are found without a lock:

- *MariaDB* reports the position of each view (``binlog_snapshot_position``). XA COMMIT is the exception: it is in the
  log, before that position, a moment before it is visible. So a view counts only if no branch was prepared before it
  was opened and no XA COMMIT began meanwhile. Otherwise it is opened under a short global read lock, which waits for
  XA COMMITs that are running.
- *MySQL with GTIDs*: a transaction owns its GTID from before it is written to the log until after it is committed in
  the engine. So if the end of the log is read, then no transaction owns a GTID, then the views are opened, and then
  the log still ends there, the views show all that is in the log and nothing else.

Where neither works, because GTIDs are off or transactions commit without a pause, the views are opened under a short
global read lock if ``snapshot.locking.mode`` allows it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import pymysql
from pymysql.constants import COMMAND, ER

from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.reading.file_marks import refuse_an_earlier_end
from floodmark.connectors.mysql.schema.catalog import read_schema
from floodmark.connectors.mysql.server.binlogs import NO_BINLOG, LogEnd, gtids_before, log_end, split_name
from floodmark.connectors.mysql.server.connection import (
    Connection,
    close,
    limit_locks,
    limit_statements,
    limited,
    run,
    statement_error,
)
from floodmark.connectors.mysql.snapshot.definitions import Announced, Definitions
from floodmark.connectors.mysql.snapshot.read_point import DOING, MysqlReadPoint
from floodmark.connectors.mysql.structures.session import Server
from floodmark.errors import LockTimeoutError, SourceStateError
from floodmark.logger import get_logger

log = get_logger(__name__)

TRY_S = 2.0
BRIEF_TRY_S = 0.2
STRUCTURE_TRIES = 10
STRUCTURE_S = 20.0
STRUCTURE_LOCKED_MS = 1000
PAUSE_S = 0.0003
LET_THROUGH_S = 0.2
OWNERS_S = 2.0
_TIMED_OUT = f"error {ER.LOCK_WAIT_TIMEOUT}"
BEGIN = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
LOCK_CURE = (
    "Grant the account RELOAD, so that a read point can be taken under a short FLUSH TABLES WITH READ LOCK, or set "
    "gtid_mode=ON on the server."
)


@dataclass
class _Sessions:
    """The connections of a read point that is being opened.

    Attributes:
        low: the place in the log before which all is visible, if it is not the views' own.
        taken: the connections that stay open.
    """

    control: Connection
    views: list[Connection]
    low: LogEnd | None = None
    taken: list[Connection] = field(default_factory=list)


class ReadPoints:
    """Opens read points.

    Args:
        connect: opens an ordinary connection.
        server: the server.
        position_of: converts a place in the log to a position.
        locking: the option ``snapshot.locking.mode``.
        lock_timeout_s: how long a lock may be waited for.
        reached: a position that the log has reached, so that no view may lie before it; empty: none is known.
        moved: returns whether the log has gone on at another server since a position.
        limit_ms: how long a statement may take while the stream waits for it, in milliseconds.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        server: Server,
        position_of: Callable[[LogEnd], str],
        locking: str = "minimal",
        lock_timeout_s: int = 10,
        reached: str = "",
        moved: Callable[[str], bool] = lambda _: False,
        limit_ms: int = 5000,
    ) -> None:
        self._connect = connect
        self._server = server
        self._position_of = position_of
        self._locking = locking
        self._lock_timeout_s = max(lock_timeout_s, 1)
        self._reached = reached
        self._moved = moved
        self._limit_ms = limit_ms

    def open(self, views: int, may_lock: bool = True, definitions: Definitions | None = None) -> MysqlReadPoint | None:
        """Open an exact read point.

        Args:
            views: how many connections may read at a time; the read point may get fewer.
            may_lock: whether a global lock may be taken, as far as ``snapshot.locking.mode`` allows. If not, the
                point is one of many that are each held for a moment.
            definitions: reads the statements that create the tables, if they are announced.

        Returns:
            None if a lock would be needed and ``may_lock`` is false.

        Raises:
            SourceStateError: none can be opened on the server.
        """
        with self._sessions(views, limited=not may_lock) as sessions:
            control, conns = sessions.control, sessions.views
            if may_lock and self._locking == "extended":
                return self._locked_with_schema(sessions, definitions, kept=True)
            if may_lock:
                return self._with_schema(sessions, definitions)
            place = self._begin(control, conns, may_lock)
            return None if place is None else self._made(sessions, None, place)

    def open_window(self) -> MysqlReadPoint:
        """Open a view whose place in the log lies between two known ones: the window's beginning and its position.

        All that was in the log at the first place is visible, and nothing that came after the second.

        Raises:
            SourceStateError: the server has no GTIDs, or a transaction stays in its commit.
        """
        with self._sessions(1, limited=True) as sessions:
            control = sessions.control

            sessions.low = self.end_of_log(control)
            self._wait_for_owners(control)
            self._start(sessions.views)
            return self._made(sessions, None, self.end_of_log(control))

    def open_view(self) -> MysqlReadPoint:
        """Open a view after a watermark that was written to the log, whose position the caller knows.

        All before the watermark is visible then: transactions are committed in the log's order, or else those that own
        GTIDs are waited for.
        """
        with self._sessions(1, limited=True) as sessions:
            if self._has_gtids(sessions.control):
                self._wait_for_owners(sessions.control)
            elif self._server.mariadb and self._prepared(sessions.control):
                # The watermark may be visible before an XA COMMIT that precedes it in the log.
                with self._locked(sessions.control):
                    pass
            self._start(sessions.views)
            return self._made(sessions, None, self.end_of_log(sessions.control))

    def _with_schema(self, sessions: _Sessions, definitions: Definitions | None) -> MysqlReadPoint:
        """Open views while the tables' structures stay as they are, so that the views show them."""
        control = sessions.control
        until = time.monotonic() + STRUCTURE_S
        tries = 0
        while tries < STRUCTURE_TRIES or time.monotonic() < until:
            tries += 1
            try:
                before = read_schema(control, self._server)
                if definitions is not None and not definitions.read(control, before):
                    continue
                place = self._begin(control, sessions.views, may_lock=True)
                assert place is not None
                if read_schema(control, self._server) == before:
                    return self._made(sessions, before, place, definitions)
            except LockTimeoutError:
                if time.monotonic() > until:
                    raise
        if self._locking == "none":
            raise SourceStateError(
                "The structures of the tables change all the time.",
                "Start the query when no DDL runs on the server, or set snapshot.locking.mode=minimal, which locks for "
                "a moment.",
            )
        log.info("read_point_takes_a_lock", reason="the structures of the tables change all the time")
        try:
            return self._locked_with_schema(sessions, definitions, kept=False)
        finally:
            run(control, "UNLOCK TABLES", DOING)

    def _locked_with_schema(self, sessions: _Sessions, definitions: Definitions | None, kept: bool) -> MysqlReadPoint:
        """Open views under a global lock, which is kept with them or left to the caller."""
        control = sessions.control
        self._lock(control)
        schema = read_schema(control, self._server)
        if definitions is not None:
            definitions.read(control, schema)
        place = self._begin_locked(control, sessions.views)
        sessions.taken = [control] if kept else []
        return self._made(sessions, schema, place, definitions)

    def end_of_log(self, conn: Connection) -> LogEnd:
        """Return the end of the log."""
        return log_end(conn, self._server.flavor, self._server.version)

    def _made(
        self, sessions: _Sessions, schema: Schema | None, place: LogEnd, definitions: Definitions | None = None
    ) -> MysqlReadPoint:
        low, position = (self._position_of(one) for one in (sessions.low or place, place))
        announced: Announced | None = None
        if definitions is not None and schema is not None:
            announced = definitions.announced(sessions.control, schema)
        lock = sessions.control if sessions.taken else None
        sessions.taken = [*sessions.taken, *sessions.views]
        brief = partial(limited, flavor=self._server.flavor, millis=self._limit_ms)
        return MysqlReadPoint(sessions.views, lock, schema, place, position, low, announced, self._moved, brief)

    @contextmanager
    def _sessions(self, views: int, limited: bool = False) -> Iterator[_Sessions]:
        """Open connections, and close those that no read point has taken.

        Args:
            views: how many connections see the view.
            limited: whether the stream waits for what is read over them.
        """
        opened: list[Connection] = []
        sessions = None
        try:
            while len(opened) <= views:
                opened.append(self._connect())
            for conn in opened:
                run(conn, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", DOING)
                # The server's global limit would end the reading.
                limit_statements(conn, self._server.flavor, self._limit_ms if limited else 0)
                if limited:
                    limit_locks(conn, self._limit_ms // 2)
                if self._server.mariadb:
                    run(conn, "SET SESSION idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0", DOING)
                    # Otherwise MariaDB's rollback keeps locks of tables. BINLOG ADMIN is needed to set it.
                    with contextlib.suppress(SourceStateError):
                        run(conn, "SET SESSION sql_log_bin = 0", DOING)
            if not limited:
                # It reads the structures of all tables, repeatedly.
                limit_locks(opened[0], STRUCTURE_LOCKED_MS)
            refuse_an_earlier_end(self._position_of(self.end_of_log(opened[0])), self._reached)
            sessions = _Sessions(opened[0], opened[1:])
            yield sessions
        finally:
            taken = [] if sessions is None else sessions.taken
            for conn in opened:
                if conn not in taken:
                    close(conn)

    def _begin(self, control: Connection, conns: list[Connection], may_lock: bool) -> LogEnd | None:
        """Open the views; return their place in the log, or None if that needs a lock that may not be taken."""
        place = (
            self._begin_mariadb(control, conns, may_lock)
            if self._server.mariadb
            else self._begin_mysql(control, conns, TRY_S if may_lock else BRIEF_TRY_S)
        )
        if place is not None or not may_lock:
            return place
        if self._locking == "none":
            raise SourceStateError(
                "No exact read point was found: the server has GTIDs off, or transactions end all the time.",
                "Set gtid_mode=ON on the server, or snapshot.locking.mode=minimal, which locks for a moment.",
            )
        log.info("read_point_takes_a_lock")
        with self._locked(control):
            return self._begin_locked(control, conns)

    @contextmanager
    def _locked(self, control: Connection) -> Iterator[None]:
        """Hold a global read lock for a moment."""
        try:
            self._lock(control)
            yield
        finally:
            run(control, "UNLOCK TABLES", DOING)

    def _begin_mysql(self, control: Connection, conns: list[Connection], try_s: float) -> LogEnd | None:
        if not self._has_gtids(control):
            return None
        until = time.monotonic() + try_s
        while True:
            before = self.end_of_log(control)
            if not self._owners(control):
                self._start(conns)
                after = self.end_of_log(control)
                if _same(after, before):
                    # All of the log is committed by now. The first end may lack GTIDs of transactions that had just
                    # been written to the log: they would come again at another server.
                    return after
            if time.monotonic() > until:
                return None
            time.sleep(PAUSE_S)

    def _has_gtids(self, control: Connection) -> bool:
        if self._server.mariadb:
            return False
        return bool(run(control, "SELECT @@GLOBAL.gtid_mode", "the server's settings")[0][0] == "ON")

    def _owners(self, control: Connection) -> str:
        return str(run(control, "SELECT @@GLOBAL.gtid_owned", "the running transactions")[0][0] or "")

    def _wait_for_owners(self, control: Connection) -> None:
        """Wait until all transactions that own a GTID now are committed."""
        if not self._has_gtids(control):
            raise SourceStateError(
                "Incremental snapshots on MySQL need GTIDs, or a signal table that can be written.",
                "Set gtid_mode=ON on the server, or incremental.snapshot.read.points=watermarks.",
            )
        running = _gtids(self._owners(control))
        until = time.monotonic() + OWNERS_S
        while running:
            running &= _gtids(self._owners(control))
            if time.monotonic() > until:
                raise SourceStateError(
                    "A transaction stays in its commit, so what a view of the tables shows can't be determined.",
                    "Set incremental.snapshot.read.points=watermarks.",
                )
            time.sleep(PAUSE_S)

    def _begin_mariadb(self, control: Connection, conns: list[Connection], may_lock: bool) -> LogEnd | None:
        until = time.monotonic() + (TRY_S if may_lock else BRIEF_TRY_S)
        while True:
            commits = self._xa_commits(control)
            if self._prepared(control):
                return self._begin_beside_prepared(control, conns)
            self._start(conns)
            places = [self._own_place(conn) for conn in conns]
            late = time.monotonic() > until
            if self._xa_commits(control) != commits:
                if late:
                    return self._begin_beside_prepared(control, conns)
                continue
            if all(_same(place, places[0]) for place in places):
                break
            if late:
                # Go on with the views that lie where the first one does.
                for conn, place in list(zip(conns, places, strict=True)):
                    if not _same(place, places[0]):
                        conns.remove(conn)
                        close(conn)
                break
        return self._with_gtids(control, places[0])

    def _begin_beside_prepared(self, control: Connection, conns: list[Connection]) -> LogEnd:
        """Open MariaDB's views under a lock, when no XA COMMIT is in the log without being visible."""
        if self._locking == "none":
            raise SourceStateError(
                "No exact read point was found: XA transactions are prepared, and MariaDB doesn't say which of those "
                "that are being committed a view shows.",
                "Set snapshot.locking.mode=minimal, which locks for a moment, or try again when none is prepared.",
            )
        with self._locked(control):
            self._start(conns)
            return self._with_gtids(control, self._own_place(conns[0]))

    def _with_gtids(self, control: Connection, place: LogEnd) -> LogEnd:
        return replace(place, gtids=gtids_before(control, place))

    def _prepared(self, control: Connection) -> bool:
        """Return whether XA transactions are prepared, also those that are being committed."""
        return bool(run(control, "XA RECOVER", "listing prepared XA transactions"))

    def _xa_commits(self, control: Connection) -> str:
        """Return how many XA COMMITs have begun on the server."""
        return str(run(control, "SHOW GLOBAL STATUS LIKE 'Com_xa_commit'", "the server's counters")[0][1])

    def _own_place(self, conn: Connection) -> LogEnd:
        """Return a connection's place in the log, as MariaDB reports it for its view."""
        found = dict(run(conn, "SHOW STATUS LIKE 'binlog_snapshot_%'", DOING))
        named = {str(name).lower(): value for name, value in found.items()}
        if not named.get("binlog_snapshot_file"):
            raise SourceStateError("The server writes no binlog.", NO_BINLOG)
        base, number = split_name(named["binlog_snapshot_file"])
        return LogEnd(base, number, int(named["binlog_snapshot_position"]), "")

    def _start(self, conns: list[Connection]) -> None:
        """Open the views, as nearly at the same time as possible: send all statements before reading an answer."""
        try:
            for conn in conns:
                conn._execute_command(COMMAND.COM_QUERY, BEGIN)  # type: ignore[attr-defined]
            for conn in conns:
                conn._read_ok_packet()  # type: ignore[attr-defined]
        except (pymysql.err.Error, OSError) as exc:
            raise statement_error(exc, DOING) from None

    def _lock(self, control: Connection) -> None:
        # While FLUSH waits for running statements, no session can begin to write. If such a session holds a row that a
        # running statement waits for, neither can go on: so give up after a second, and let them through in between.
        run(control, "SET SESSION lock_wait_timeout = 1", DOING)
        until = time.monotonic() + self._lock_timeout_s
        while True:
            try:
                run(control, "FLUSH TABLES WITH READ LOCK", "locking the tables", LOCK_CURE)
                return
            except SourceStateError as exc:
                if _TIMED_OUT not in str(exc) or time.monotonic() > until:
                    raise
                time.sleep(LET_THROUGH_S)

    def _begin_locked(self, control: Connection, conns: list[Connection]) -> LogEnd:
        """Open the views while no transaction can be committed; return their place in the log."""
        place = self.end_of_log(control)
        self._start(conns)
        return place


def _same(one: LogEnd, other: LogEnd) -> bool:
    """Return whether two places in the log are the same."""
    return (one.base, one.file, one.offset) == (other.base, other.file, other.offset)


def _gtids(owned: str) -> set[str]:
    """Return the GTIDs of ``gtid_owned``: ``uuid:7#12:8#13, uuid:…``; each is one transaction's."""
    found = set()
    for part in owned.replace("\n", "").split(","):
        source, *numbers = part.strip().split(":")
        found |= {f"{source}:{number.partition('#')[0]}" for number in numbers if "#" in number}
    return found
