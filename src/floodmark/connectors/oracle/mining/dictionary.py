"""Which dictionary LogMiner is told to use, and which ones the logs hold.

Oracle Database Utilities, "LogMiner Dictionary Files and Redo Log Files" and "Tracking DDL Statements in the LogMiner
Dictionary". A dictionary that was written into the logs is complete in the logs from one with ``DICTIONARY_BEGIN`` to
one with ``DICTIONARY_END``, which only views of archived logs show. With ``DDL_DICT_TRACKING``, LogMiner reads all logs
from the dictionary on, and knows each table as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from floodmark.connectors.oracle.mining.logs import LogFile
from floodmark.connectors.oracle.sql import constant

REDO_LOGS = "redo_log_catalog"
FILE = "dictionary_from_file"
_OPTIONS = {REDO_LOGS: ("DBMS_LOGMNR.DICT_FROM_REDO_LOGS", "DBMS_LOGMNR.DDL_DICT_TRACKING"), FILE: ()}
_ONLINE_CATALOG = ("DBMS_LOGMNR.DICT_FROM_ONLINE_CATALOG",)
BUILD = "BEGIN DBMS_LOGMNR_D.BUILD (options => DBMS_LOGMNR_D.STORE_IN_REDO_LOGS); END;"
"""Writes a dictionary into the logs. The server switches logs for that, and lets nobody alter tables meanwhile."""
BUILD_GRANT = (
    "GRANT EXECUTE ON DBMS_LOGMNR_D TO the account CONTAINER=ALL; or let an administrator execute "
    "DBMS_LOGMNR_D.BUILD(OPTIONS => DBMS_LOGMNR_D.STORE_IN_REDO_LOGS) from time to time, and set "
    "log.mining.read.only=true; or set log.mining.strategy to online_catalog or hybrid."
)
FILE_CURE = (
    "Check log.mining.path.dictionary: it must be a file on the server that DBMS_LOGMNR_D.BUILD has written there from "
    "this database, such as BUILD('dictionary.ora', 'A_DIRECTORY', DBMS_LOGMNR_D.STORE_IN_FLAT_FILE)."
)


@dataclass(frozen=True)
class DictionaryChoice:
    """Where LogMiner takes the names of tables and columns from.

    Attributes:
        strategy: the option ``log.mining.strategy``.
        file: the dictionary's file on the server, if it is one.
    """

    strategy: str
    file: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """The constants of ``DBMS_LOGMNR`` that name it."""
        return _OPTIONS.get(self.strategy, _ONLINE_CATALOG)

    @property
    def argument(self) -> str:
        """What ``START_LOGMNR`` is given besides its options, with a comma; empty: nothing."""
        return f", DICTFILENAME => {constant(self.file)}" if self.strategy == FILE else ""


@dataclass(frozen=True)
class LoggedDictionary:
    """A dictionary in the logs of a redo thread.

    Attributes:
        thread: the redo thread.
        first_log: the number of the log that it begins in.
        last_log: the one that it ends in.
        first: the first change number of the former.
        next: the first one behind the latter.
    """

    thread: int
    first_log: int
    last_log: int
    first: int
    next: int

    def is_in(self, logs: Sequence[LogFile]) -> bool:
        """Return whether logs hold all of it."""
        held = {one.sequence for one in logs if one.thread == self.thread}
        return held.issuperset(range(self.first_log, self.last_log + 1))

    def logs_behind(self, logs: Sequence[LogFile]) -> int:
        """Return how many logs of its thread were begun since."""
        return sum(one.thread == self.thread and one.sequence > self.last_log for one in logs)


def dictionaries_in(logs: Sequence[LogFile]) -> list[LoggedDictionary]:
    """Return the complete dictionaries in logs, the oldest first."""
    found: list[LoggedDictionary] = []
    begin: LogFile | None = None
    last: LogFile | None = None
    for one in sorted(logs, key=lambda log: log.place):
        if last is None or one.place != (last.thread, last.sequence + 1):
            begin = None
        last = one
        # One that ends a dictionary of earlier logs may begin the next one; else it has all of one.
        if begin is None and one.begins_dictionary:
            begin = one
        if begin is not None and one.ends_dictionary:
            found.append(LoggedDictionary(one.thread, begin.sequence, one.sequence, begin.first, one.next))
            begin = one if one.begins_dictionary and begin is not one else None
    return sorted(found, key=lambda one: one.next)
