"""Read points: views of the tables at an exact place of the log.

A view belongs to the connection that opened it, so a read point is some connections whose views show the same. Where in
the log they lie is found without a lock:

- *MariaDB* tells the place of each view (``binlog_snapshot_position``).
- *MySQL with GTIDs*: a transaction owns its GTID from before it is written to the log until after it is committed in the
  engine. So when the end of the log is read, then nobody owns a GTID, then the views are opened, and then the log
  still ends there, the views show all that is in the log and nothing else.

Where neither works, because GTIDs are off or the server never rests, the views are opened under a short global read lock
if ``snapshot.locking.mode`` allows.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pymysql
from pymysql.constants import COMMAND

from floodmark.connectors.mysql.schema.catalog import read_schema
from floodmark.connectors.mysql.schema.schema import TableId
from floodmark.connectors.mysql.schema.session import Server
from floodmark.connectors.mysql.schema.table import Table
from floodmark.connectors.mysql.server.connection import Connection, close, run, statement_error
from floodmark.errors import ConnectError, FloodmarkError, SourceStateError
from floodmark.log import get_logger

log = get_logger(__name__)

Structures = Mapping[TableId, Table]

TRIES = 300
TRY_S = 2.0
STRUCTURE_TRIES = 10
PAUSE_S = 0.0003
OWNERS_S = 2.0
_NEW_STATUS = 80200
BEGIN = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
DOING = "opening a view of the tables"
LOCK_CURE = (
    "Grant the account RELOAD, so that a read point can be taken under a short FLUSH TABLES WITH READ LOCK, or set "
    "gtid_mode=ON on the server."
)


@dataclass(frozen=True)
class Place:
    """A place in the log.

    Attributes:
        file: name of the binlog file.
        offset: in that.
        gtids: the transactions that had been executed, as text; empty without GTIDs.
    """

    file: str
    offset: int
    gtids: str = ""

    def same(self, other: Place) -> bool:
        """Tell whether it is the same place."""
        return (self.file, self.offset) == (other.file, other.offset)


class MysqlReadPoint:
    """A ``ReadPoint`` and a ``Window``.

    Args:
        views: connections whose views show the same.
        lock: the connection that holds a lock as long as the read point is held, if any.
        structures: of the captured tables, as the views show them.
        place: where the views lie, or up to where a window reaches.
        position: that as a position.
        low: where a window begins; the same position if there is none.
    """

    def __init__(
        self,
        views: list[Connection],
        lock: Connection | None,
        structures: Structures,
        place: Place,
        position: str,
        low: str | None = None,
    ) -> None:
        self.position = position
        self.low = position if low is None else low
        self.structures = structures
        self.token: dict[str, Any] = {
            "id": uuid.uuid4().hex,
            "file": place.file,
            "offset": place.offset,
            # As Debezium, which asks for whole seconds.
            "micros": int(time.time()) * 1_000_000,
            "visible": place.gtids,
        }
        self._views = views
        self._lock = lock
        self._lost = False
        self._idle: queue.SimpleQueue[Connection | None] = queue.SimpleQueue()
        for view in views:
            self._idle.put(view)

    def close_at(self, place: Place, position: str) -> None:
        """Set the place up to which a window reaches."""
        self.position = position
        self.token |= {"file": place.file, "offset": place.offset}

    @contextmanager
    def view(self) -> Iterator[Connection]:
        """Lend a connection that sees the view, waiting for one; others may read at the same time.

        Afterwards it holds no locks of tables, for which whoever wants to alter them would wait.

        Raises:
            ConnectError: the read point has been released, or is lost.
        """
        conn = self._idle.get()
        if conn is None or self._lost:
            self._idle.put(None)
            raise ConnectError("The view of the tables is lost.")
        try:
            run(conn, "SAVEPOINT floodmark", DOING)
            yield conn
            run(conn, "ROLLBACK TO SAVEPOINT floodmark", DOING)
        finally:
            if conn.open:
                self._idle.put(conn)
            else:
                self._lost = True
                self._idle.put(None)

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query that sees the view."""
        with self.view() as conn:
            return run(conn, statement, "looking for the bounds of a table's chunks")

    def alive(self) -> bool:
        """Tell whether it can still be read from, as far as that can be told without waiting for who reads."""
        if self._lost or not all(view.open for view in self._views):
            return False
        with contextlib.suppress(queue.Empty):
            conn = self._idle.get_nowait()
            try:
                if conn is not None:
                    run(conn, "SELECT 1", "checking a view of the tables")
            except FloodmarkError:
                self._lost = True
            finally:
                self._idle.put(conn)
        return not self._lost

    def release(self) -> None:
        """Close the connections; whoever reads gets a ``ConnectError``."""
        self._lost = True
        for conn in (*self._views, *([self._lock] if self._lock is not None else [])):
            with contextlib.suppress(OSError, AttributeError):
                conn._sock.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]
            close(conn)
        self._idle.put(None)


