"""Remembers which target tables a query has made, so that one that is gone isn't taken for one that is new."""

from __future__ import annotations

from floodmark.config.common import CommonOptions
from floodmark.sinks.state.remembered import Remembered


class MadeTables:
    """The tables that a query has made: a file for each in ``state.dir``.

    If ``state.dir`` is lost, so is this, and a table that is lost as well counts as new.

    Args:
        options: the source's options.
        query: the query's id.
    """

    def __init__(self, options: CommonOptions, query: str) -> None:
        self._files = Remembered(options, query)
        self._known: set[str] = set()

    def knows(self, table: str) -> bool:
        """Return whether a table has been added, by this process or an earlier one.

        Raises:
            StateDirError: the state directory can't be read.
        """
        if table not in self._known and self._files.has(table):
            self._known.add(table)
        return table in self._known

    def add(self, table: str) -> None:
        """Add a table unless it is known.

        Raises:
            StateDirError: the state directory can't be written.
        """
        if not self.knows(table):
            self._files.write(table, table.encode() + b"\n")
            self._known.add(table)

    def names(self) -> frozenset[str]:
        """Return all of them.

        Raises:
            StateDirError: the state directory can't be read.
        """
        return frozenset(content.decode().rstrip("\n") for content in self._files.contents())

    def forget(self, table: str) -> None:
        """Remove a table, which counts as new then.

        Raises:
            StateDirError: the state directory can't be written.
        """
        self._files.remove(table)
        self._known.discard(table)
