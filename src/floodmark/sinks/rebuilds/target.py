"""The protocol of targets that can be rebuilt, whatever they are kept in."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from floodmark.errors import TargetError
from floodmark.sinks.rebuilds.mark import RebuildMark
from floodmark.sinks.verifiable import TargetView


class Replaced(Enum):
    """What came of an attempt to replace a target."""

    DONE = "done"
    """The target has the shadow's rows, by this attempt or an earlier one."""
    LATER = "later"
    """The query is just writing a micro-batch, or another writer was faster: it can be tried again."""


class RebuildableTarget(Protocol):
    """A target of a query, and its shadow, which gets what the query writes of the table while the mark is there.

    Its methods raise a ``TargetError``, or an error of the store itself, for which ``failure`` has another one.
    """

    def view(self) -> TargetView:
        """Return the target as it is now.

        Raises:
            TargetError: there is none, or it is set aside.
        """

    def prove_written(self) -> None:
        """Check that the target gets rows.

        Raises:
            TargetError: it is set aside.
        """

    def mark(self) -> RebuildMark | None:
        """Return the table's mark; None: it isn't rebuilt.

        Raises:
            TargetDamagedError: it is damaged.
        """

    def begin(self, mark: RebuildMark) -> bool:
        """Mark the table, so that the query writes a shadow from now on; return whether it wasn't marked.

        What earlier shadows have left is removed before.
        """

    def is_replaced(self, mark: RebuildMark) -> bool:
        """Return whether the target has the shadow's rows already."""

    def attempt(self, mark: RebuildMark, empty: bool) -> Replaced:
        """Try to replace the target's rows by the shadow's, at once.

        Args:
            mark: the table's.
            empty: whether the source's table had no rows when it was read, so that there may be no shadow.

        Raises:
            TargetChangedError: the target is gone or another query's, or the shadow lacks what the target has.
            TargetDamagedError: the shadow is damaged.
        """

    def finish(self, mark: RebuildMark) -> None:
        """Remove the mark and the shadow of a target that is replaced."""

    def give_up(self, mark: RebuildMark) -> None:
        """Remove the mark and the shadow of a target that stays as it is."""

    def failure(self, error: Exception) -> TargetError:
        """Return the error that a user gets for one of the store's own."""
