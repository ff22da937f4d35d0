"""Redo threads: online logs, which are written in turn, and their archived copies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tests.support.oracle.model.dictionaries import StoredDictionary
from tests.support.oracle.model.redo import RedoRecord

END = (1 << 64) - 1
"""``NEXT_CHANGE#`` of a log that is being written."""
Status = Literal["CURRENT", "ACTIVE", "INACTIVE"]


@dataclass
class RedoLog:
    """What a thread wrote between two log switches.

    Attributes:
        thread: the thread's number.
        sequence: the log's number in its thread.
        group: the online log that it was written to.
        first: the first system change number that it may have.
        next: the first one that the next log may have; ``END`` while it is written.
        resetlogs: the incarnation of the database.
        records: its contents.
        archived: the names of its archived copies, by destination.
        deleted: destinations whose copies were deleted.
        begun: the dictionaries that begin in it.
        ended: those that end in it.
    """

    thread: int
    sequence: int
    group: int
    first: int
    resetlogs: int
    next: int = END
    records: list[RedoRecord] = field(default_factory=list)
    archived: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    begun: list[StoredDictionary] = field(default_factory=list)
    ended: list[StoredDictionary] = field(default_factory=list)

    @property
    def is_current(self) -> bool:
        return self.next == END

    def archive(self, destinations: list[Destination]) -> None:
        """Copy it to the destinations that can be written."""
        for place in destinations:
            if place.status == "VALID":
                self.archived[place.name] = f"{place.directory}/{self.thread}_{self.sequence}_{self.resetlogs}.arc"


@dataclass(frozen=True)
class Destination:
    """Where logs are archived.

    Attributes:
        number: ``DEST_ID``.
        name: ``DEST_NAME``.
        status: ``VALID`` or another status.
        type: ``LOCAL`` or ``REMOTE``.
        directory: of the copies.
    """

    number: int
    name: str
    status: str = "VALID"
    type: str = "LOCAL"
    directory: str = "/arch"


class RedoThread:
    """The redo of one instance.

    Args:
        number: the thread's number.
        first: the system change number that it begins at.
        groups: how many online logs it has.
        log_bytes: the size of each.
        first_group: the number of the first of them.
    """

    def __init__(self, number: int, first: int, groups: int = 3, log_bytes: int = 209_715_200, first_group: int = 1):
        self.number = number
        self.log_bytes = log_bytes
        self.enabled_scn = first
        self.disabled_scn = 0
        self.status: Literal["OPEN", "CLOSED"] = "OPEN"
        self.enabled: Literal["PUBLIC", "PRIVATE", "DISABLED"] = "PUBLIC"
        self.checkpoint_scn = first
        self.last_redo_scn = first
        self._groups = [first_group + place for place in range(groups)]
        self.logs = [RedoLog(number, 15, self._groups[0], first, resetlogs=1)]

    @property
    def current(self) -> RedoLog:
        """The log that is being written."""
        return self.logs[-1]

    def member(self, group: int) -> str:
        """Return the name of an online log's file."""
        return f"/redo/redo{group:02d}.log"

    @property
    def online(self) -> dict[int, RedoLog]:
        """The log that each group holds."""
        return {log.group: log for log in self.logs}

    @property
    def groups(self) -> list[int]:
        return self._groups

    def write(self, record: RedoRecord) -> None:
        """Append a record."""
        self.current.records.append(record)
        self.last_redo_scn = record.scn

    def switch(self, scn: int, destinations: list[Destination]) -> None:
        """Begin the next log, and archive the last one."""
        log = self.current
        log.next = scn
        log.archive(destinations)
        group = self._groups[(self._groups.index(log.group) + 1) % len(self._groups)]
        self.logs.append(RedoLog(self.number, log.sequence + 1, group, scn, log.resetlogs))
        self.checkpoint_scn = scn
