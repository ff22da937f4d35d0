"""Verifies that the log still continues from the stored position.

This is checked on every connection that log or rows are read from, before anything is read: the same server (system
identifier), the same database (its OID), the same history (timeline, and where timelines ended), a log that is not
shorter than what has been received, and in it, at its LSN, the last commit that was received. The last check detects
a server that was set back to an older copy of its files and has written on since, which changes neither its identifier
nor its timeline.

Source: PostgreSQL documentation, "Streaming Replication Protocol" (IDENTIFY_SYSTEM, TIMELINE_HISTORY); the format of a
history file is that of the server's ``access/transam/timeline.c``: parent timeline, LSN of its end, reason.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from floodmark.connectors.postgres.continuity.bookmark import Commit, LastEnd, LogBookmark, Piece
from floodmark.connectors.postgres.continuity.physical import bytes_before, commit_is_at, read_page
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import format_lsn, parse_lsn, parse_position
from floodmark.connectors.postgres.server.catalog import Conn
from floodmark.connectors.postgres.server.connection import run
from floodmark.connectors.postgres.server.slots import WAYS_OUT, Slot
from floodmark.errors import CheckpointError, ConnectError, ForkedLogError, LogGoneError, SourceStateError
from floodmark.json_data import Json
from floodmark.logger import get_logger

log = get_logger(__name__)

BYTES_S = 10.0
"""How often the log's bytes are read while the position advances without a transaction."""
REFUSED_S = 600.0
"""How long to wait after the server refused to let them be read."""
CONNECT_MS = 2000
NEW_TARGET = "Start with a new checkpoint and write to a new target."
ANOTHER_CURE = (
    "Let the address lead to the server that the checkpoint was written for, or use a new checkpoint and a new target."
)

_HERE = """
    SELECT (SELECT system_identifier::text FROM pg_control_system()),
           (SELECT oid::int8 FROM pg_database WHERE datname = current_database()), pg_is_in_recovery(),
           CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END,
           CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_flush_lsn() END::text
"""


class StandbyError(ConnectError):
    """The server is a standby; it may be about to be promoted."""


PLACE = (
    "(SELECT system_identifier::text FROM pg_control_system()) || '/' || "
    "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int4"
)
"""SQL: the system identifier and the timeline of a server that is not a standby."""


@dataclass(frozen=True)
class ServerLog:
    """The log that a server writes.

    Attributes:
        system: the cluster's identifier.
        database: OID of the database.
        timeline: the current timeline.
        ended: the earlier timelines, the oldest first, and where each ended.
        end: the log is on the server's disk up to here.
    """

    system: str
    database: int
    timeline: int
    ended: tuple[tuple[int, int], ...]
    end: int

    def began(self, timeline: int) -> int | None:
        """Return where a timeline began; 0 for the first one that is known; None if the log never was on it."""
        order = [*(number for number, _ in self.ended), self.timeline]
        if timeline not in order:
            return None
        at = order.index(timeline)
        return self.ended[at - 1][1] if at else 0

    def ended_at(self, timeline: int) -> int:
        """Return where a timeline ended; for the current one, the end of the log."""
        return dict(self.ended).get(timeline, self.end)

    def timeline_at(self, lsn: int) -> int:
        """Return the timeline on which a record at an LSN was written."""
        return next((number for number, end in self.ended if lsn < end), self.timeline)


def read_log(conn: Conn) -> ServerLog:
    """Return the log that the server of a replication connection writes.

    Raises:
        ConnectError: the server is a standby, which may not be promoted yet.
    """
    system, timeline, end, _ = run(conn, "IDENTIFY_SYSTEM", "the server's identity")[0]
    database, standby = run(
        conn,
        "SELECT (SELECT oid::int8 FROM pg_database WHERE datname = current_database()), pg_is_in_recovery()",
        "the database's identity",
    )[0]
    _refuse_standby(bool(standby))
    ended: list[tuple[int, int]] = []
    if int(timeline) > 1:
        # The first timeline has no history.
        _, content = run(conn, f"TIMELINE_HISTORY {timeline}", "the history of the log")[0]
        ended = parse_history(content if isinstance(content, str) else bytes(content).decode("utf-8", "replace"))
    return ServerLog(str(system), int(database), int(timeline), tuple(ended), parse_lsn(str(end)))


