"""Chooses the dictionary in the logs that LogMiner is given (``log.mining.strategy=redo_log_catalog``).

Debezium has one written at the beginning of each session, which is behind what the session reads first: tables that
were altered in between are then not known as they were. Here it is the last one before what is read, as Oracle's
documentation demands, and another one is only written when many logs have followed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from floodmark.connectors.oracle.mining.available_logs import available_logs
from floodmark.connectors.oracle.mining.dictionary import BUILD, BUILD_GRANT, LoggedDictionary, dictionaries_in
from floodmark.connectors.oracle.mining.logs import LogFile
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.connection import Connection, run
from floodmark.connectors.oracle.server.database import current_scn
from floodmark.errors import LogGoneError, SourceStateError
from floodmark.logger import get_logger

log = get_logger(__name__)

MOST_LOGS = 8
"""How many logs may follow a dictionary before the next one is written: LogMiner reads all of them for each session."""


class Dictionaries:
    """The dictionaries in the logs.

    Args:
        options: the source's options.
        conn: a connection to where the log is mined.
        destinations: names of the archive destinations.

    Attributes:
        chosen: the one that ``choose`` has chosen.
    """

    def __init__(self, options: OracleOptions, conn: Connection, destinations: Sequence[str]) -> None:
        self._options = options
        self._conn = conn
        self._destinations = destinations
        self._known: list[LoggedDictionary] = []
        self._unusable: set[LoggedDictionary] = set()
        self._awaited: int | None = None
        self._awaited_since = 0.0
        self.chosen: LoggedDictionary | None = None

    def choose(self, begin: int) -> bool:
        """Choose the dictionary for what is read behind a number; return whether there is one already.

        Raises:
            PrivilegeError: there is none, and the account may not write one.
            SourceStateError: ``log.mining.read.only`` forbids to write one.
            LogGoneError: the one that was written isn't archived in time.
        """
        if self._awaited is not None or not self._known:
            self._look()
        usable = [one for one in self._known if one not in self._unusable]
        before = [one for one in usable if one.next - 1 <= begin]
        chosen = before[-1] if before else usable[0] if usable else None
        if chosen is None:
            self._await()
            return False
        if chosen != self.chosen:
            self.chosen = chosen
            level = log.info if before else log.warning
            level(
                "dictionary_is_chosen", logs=f"{chosen.first_log} to {chosen.last_log}", before=bool(before), scn=begin
            )
        return True

    def begin(self, begin: int) -> int:
        """Return the number behind which the logs must be at hand to read what is behind another one."""
        return begin if self.chosen is None else min(begin, self.chosen.first - 1)

    def discard(self) -> None:
        """Choose another one: logs are missing that the chosen one needs."""
        if self.chosen is not None:
            log.warning("dictionary_lacks_logs", logs=f"{self.chosen.first_log} to {self.chosen.last_log}")
            self._unusable.add(self.chosen)
            self.chosen = None

    def renew(self, logs: Sequence[LogFile]) -> None:
        """Have a new one written if too many logs have followed the newest.

        Args:
            logs: all there are since the chosen one.
        """
        if (
            self._awaited is None
            and not self._options.mining_read_only
            and self._known[-1].logs_behind(logs) > MOST_LOGS
        ):
            self._write()

    def ensure(self) -> None:
        """Have one written unless there is one that isn't old, so that a new query finds it before its beginning."""
        logs = self._look()
        is_new = bool(self._known) and self._known[-1].logs_behind(logs) <= MOST_LOGS
        if not is_new and not (self._options.mining_read_only and self._known):
            self._write()

    def _look(self) -> list[LogFile]:
        options = self._options
        logs = available_logs(self._conn, 0, options.archive_hours, options.archived_only, self._destinations)
        self._known = dictionaries_in([one for one in logs if one.archived])
        if self._awaited is not None and self._known and self._known[-1].next > self._awaited:
            self._awaited = None
        return logs

    def _await(self) -> None:
        if self._awaited is None:
            self._write()
            return
        waited_ms = (time.monotonic() - self._awaited_since) * 1000
        if waited_ms >= self._options.log_wait_ms:
            raise LogGoneError(
                f"The dictionary that was written into the redo logs behind the change number {self._awaited} has been "
                f"in no archived log for {waited_ms / 1000:.0f} s.",
                "Check the archiver, and DICTIONARY_BEGIN and DICTIONARY_END in V$ARCHIVED_LOG; or raise "
                "log.mining.log.wait.ms.",
            )

    def _write(self) -> None:
        if self._options.mining_read_only:
            raise SourceStateError(
                "No archived log has a complete dictionary, and log.mining.read.only=true forbids to write one.",
                BUILD_GRANT,
            )
        scn = current_scn(self._conn)
        log.info("dictionary_is_written", scn=scn)
        run(self._conn, BUILD, "writing the dictionary into the redo logs", BUILD_GRANT)
        self._awaited, self._awaited_since = scn, time.monotonic()
