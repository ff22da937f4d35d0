"""Chooses which part of the log is mined next."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from floodmark.connectors.oracle.capture.dictionaries import Dictionaries
from floodmark.connectors.oracle.mining.available_logs import archive_destinations, available_logs, largest_log
from floodmark.connectors.oracle.mining.coverage import Lack, end_of_archived, find_lack, first_logs
from floodmark.connectors.oracle.mining.dictionary import REDO_LOGS
from floodmark.connectors.oracle.mining.logs import LogFile
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.connection import Connection
from floodmark.connectors.oracle.server.database import RedoThread, current_scn, read_threads
from floodmark.errors import LogGoneError, UnreadableLogError
from floodmark.logger import get_logger

log = get_logger(__name__)

SILENCE_S = 60.0
"""How long an instance may write nothing before a line of the log says so."""

_CURE = (
    "Ways out: restore the archived logs where V$ARCHIVED_LOG says that they are; raise log.mining.log.wait.ms if they "
    "are only archived late; or set snapshot.mode=when_needed, which takes a new snapshot."
)


@dataclass(frozen=True)
class Window:
    """A part of the log.

    Attributes:
        after: the changes behind this number.
        upto: up to this one.
        begin: the log is read from behind this number.
        logs: that have all of it, and the dictionary if that is among them.
        is_last: whether it goes as far as the log does now.
    """

    after: int
    upto: int
    begin: int
    logs: Sequence[LogFile]
    is_last: bool = True


class Windows:
    """Chooses windows, one after the other.

    Args:
        options: the source's options.
        conn: a connection to where the log is mined.
    """

    def __init__(self, options: OracleOptions, conn: Connection) -> None:
        self._options = options
        self._conn = conn
        self._destinations = archive_destinations(conn, options.destinations)
        self._log_bytes = largest_log(conn)
        self._dictionaries = Dictionaries(options, conn, self._destinations) if options.strategy == REDO_LOGS else None
        self._lacks_since: float | None = None
        self._slowest = 0, 0
        self._slow_since = 0.0

    @property
    def destinations(self) -> tuple[str, ...]:
        """The archive destinations whose logs are read."""
        return self._destinations

    def next(self, after: int, begin: int, to_the_end: bool = False) -> Window | None:
        """Return the window behind a number; None: there is nothing, or not yet.

        Args:
            after: the number.
            begin: the log must be read from behind this number, which is no larger.
            to_the_end: whether the window has all there is, not only some logs.

        Raises:
            LogGoneError: a log was deleted, or has been missing for too long.
        """
        options, conn, dictionaries = self._options, self._conn, self._dictionaries
        if dictionaries is not None and not dictionaries.choose(begin):
            return None
        threads = read_threads(conn)
        upto = 0 if options.archived_only else self._end(threads)
        needed = begin if dictionaries is None else dictionaries.begin(begin)
        logs = available_logs(conn, needed, options.archive_hours, options.archived_only, self._destinations)
        lack = find_lack([one for one in logs if one.next > begin], threads, begin, options.archived_only)
        if lack is not None:
            self._wait(lack, begin)
            return None
        self._lacks_since = None
        if dictionaries is not None and not self._has_dictionary(dictionaries, logs, threads, needed):
            return None
        if options.archived_only:
            upto = end_of_archived(logs, threads)
        if upto <= after:
            return None
        # A closed thread may have nothing behind the number.
        following = [one for one in logs if one.next > after]
        count = 0 if to_the_end else options.log_count_min
        chosen, end = first_logs(following, threads, count, self._log_bytes, upto)
        if end <= after or not chosen:
            return None
        read = [one for one in logs if one.next <= after]
        if dictionaries is not None and dictionaries.chosen is not None:
            known_until = dictionaries.chosen.next
            read += [one for one in following if one.first < known_until and one not in chosen]
        return Window(after, end, begin, [*read, *chosen], end == upto)

    def _has_dictionary(
        self, dictionaries: Dictionaries, logs: Sequence[LogFile], threads: Sequence[RedoThread], needed: int
    ) -> bool:
        """Return whether the logs have the chosen dictionary, and all since; it is given up if they don't."""
        chosen = dictionaries.chosen
        assert chosen is not None
        if not chosen.is_in(logs) or find_lack(logs, threads, needed, self._options.archived_only) is not None:
            dictionaries.discard()
            return False
        dictionaries.renew(logs)
        return True

    def _end(self, threads: Sequence[RedoThread]) -> int:
        """Return the last number whose redo every open instance has written.

        What is in an instance's memory only may have lower numbers than what another one has written. The last record
        itself may be incomplete.
        """
        now = current_scn(self._conn)
        written = {one.number: one.last_scn - 1 for one in threads if one.is_open}
        self._warn_of_silence(written)
        return min([now, *written.values()])

    def _warn_of_silence(self, written: Mapping[int, int]) -> None:
        """Say so if an instance doesn't write its log for long: the changes of all others wait for it."""
        slowest = min(written, key=lambda number: written[number], default=0)
        place = slowest, written.get(slowest, 0)
        now = time.monotonic()
        if place != self._slowest:
            self._slowest, self._slow_since = place, now
        elif len(written) > 1 and now - self._slow_since > SILENCE_S:
            self._slow_since = now
            log.warning("instance_writes_no_log", thread=slowest, scn=place[1], next="name its host in rac.nodes")

    def _wait(self, lack: Lack, after: int) -> None:
        """Wait for a log that may only be late, since it is being archived."""
        now = time.monotonic()
        if self._lacks_since is None:
            self._lacks_since = now
            log.warning("log_is_missing", thread=lack.thread, scn=lack.begin, reason=lack.what)
        waited_ms = (now - self._lacks_since) * 1000
        if waited_ms < self._options.log_wait_ms:
            return
        raise LogGoneError(
            f"The log behind the change number {after} isn't complete: of the redo thread {lack.thread}, {lack.what} "
            f"(from {lack.begin} on), and that has been so for {waited_ms / 1000:.0f} s.",
            _CURE,
        )


class Trouble:
    """How long the log can't be read, over all connections: a log may be gone for a moment, or for ever.

    Args:
        patience_ms: how long that may go on.
    """

    def __init__(self, patience_ms: int) -> None:
        self._patience_s = patience_ms / 1000
        self._since: float | None = None

    def over(self) -> None:
        """Record that the log could be read."""
        self._since = None

    def bear(self, error: UnreadableLogError) -> None:
        """Return if reading may be tried again after an error.

        Raises:
            UnreadableLogError: it has gone on for too long.
        """
        now = time.monotonic()
        if self._since is None:
            self._since = now
        if now - self._since >= self._patience_s:
            raise error
