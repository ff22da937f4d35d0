"""Remembers which target tables a query has made, so that one that is gone isn't taken for one that is new."""

from __future__ import annotations

import hashlib

from pyarrow import fs

from floodmark.capture.files import open_filesystem, state_dir_error, write_durably
from floodmark.capture.store import MIRRORS
from floodmark.config.common import CommonOptions


class MadeTables:
    """The tables that a query has made: a file for each in ``state.dir``.

    If ``state.dir`` is lost, so is this, and a table that is lost as well counts as new.

    Args:
        options: the source's options.
        query: the query's id.
    """

    def __init__(self, options: CommonOptions, query: str) -> None:
        self._state_dir = options.state_dir
        self._fs, root = open_filesystem(options.state_dir)
        self._folder = f"{root.rstrip('/')}/{options.owner}/{MIRRORS}/{query}"
        self._known: set[str] = set()

    def knows(self, table: str) -> bool:
        """Return whether a table has been added, by this process or an earlier one.

        Raises:
            StateDirError: the state directory can't be read.
        """
        if table not in self._known and self._exists(table):
            self._known.add(table)
        return table in self._known

    def add(self, table: str) -> None:
        """Add a table unless it is known.

        Raises:
            StateDirError: the state directory can't be written.
        """
        if self.knows(table):
            return
        try:
            write_durably(self._fs, self._path(table), [table.encode() + b"\n"])
        except OSError as error:
            raise state_dir_error(
                self._state_dir, "where the mirror's tables are remembered", error, "Make it writable."
            ) from None
        self._known.add(table)

    def _exists(self, table: str) -> bool:
        try:
            return bool(self._fs.get_file_info(self._path(table)).type == fs.FileType.File)
        except OSError as error:
            raise state_dir_error(
                self._state_dir, "where the mirror's tables are remembered", error, "Make it readable."
            ) from None

    def _path(self, table: str) -> str:
        # A name may be longer than a filesystem allows, or not be one.
        return f"{self._folder}/{hashlib.sha256(table.encode()).hexdigest()}"
