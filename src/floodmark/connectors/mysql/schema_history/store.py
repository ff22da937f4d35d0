"""The schema history: the structures of tables that statements of the log result in, by position.

Each statement is a file of its own (:mod:`.files`), named by its position, since object stores cannot append.
Its lines are records as in Debezium's schema history (:mod:`.records`). Now and then a file, an image, holds all
structures; files before the last image that is needed are removed. Every file names the one before it, and the offset
names the last one (``newest``), so that a lost one is noticed. What a snapshot announces of the tables at its
read point is a file beside them.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.schema_history.records import (
    HistoryEntry,
    StoredChange,
    Structures,
    image,
    records,
    stored_change,
)
from floodmark.connectors.mysql.structures.stored import WAYS_OUT
from floodmark.connectors.schema_history.files import HistoryFiles
from floodmark.errors import ConnectError, SchemaHistoryError
from floodmark.json_data import Json

_RECORD, _IMAGE, _ANNOUNCED = ".record", ".image", ".announced"
_STATEMENTS_PER_IMAGE = 500


class SchemaHistory:
    """The history of one source; one process writes it.

    Args:
        files: its storage.
        server: the option ``topic.prefix``.
    """

    def __init__(self, files: HistoryFiles, server: str) -> None:
        self._files = files
        self._server = server
        self._last = ""
        self._statements = 0
        self._lock = threading.Lock()
        self._written: list[str] = []

    def begin(self, position: str, schema: Schema) -> None:
        """Start a history with the structures at a position, and remove the one before.

        Raises:
            FloodmarkError: it cannot be written.
        """
        before = [name for name in self._files.names() if name.endswith((_RECORD, _IMAGE, _ANNOUNCED))]
        self._last, self._written = "", []
        # The old files are removed only afterwards: if the disk is full, they stay.
        self._write_image(position, schema)
        self._files.remove([name for name in before if name != self._last])

    def newest(self, upto: str) -> str | None:
        """Return the position of the last file that the structures at a position come from; None if it isn't known.

        It may be called from another thread.
        """
        with self._lock:
            found = bisect_right(self._written, upto)
            return self._written[found - 1] if found else None

    def load(self, upto: str, newest: str | None = None) -> Schema:
        """Return the structures at a position and continue from there; files of later positions are removed.

        Args:
            upto: the position.
            newest: what ``newest`` returned for it in an earlier process; None: what it returns in this one.

        Raises:
            SchemaHistoryError: there is no history of that position, or it is damaged.
        """
        names = self._names()
        known = [name for name in names if _position(name) <= upto]
        first = next((at for at in reversed(range(len(known))) if known[at].endswith(_IMAGE)), None)
        if first is None:
            raise SchemaHistoryError(
                f"The schema history in {self._files.place} does not reach back to position {upto}, where the query "
                "goes on.",
                WAYS_OUT,
            )
        newest = newest or self.newest(upto)
        # The last file is a later one if the history was rebuilt after ``newest`` was recorded.
        if newest is not None and _position(known[-1]) < newest:
            raise self._damaged(newest + _RECORD, "it is missing")
        structures = Structures()
        for name in known[first:]:
            found = self._read(name)
            if name != known[first] and found[0].after != self._last:
                raise self._damaged(name, f"it follows '{found[0].after}', which is missing")
            for change in found:
                structures.take(change)
            self._last = name
        self._statements = len(known) - first - 1
        with self._lock:
            self._written = [_position(name) for name in known]
        self._files.remove(names[len(known) :])
        return structures.schema()

    def append(self, entry: HistoryEntry, before: Schema) -> None:
        """Store a statement; call this before anything that follows it in the log is stored.

        Args:
            before: the structures before it.

        Raises:
            FloodmarkError: it cannot be written.
        """
        self._write(entry.position + _RECORD, records(entry, self._server, before, self._last))
        self._statements += 1
        schema = entry.applied.schema
        # An image holds all tables: it is written only after at least as many statements, so that it costs little.
        if self._statements >= max(_STATEMENTS_PER_IMAGE, len(schema.tables)):
            self._write_image(entry.position, schema)

    def announce(self, position: str, lines: Sequence[Mapping[str, Json]]) -> None:
        """Store what a snapshot announces of the tables at its read point.

        Raises:
            FloodmarkError: it cannot be written.
        """
        self._files.write(position + _ANNOUNCED, _texts(lines))

    def announced(self, position: str) -> list[dict[str, Json]] | None:
        """Return what a snapshot announces of the tables at its read point; None if it can't be read."""
        if position + _ANNOUNCED not in self._files.names():
            return None
        try:
            lines = [json.loads(line) for line in self._files.read(position + _ANNOUNCED)]
        except (OSError, ValueError):
            return None
        return lines if all(isinstance(line, dict) for line in lines) else None

    def forget(self, upto: str) -> None:
        """Remove files that aren't needed for structures at a position or later, if the storage can be reached."""
        with suppress(ConnectError):
            found = self._files.names()
            self._files.remove([name for name in found if name.endswith(_ANNOUNCED) and _position(name) < upto])
            names = _in_order(found)
            images = [at for at, name in enumerate(names) if name.endswith(_IMAGE) and _position(name) <= upto]
            self._files.remove(names[: images[-1]] if images else ())
            with self._lock:
                del self._written[: max(bisect_right(self._written, upto) - 1, 0)]

    def _write_image(self, position: str, schema: Schema) -> None:
        self._write(position + _IMAGE, image(schema, self._last))
        self._statements = 0

    def _write(self, name: str, lines: Sequence[Mapping[str, Json]]) -> None:
        self._files.write(name, _texts(lines))
        self._last = name
        with self._lock:
            self._written.append(_position(name))

    def _read(self, name: str) -> list[StoredChange]:
        """Return the changes of a file, at least one."""
        damaged = partial(self._damaged, name)
        try:
            lines = [json.loads(line) for line in self._files.read(name)]
        except (OSError, ValueError) as exc:
            raise damaged(str(exc)) from None
        found = [change for line in lines if (change := stored_change(line, damaged)) is not None]
        if not found:
            raise damaged("it holds no structures")
        return found

    def _damaged(self, name: str, why: str) -> SchemaHistoryError:
        what = f"'{name}' of the schema history in {self._files.place} cannot be used: {why}."
        return SchemaHistoryError(what, WAYS_OUT)

    def _names(self) -> list[str]:
        return _in_order(self._files.names())


def _in_order(names: Sequence[str]) -> list[str]:
    """Return the names of records and images, the oldest first; at one position the image is the last."""
    structures = [name for name in names if name.endswith((_RECORD, _IMAGE))]
    return sorted(structures, key=lambda name: (_position(name), name.endswith(_IMAGE)))


def _texts(lines: Sequence[Mapping[str, Json]]) -> list[bytes]:
    return [json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() for line in lines]


def _position(name: str) -> str:
    return name.rpartition(".")[0]
