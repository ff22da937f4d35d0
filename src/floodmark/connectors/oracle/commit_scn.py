"""``commit_scn`` of offsets: up to which commit each redo thread has been delivered.

It is a text: ``<scn>:<thread>:<transaction>-<transaction>,…``, one entry for each thread, with the transactions
that were committed at the number. Debezium's older versions stored a number alone, or four parts, of which the second
and the third one mean nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

from floodmark.json_data import damaged_checkpoint

_FIRST_THREAD = 1


@dataclass(frozen=True)
class ThreadCommit:
    """The newest commit of a redo thread.

    Attributes:
        scn: its number.
        transactions: those that were committed at that number.
    """

    scn: int
    transactions: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CommitScn:
    """The newest commits by redo thread."""

    threads: Mapping[int, ThreadCommit] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what a text of an offset says; of an empty one, nothing.

        Raises:
            CheckpointError: it says something else.
        """
        if not text:
            return cls()
        found: dict[int, ThreadCommit] = {}
        try:
            for entry in text.split(","):
                match entry.split(":"):
                    case [scn]:
                        found[_FIRST_THREAD] = ThreadCommit(int(scn))
                    case [scn, thread, transactions]:
                        names = frozenset(filter(None, transactions.split("-")))
                        found[int(thread)] = ThreadCommit(int(scn), names)
                    case [scn, _, _, thread]:
                        found[int(thread)] = ThreadCommit(int(scn))
                    case _:
                        raise ValueError
        except ValueError:
            raise damaged_checkpoint(f"the commit_scn '{text}' isn't '<scn>:<thread>:<transactions>'") from None
        return cls(MappingProxyType(found))

    @property
    def newest(self) -> int:
        """The highest number of all threads; 0: there is none."""
        return max((one.scn for one in self.threads.values()), default=0)

    def has(self, thread: int, scn: int, transaction: str) -> bool:
        """Return whether a commit was delivered."""
        known = self.threads.get(thread)
        if known is None:
            return False
        return known.scn > scn or (known.scn == scn and transaction in known.transactions)

    def with_commit(self, thread: int, scn: int, transaction: str) -> CommitScn:
        """Return what holds when one more commit was delivered."""
        known = self.threads.get(thread)
        together = known.transactions if known is not None and known.scn == scn else frozenset()
        return CommitScn(MappingProxyType({**self.threads, thread: ThreadCommit(scn, together | {transaction})}))

    def __str__(self) -> str:
        return ",".join(
            f"{one.scn}:{thread}:{'-'.join(sorted(one.transactions))}" for thread, one in sorted(self.threads.items())
        )
