"""A physical standby: a copy of a database that gets its redo, and becomes the primary after a switchover."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from tests.support.oracle.model.clock import FIRST_SCN, PER_SECOND, START, Clock
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.logs import RedoLog

NO_GROUP = 0
"""The group of logs that are in no online log here."""


class _Clock(Clock):
    """A clock that is behind the numbers in the logs."""

    def time_of(self, scn: int) -> datetime:
        return START + timedelta(seconds=(scn - FIRST_SCN) / PER_SECOND)


class Standby(OracleDatabase):
    """A standby of a database.

    Args:
        primary: that database; tables and accounts are the same.

    Attributes:
        received: up to which change number it has the redo.
    """

    def __init__(self, primary: OracleDatabase) -> None:
        super().__init__(primary.pluggable, len(primary.threads), primary.account)
        self._primary = primary
        self.lock = primary.lock
        self.clock = _Clock()
        self.settings = replace(primary.settings, role="PHYSICAL STANDBY", open_mode="READ ONLY WITH APPLY")
        self.accounts = primary.accounts
        self.tables = primary.tables
        self.destinations[0] = replace(self.destinations[0], directory="/standby")
        for number, thread in self.threads.items():
            thread.logs = []
            thread.log_bytes = primary.threads[number].log_bytes
        self.received = 0
        self.receive()

    def receive(self, apply: bool = True) -> None:
        """Get the logs that the primary has archived.

        Args:
            apply: whether what they change is seen here, too.
        """
        with self.lock:
            for number, thread in self.threads.items():
                have = {log.sequence for log in thread.logs}
                for log in self._primary.threads[number].logs:
                    if not log.archived or log.sequence in have:
                        continue
                    copy = RedoLog(number, log.sequence, NO_GROUP, log.first, log.resetlogs, log.next, log.records)
                    copy.archive(self.destinations)
                    thread.logs.append(copy)
                    self.received = max(self.received, log.next - 1)
                thread.checkpoint_scn = thread.last_redo_scn = self.received
            if apply:
                self.clock.scn = max(self.received, 1)

    def switch_over(self) -> None:
        """Become the primary, which becomes a standby; no redo is lost."""
        with self.lock:
            self._primary.switch_log()
            self.receive()
            scn = self._primary.clock.scn
            self.clock = self._primary.clock
            self.transactions = self._primary.transactions
            for thread in self.threads.values():
                last = thread.logs[-1]
                thread.logs.append(RedoLog(thread.number, last.sequence + 1, thread.groups[0], scn, last.resetlogs))
            self.settings.role, self.settings.open_mode = "PRIMARY", "READ WRITE"
            other = self._primary.settings
            other.role, other.open_mode = "PHYSICAL STANDBY", "READ ONLY WITH APPLY"

    def fail_over(self) -> None:
        """Become a primary without the other one: another life begins behind the redo that was received."""
        self.switch_over()
        with self.lock:
            self.settings.resetlogs = self.clock.scn
            for thread in self.threads.values():
                thread.current.resetlogs = self.settings.resetlogs
