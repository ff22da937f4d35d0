"""The logs that a mining session needs.

A database's redo comes in threads, one for each instance. A thread's logs have numbers without gaps; each holds the
changes from its first number up to, and excluding, the next log's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CURRENT = (1 << 64) - 1
"""The next number of a log that is being written."""


@dataclass(frozen=True)
class LogFile:
    """An online log, or an archived copy of one.

    Attributes:
        name: the file's.
        thread: the redo thread.
        sequence: the log's number in its thread.
        first: the first change number that it may hold.
        next: the first one that it doesn't hold; ``CURRENT`` while it is written.
        archived: whether it is a copy.
        size: its size in bytes.
        begins_dictionary: whether a dictionary begins in it; only archived logs tell.
        ends_dictionary: whether one ends in it.
    """

    name: str
    thread: int
    sequence: int
    first: int
    next: int = CURRENT
    archived: bool = False
    size: int = 0
    begins_dictionary: bool = False
    ends_dictionary: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """Which log it is, whatever file holds it."""
        return self.thread, self.sequence


def of_destinations(copies: Mapping[str, Sequence[LogFile]], names: Sequence[str]) -> list[LogFile]:
    """Return each archived log once: the copy in the first destination that has one.

    Args:
        copies: by destination.
        names: of the destinations, in the order in which they are preferred.
    """
    chosen: dict[tuple[int, int], LogFile] = {}
    for name in names:
        for one in copies.get(name, ()):
            chosen.setdefault(one.place, one)
    return list(chosen.values())