def parse_history(text: str) -> list[tuple[int, int]]:
    """Return the timelines of a history file, the oldest first, and where each ended."""
    lines = (line.split() for line in text.splitlines())
    return [(int(words[0]), parse_lsn(words[1])) for words in lines if len(words) > 1 and not words[0].startswith("#")]


def _refuse_standby(standby: bool) -> None:
    if standby:
        raise StandbyError(
            "The server is a standby: it replays another server's log.",
            "Connect to the primary, or promote this server.",
        )


class Continuity:
    """Records which log the query reads and how far, and verifies on each connection that it is still that log.

    Capture reports what it receives and the planner queries it, each from its own thread.

    Args:
        options: the source's options.
    """

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._system = ""
        self._database = 0
        self._timeline = self._began = 0
        self._reached = self._delivered = 0
        self._commits: deque[Commit] = deque()
        self._piece: Piece | None = None
        self._ends: deque[LastEnd] = deque()
        self._next_piece = 0.0
        self._ended: tuple[tuple[int, int], ...] = ()

    def identified(self, system: str) -> None:
        """Remember the cluster that the checkpoint belongs to, or will belong to."""
        self._system = self._system or system

    def resume(self, position: str, bookmark: Json) -> None:
        """Restore the state from a checkpoint.

        Args:
            position: up to which the log is delivered, or was planned.
            bookmark: what ``bookmark`` returned for it; None if an earlier version wrote the checkpoint.

        Raises:
            CheckpointError: the bookmark is not what ``bookmark`` returns.
        """
        known = None if bookmark is None else LogBookmark.from_json(bookmark)
        with self._lock:
            self._reached = max(self._reached, _needed(position))
            if known is None:
                return
            self._database, self._timeline, self._began = known.database, known.timeline, known.began
            if known.commit is not None:
                self._commits = deque([known.commit])
            self._piece = known.piece or self._piece
            if known.end is not None and (not self._ends or position > self._ends[-1].position):
                self._ends.append(LastEnd(position, *known.end))

    def bookmark(self, position: str) -> dict[str, Json]:
        """Return what a checkpoint must store besides a position, so that its log can be recognized."""
        needed = _needed(position)
        self._remember_bytes(needed)
        with self._lock:
            self._reached = max(self._reached, needed)
            # The last commit before the position stays: later logs are compared with it.
            while len(self._commits) > 1 and self._commits[1].lsn < needed:
                self._commits.popleft()
            last = self._commits[0] if self._commits and self._commits[0].lsn < needed else None
            piece = self._piece if self._piece is not None and self._piece.lsn <= needed else None
            end = self._last_end(position)
            while len(self._ends) > 1 and self._ends[1].position <= position:
                self._ends.popleft()
            return LogBookmark(
                self._database,
                self._timeline,
                self._began,
                last,
                piece,
                None if end is None or end.lsn is None else (end.lsn, end.micros),
            ).to_json()

    def _remember_bytes(self, needed: int) -> None:
        """Periodically remember the log's bytes before a position that has advanced without a transaction."""
        with self._lock:
            known = max((commit.upto for commit in self._commits if commit.lsn < needed), default=0)
            if self._piece is not None:
                known = max(known, self._piece.lsn)
            timeline = next((number for number, end in self._ended if needed <= end), self._timeline)
        if needed <= known or not timeline or time.monotonic() < self._next_piece:
            return
        self._next_piece = time.monotonic() + BYTES_S
        quick = self._options.model_copy(update={"connect_timeout_ms": CONNECT_MS})
        try:
            found = bytes_before(quick, timeline, needed)
        except (SourceStateError, ConnectError) as exc:
            log.info("log_is_not_remembered", reason=exc.what)
            self._next_piece = time.monotonic() + REFUSED_S
            return
        with self._lock:
            self._piece = Piece(needed, *found)

    def deliver(self, lsn: int) -> None:
        """Remember that everything before an LSN was delivered."""
        with self._lock:
            self._delivered = max(self._delivered, lsn)

    @property
    def delivered(self) -> int:
        """The LSN before which everything was delivered.

        The slot may be there, beyond the last piece of the log that was received: in between there was nothing.
        """
        return self._delivered

    def received(self, commit: Commit | None, end: LastEnd) -> None:
        """Remember a piece of the log that was received.

        Args:
            commit: the last transaction that begins in it; None: none does.
            end: the last end before the position that it reaches.
        """
        with self._lock:
            if commit is not None and (not self._commits or commit.lsn > self._commits[-1].lsn):
                self._commits.append(commit)
            # After a restart the log of a planned micro-batch is received again, perhaps in other pieces.
            while self._ends and self._ends[-1].position >= end.position:
                self._ends.pop()
            self._ends.append(end)

    def last_end(self, position: str) -> LastEnd | None:
        """Return the end of the last transaction before a position; None if it isn't known."""
        with self._lock:
            return self._last_end(position)

    def _last_end(self, position: str) -> LastEnd | None:
        """Return what is known; that is nothing inside of a piece, where the log has other ends."""
        at = bisect_right([end.position for end in self._ends], position) - 1
        if at < 0 or (self._ends[at].position < position and at < len(self._ends) - 1):
            return None
        return self._ends[at]

    def prove(self, conn: Conn, position: str | None = None) -> ServerLog:
        """Verify that a replication connection leads to the log that is read.

        Args:
            conn: the connection.
            position: up to here the log has been received; None to check only what is known already.

        Raises:
            CheckpointError: it is another server or database.
            ForkedLogError: the server lacks changes that were received.
            ConnectError: the server is a standby.
        """
        found = read_log(conn)
        with self._lock:
            if position is not None:
                self._reached = max(self._reached, _needed(position))
            self._check_source(found.system, found.database)
            self._check_history(found)
            witness = next((commit for commit in reversed(self._commits) if commit.lsn < self._reached), None)
            piece = self._piece
        if witness is not None:
            self._check_commit(found, witness)
        if piece is not None:
            self._check_bytes(found, piece)
        # Only a log that passed all checks becomes the one that later connections are compared with.
        with self._lock:
            self._system, self._database, self._ended = found.system, found.database, found.ended
            self._timeline, self._began = found.timeline, found.began(found.timeline) or 0
        return found

    def prove_kept(self, slot: Slot) -> None:
        """Verify that the server has the log that a slot needs: a slot doesn't show that its files are gone.

        Raises:
            LogGoneError: it hasn't, for example after ``pg_resetwal``.
        """
        assert slot.restart is not None
        with self._lock:
            timeline = next((number for number, end in self._ended if slot.restart < end), self._timeline)
        try:
            read_page(self._options, timeline, slot.restart)
        except LogGoneError as exc:
            raise LogGoneError(
                f"The server has removed log that the replication slot '{slot.name}' needs, from "
                f"{format_lsn(slot.restart)} on. {exc.what}",
                f"Drop the slot (SELECT pg_drop_replication_slot('{slot.name}')). {WAYS_OUT}",
            ) from None
        except (SourceStateError, ConnectError) as exc:
            # No walsender is free, or a managed service lets no role read the log's bytes.
            log.info("log_of_the_slot_is_not_read", slot=slot.name, reason=exc.what)

    def leads_here(self, conn: Conn) -> bool:
        """Return whether an ordinary connection leads to the log that was verified last; if not, verify it again.

        Raises:
            CheckpointError: it is another server or database.
            ConnectError: the server is a standby.
        """
        system, database, standby, timeline, end = run(conn, _HERE, "the server's identity")[0]
        _refuse_standby(bool(standby))
        with self._lock:
            self._check_source(str(system), int(database))
            if not self._timeline:
                return True
            return int(timeline, 16) == self._timeline and parse_lsn(end) >= self._reached

    def same_place(self, place: str) -> bool:
        """Return whether a read point was opened at the server whose log is read.

        Args:
            place: system identifier and timeline, as ``PLACE`` returns them.
        """
        with self._lock:
            return place == f"{self._system}/{self._timeline}"

    def _check_source(self, system: str, database: int) -> None:
        where = f"{self._options.hostname}:{self._options.port}"
        if self._system and system != self._system:
            raise CheckpointError(
                f"The server at {where} is another source than the checkpoint's: its system identifier is {system}, it "
                f"was {self._system}.",
                ANOTHER_CURE,
            )
        if self._database and database != self._database:
            raise CheckpointError(
                f"The database '{self._options.dbname}' at {where} is another source than the checkpoint's: it was "
                f"dropped and created again (its OID is {database}, it was {self._database}).",
                "Use a new checkpoint and a new target.",
            )

    def _check_history(self, found: ServerLog) -> None:
        reached = format_lsn(self._reached)
        if self._timeline:
            began = found.began(self._timeline)
            if began is None or (began != self._began and self._began):
                raise ForkedLogError(
                    f"The server's log has another history: it is on timeline {found.timeline} and was never on a "
                    f"timeline {self._timeline} that began at {format_lsn(self._began)}, of which the log was read up "
                    f"to {reached}. The server was restored from a backup, or another standby was promoted.",
                    f"Connect to the server that has that log. {NEW_TARGET}",
                )
            ended = found.ended_at(self._timeline)
            if self._timeline != found.timeline and self._reached > ended:
                raise ForkedLogError(
                    f"The server's log left timeline {self._timeline} at {format_lsn(ended)}, but it was read up to "
                    f"{reached}: a standby was promoted, or a backup restored, that lacked the last changes. Those "
                    f"after {format_lsn(ended)} may have been delivered and don't exist any more.",
                    f"Connect to the server that has them. {NEW_TARGET}",
                )
        if found.end < self._reached:
            raise ForkedLogError(
                f"The server's log ends at {format_lsn(found.end)}, but it was read up to {reached}: the server was "
                "restored from a backup, or replaced by a standby that lacked the last changes.",
                f"Connect to the server that has them. {NEW_TARGET}",
            )

    def _check_commit(self, found: ServerLog, commit: Commit) -> None:
        timeline = found.timeline_at(commit.lsn)
        self._compare(commit.lsn, lambda: commit_is_at(self._options, timeline, commit.lsn, commit.micros))

    def _check_bytes(self, found: ServerLog, piece: Piece) -> None:
        timeline = found.timeline_at(piece.lsn - 1)
        expected = (piece.size, piece.checksum)
        self._compare(piece.lsn, lambda: bytes_before(self._options, timeline, piece.lsn) == expected)

    def _compare(self, lsn: int, same: Callable[[], bool]) -> None:
        at = format_lsn(lsn)
        try:
            if same():
                return
        except (SourceStateError, ConnectError) as exc:
            # That segment was removed, no walsender is free, or a managed service lets no role read the log's bytes.
            log.warning("log_is_not_compared", lsn=at, reason=exc.what)
            return
        raise ForkedLogError(
            f"The server's log has something else at {at} than what was received from there: the server was restored "
            "from an older copy of its files and has gone on since.",
            NEW_TARGET,
        )


def _needed(position: str) -> int:
    """Return the LSN up to which the log must be there for a position."""
    lsn, ordinal = parse_position(position)
    return lsn + (ordinal > 0)