@dataclass
class _Sessions:
    """The connections of a read point that is being opened.

    Attributes:
        low: the place before which all is visible, if that is not where the views lie.
        taken: those that stay open.
    """

    control: Connection
    views: list[Connection]
    low: Place | None = None
    taken: list[Connection] = field(default_factory=list)


class ReadPoints:
    """Opens read points.

    Args:
        connect: opens an ordinary connection.
        server: the server.
        position_of: makes a position of a place's file and offset.
        captures: tells whether a table is captured, by database and name.
        locking: the option ``snapshot.locking.mode``.
        lock_timeout_s: how long a lock may be waited for.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        server: Server,
        position_of: Callable[[str, int], str],
        captures: Callable[[str, str], bool],
        locking: str = "minimal",
        lock_timeout_s: int = 10,
    ) -> None:
        self._connect = connect
        self._server = server
        self._position_of = position_of
        self._captures = captures
        self._locking = locking
        self._lock_timeout_s = max(lock_timeout_s, 1)

    def open(self, views: int, may_lock: bool = True) -> MysqlReadPoint | None:
        """Open an exact read point.

        Args:
            views: how many may read at a time; it may become fewer.
            may_lock: whether a global lock may be taken, as far as ``snapshot.locking.mode`` allows.

        Returns:
            None if there is none without a lock.

        Raises:
            SourceStateError: the server can't give one.
        """
        with self._sessions(views) as sessions:
            control, conns = sessions.control, sessions.views
            if may_lock and self._locking == "extended":
                self._lock(control)
                sessions.taken = [control]
                return self._made(sessions, self._structures(control), self._begin_locked(control, conns))
            return self._between(sessions, lambda: self._begin(control, conns, may_lock))

    def open_window(self) -> MysqlReadPoint:
        """Open a view whose place in the log lies between two others: the window's beginning and its position.

        All that was in the log at the first place is visible, and nothing that came after the second.

        Raises:
            SourceStateError: the server has no GTIDs, or a transaction stays in its commit.
        """
        with self._sessions(1) as sessions:
            control = sessions.control

            def begin() -> Place:
                sessions.low = self.status(control)
                self._wait_for_owners(control)
                self._start(sessions.views)
                return self.status(control)

            point = self._between(sessions, begin)
            assert point is not None
            return point

    def open_view(self) -> MysqlReadPoint:
        """Open a view after a mark that was written to the log; the caller knows where that lies."""
        with self._sessions(1) as sessions:

            def begin() -> Place:
                self._start(sessions.views)
                return self.status(sessions.control)

            point = self._between(sessions, begin)
            assert point is not None
            return point

    def _between(self, sessions: _Sessions, begin: Callable[[], Place | None]) -> MysqlReadPoint | None:
        """Open views while the tables' structures stay as they are, so that the views show them."""
        for _ in range(STRUCTURE_TRIES):
            before = self._structures(sessions.control)
            place = begin()
            if place is None:
                return None
            if self._structures(sessions.control) == before:
                return self._made(sessions, before, place)
        raise SourceStateError(
            "The structures of the tables change all the time.", "Start the query when no DDL runs on the server."
        )

    def status(self, conn: Connection) -> Place:
        """Return where the log ends.

        Raises:
            SourceStateError: the server writes no binlog, or the account may not ask.
        """
        mariadb = self._server.mariadb
        statement = "SHOW BINARY LOG STATUS" if self._has_new_names() else "SHOW MASTER STATUS"
        rows = run(conn, statement, "reading where the binlog ends")
        if not rows:
            raise SourceStateError("The server writes no binlog.", "Set log_bin and binlog_format=ROW on the server.")
        gtids = "" if mariadb else "".join(str(rows[0][4]).split())
        return Place(str(rows[0][0]), int(rows[0][1]), gtids)

    def _has_new_names(self) -> bool:
        return not self._server.mariadb and self._server.version >= _NEW_STATUS

    def _made(self, sessions: _Sessions, structures: Structures, place: Place) -> MysqlReadPoint:
        low, position = (self._position_of(one.file, one.offset) for one in (sessions.low or place, place))
        lock = sessions.control if sessions.taken else None
        sessions.taken = [*sessions.taken, *sessions.views]
        return MysqlReadPoint(sessions.views, lock, structures, place, position, low)

    @contextmanager
    def _sessions(self, views: int) -> Iterator[_Sessions]:
        """Open connections, and close those that no read point has taken."""
        opened: list[Connection] = []
        sessions = None
        try:
            for _ in range(views + 1):
                opened.append(self._connect())
            for conn in opened:
                run(conn, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", DOING)
                # A limit that is set for everybody else would end the reading.
                limit = "max_statement_time" if self._server.mariadb else "max_execution_time"
                run(conn, f"SET SESSION {limit} = 0", DOING)
            sessions = _Sessions(opened[0], opened[1:])
            yield sessions
        finally:
            taken = [] if sessions is None else sessions.taken
            for conn in opened:
                if conn not in taken:
                    close(conn)

    def _structures(self, control: Connection) -> Structures:
        schema = read_schema(control, self._server)
        return {at: table for at, table in schema.tables.items() if self._captures(*at) and not table.sequence}

    def _begin(self, control: Connection, conns: list[Connection], may_lock: bool) -> Place | None:
        """Open the views; return where they lie."""
        place = self._begin_mariadb(control, conns) if self._server.mariadb else self._begin_mysql(control, conns)
        if place is not None or not may_lock:
            return place
        if self._locking == "none":
            raise SourceStateError(
                "No exact read point was found: the server has GTIDs off, or transactions end all the time.",
                "Set gtid_mode=ON on the server, or snapshot.locking.mode=minimal, which locks for a moment.",
            )
        log.info("read_point_takes_a_lock")
        try:
            self._lock(control)
            return self._begin_locked(control, conns)
        finally:
            run(control, "UNLOCK TABLES", DOING)

    def _begin_mysql(self, control: Connection, conns: list[Connection]) -> Place | None:
        if run(control, "SELECT @@GLOBAL.gtid_mode", "the server's settings")[0][0] != "ON":
            return None
        until = time.monotonic() + TRY_S
        for _ in range(TRIES):
            before = self.status(control)
            if not self._owners(control):
                self._start(conns)
                if self.status(control).same(before):
                    return before
            if time.monotonic() > until:
                break
            time.sleep(PAUSE_S)
        return None

    def _owners(self, control: Connection) -> str:
        return str(run(control, "SELECT @@GLOBAL.gtid_owned", "the running transactions")[0][0] or "")

    def _wait_for_owners(self, control: Connection) -> None:
        """Wait until all who own a GTID now have committed."""
        if run(control, "SELECT @@GLOBAL.gtid_mode", "the server's settings")[0][0] != "ON":
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
                    "A transaction stays in its commit, so that nobody knows what a view of the tables shows.",
                    "Set incremental.snapshot.read.points=watermarks.",
                )
            time.sleep(PAUSE_S)

    def _begin_mariadb(self, control: Connection, conns: list[Connection]) -> Place | None:
        until = time.monotonic() + TRY_S
        while True:
            self._start(conns)
            places = [self._own_place(conn) for conn in conns]
            if all(place.same(places[0]) for place in places):
                break
            if time.monotonic() > until:
                # Fewer will do.
                for conn, place in list(zip(conns, places, strict=True)):
                    if not place.same(places[0]):
                        conns.remove(conn)
                        close(conn)
                break
        place = places[0]
        shown = run(control, f"SELECT BINLOG_GTID_POS('{place.file}', {place.offset})", DOING)[0][0]
        return Place(place.file, place.offset, str(shown or ""))

    def _own_place(self, conn: Connection) -> Place:
        """Return where the view of a connection lies, which MariaDB knows."""
        found = dict(run(conn, "SHOW STATUS LIKE 'binlog_snapshot_%'", DOING))
        named = {str(name).lower(): value for name, value in found.items()}
        if not named.get("binlog_snapshot_file"):
            raise SourceStateError("The server writes no binlog.", "Set log_bin and binlog_format=ROW on the server.")
        return Place(named["binlog_snapshot_file"], int(named["binlog_snapshot_position"]))

    def _start(self, conns: list[Connection]) -> None:
        """Open the views, as far as possible at once."""
        try:
            for conn in conns:
                conn._execute_command(COMMAND.COM_QUERY, BEGIN)  # type: ignore[attr-defined]
            for conn in conns:
                conn._read_ok_packet()  # type: ignore[attr-defined]
        except (pymysql.err.Error, OSError) as exc:
            raise statement_error(exc, DOING) from None

    def _lock(self, control: Connection) -> None:
        run(control, f"SET SESSION lock_wait_timeout = {self._lock_timeout_s}", DOING)
        run(control, "FLUSH TABLES WITH READ LOCK", "locking the tables", LOCK_CURE)

    def _begin_locked(self, control: Connection, conns: list[Connection]) -> Place:
        """Open the views while nobody can commit."""
        place = self.status(control)
        self._start(conns)
        return place


def _gtids(owned: str) -> set[str]:
    """Return the GTIDs of ``gtid_owned``: ``uuid:7#12:8#13, uuid:…``; each is one transaction's."""
    found = set()
    for part in owned.replace("\n", "").split(","):
        source, *numbers = part.strip().split(":")
        found |= {f"{source}:{number.partition('#')[0]}" for number in numbers if "#" in number}
    return found
