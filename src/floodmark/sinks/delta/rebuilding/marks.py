"""Which Delta tables are rebuilt: a mark for each of them, and a shadow with a log of its own in the table's folder.

The query writes every micro-batch to the shadow as well, from before the source's table is read again. Both logs name
the same data files, so none is written twice, and in the end one commit puts the shadow's files in the place of the
table's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from threading import Lock

import obstore
from obstore.exceptions import AlreadyExistsError

from floodmark.errors import TargetChangedError, TargetDamagedError
from floodmark.logger import get_logger
from floodmark.redact import without_uri_secrets
from floodmark.sinks.delta.stores import TableFolder, store_of_all, subfolder
from floodmark.sinks.folders import folder_name
from floodmark.sinks.rebuilds.mark import RebuildMark

log = get_logger(__name__)

REBUILT_PROPERTY = "floodmark.rebuilt"
"""The property that names the last rebuilding whose rows a table has."""
_MARKS = "_floodmark/rebuilds"
_SHADOWS = "_floodmark/rebuild-"
_AGAIN = "Rebuild the table again."


class RebuildMarks:
    """The marks of a mirror's tables, as files that the query and whoever rebuilds a table read and write.

    Its methods raise an ``OSError`` or a ``BaseError`` of obstore if the store can't be used.

    Args:
        location: a path or a URI, below which the tables' folders are.

    Raises:
        ConfigError: there is no such place.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._store = store_of_all(location, cleans=True)

    def all(self) -> dict[str, RebuildMark]:
        """Return the marks that aren't damaged, by the tables' names."""
        found = {}
        for one in obstore.list(self._store, _MARKS).collect():
            path = str(one["path"])
            try:
                mark = self._read(path) if path.endswith(".json") else None
            except TargetDamagedError as error:
                # Its shadow never takes the table's place: `get` raises the error for whoever rebuilds it.
                log.error("a_rebuilding_is_given_up", error=str(error))
                continue
            if mark is not None:
                found[mark.table] = mark
        return found

    def get(self, table: str) -> RebuildMark | None:
        """Return the mark of a table; None: it isn't rebuilt.

        Raises:
            TargetDamagedError: it is damaged.
        """
        return self._read(_path(table))

    def prove_current(self, mark: RebuildMark) -> None:
        """Check that a table is still rebuilt, and that its shadow is complete.

        Raises:
            TargetChangedError: it isn't.
        """
        found = self.get(mark.table)
        if found is None or found.id != mark.id:
            raise TargetChangedError(f"The rebuilding of '{mark.table}' was cancelled meanwhile.", _AGAIN)
        if found.error:
            raise TargetChangedError(f"The table '{mark.table}' can't be rebuilt. {found.error}", _AGAIN)

    def add(self, mark: RebuildMark) -> bool:
        """Mark a table; return whether it wasn't marked."""
        try:
            obstore.put(self._store, _path(mark.table), mark.to_bytes(), mode="create")
        except AlreadyExistsError:
            return False
        return True

    def fail(self, mark: RebuildMark, error: str) -> bool:
        """Note that the shadow isn't complete; return False if the table isn't rebuilt any more."""
        found = self.get(mark.table)
        if found is None or found.id != mark.id:
            return False
        failed = replace(mark, error=without_uri_secrets(self._location, error))
        obstore.put(self._store, _path(mark.table), failed.to_bytes())
        return True

    def remove(self, table: str) -> None:
        """Remove the mark of a table, if there is one."""
        try:
            obstore.delete(self._store, _path(table))
        except FileNotFoundError:
            return

    def shadow(self, mark: RebuildMark) -> TableFolder:
        """Return the folder of a shadow's log.

        Raises:
            ConfigError: there is no such place.
        """
        return subfolder(self._location, mark.table, f"{_SHADOWS}{mark.id}")

    def remove_shadows(self, table: str) -> None:
        """Remove the logs of a table's shadows."""
        self._remove_shadows(table, "")

    def remove_if_ended(self, mark: RebuildMark) -> None:
        """Remove the log of a shadow whose table isn't rebuilt any more, or for another time."""
        try:
            found = self.get(mark.table)
        except TargetDamagedError:
            # It is removed by whoever removes the damaged mark and rebuilds the table again.
            return
        if found is None or found.id != mark.id:
            self._remove_shadows(mark.table, f"{mark.id}/")

    def _remove_shadows(self, table: str, which: str) -> None:
        while paths := self._in_shadows(table, which):
            try:
                obstore.delete(self._store, paths)
            except FileNotFoundError:
                # The query and whoever ends the rebuilding may do this at the same time.
                continue

    def _in_shadows(self, table: str, which: str) -> list[str]:
        folder = folder_name(table)
        names = [
            str(one["path"]) for one in obstore.list(self._store, f"{folder}/{_SHADOWS.rpartition('/')[0]}").collect()
        ]
        return [name for name in names if name.startswith(f"{folder}/{_SHADOWS}{which}")]

    def _read(self, path: str) -> RebuildMark | None:
        try:
            content = bytes(obstore.get(self._store, path).bytes())
        except FileNotFoundError:
            return None
        return RebuildMark.from_bytes(content, f"the file {path}")


class MarksOfBatch:
    """The marks as they are when a micro-batch is written, which are looked up once for all of its tables.

    Args:
        location: a path or a URI, below which the tables' folders are.
    """

    def __init__(self, location: str) -> None:
        self.marks = RebuildMarks(location)
        self._lock = Lock()
        self._batch = -1
        self._found: Mapping[str, RebuildMark] = {}

    def of(self, table: str, batch: int) -> RebuildMark | None:
        """Return the mark of a table; None: it isn't rebuilt, or its shadow isn't complete."""
        with self._lock:
            if batch != self._batch:
                self._found = self.marks.all()
                self._batch = batch
        mark = self._found.get(table)
        return mark if mark is not None and not mark.error else None


def _path(table: str) -> str:
    return f"{_MARKS}/{folder_name(table)}.json"
