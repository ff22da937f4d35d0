"""The schema history: what statements of the log made of the tables, by position, in ``state.dir``.

Each statement is a file of its own below ``<state.dir>/<owner>/schema-history``, named by its position, since object
stores cannot append. Its lines are records as Debezium's schema history has them (:mod:`.history_records`). Now and
then a file holds all structures; those before the last one that is still needed are removed. Every file names the one
before it, so that a lost one is noticed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pyarrow import fs

from floodmark.capture.store import SCHEMA_HISTORY, open_filesystem
from floodmark.connectors.mysql.schema.history_records import OWN, HistoryEntry, Structures, image, records
from floodmark.connectors.mysql.schema.schema import Schema
from floodmark.errors import SchemaHistoryError, StateDirError

_RECORD, _IMAGE, _PART = ".record", ".image", ".part"
_STATEMENTS_PER_IMAGE = 500
_SUM_BYTES = 9
_WAYS_OUT = (
    "Start with snapshot.mode=recovery, which reads the structures from the server, if no table has changed since the "
    "query stopped. Otherwise start with a new checkpoint, which takes a new snapshot, and write to a new target."
)


class SchemaHistory:
    """The history of one source; one process writes it.

    Args:
        uri: the option ``state.dir``.
        owner: what makes the source unique below it.
        server: the option ``topic.prefix``.
    """

    def __init__(self, uri: str, owner: str, server: str) -> None:
        self._fs, root = open_filesystem(uri)
        self._uri = uri
        self._server = server
        self._path = f"{root.rstrip('/')}/{owner}/{SCHEMA_HISTORY}"
        self._last = ""
        self._statements = 0

    def begin(self, position: str, schema: Schema) -> None:
        """Start anew with the structures that are in force at a position.

        Raises:
            StateDirError: the directory cannot be written.
        """
        self._remove(self._names())
        self._last = ""
        self._write_image(position, schema)

    def load(self, upto: str) -> Schema:
        """Return the structures at a position, and go on from there: what was kept of later ones is removed.

        Raises:
            SchemaHistoryError: there is no history of that position, or it is damaged.
        """
        names = self._names()
        known = [name for name in names if _position(name) <= upto]
        first = next((at for at in reversed(range(len(known))) if known[at].endswith(_IMAGE)), None)
        if first is None:
            raise SchemaHistoryError(
                f"The schema history in {self._path} does not reach back to position {upto}, where the query goes on.",
                _WAYS_OUT,
            )
        structures = Structures()
        for name in known[first:]:
            found = self._read(name)
            if name != known[first] and found[0]["after"] != self._last:
                self._damaged(name, f"it follows '{found[0]['after']}', which is missing")
            for own in found:
                structures.take(own)
            self._last = name
        self._statements = len(known) - first - 1
        self._remove(names[len(known) :])
        return structures.schema()

    def append(self, entry: HistoryEntry, before: Schema) -> None:
        """Keep a statement, before anything that follows it in the log is kept.

        Args:
            before: the structures before it.

        Raises:
            StateDirError: the directory cannot be written.
        """
        self._write(entry.position + _RECORD, records(entry, self._server, before, self._last))
        self._statements += 1
        schema = entry.applied.schema
        # All structures are written again only when that costs little beside the statements since.
        if self._statements >= max(_STATEMENTS_PER_IMAGE, len(schema.tables)):
            self._write_image(entry.position, schema)

    def forget(self, upto: str) -> None:
        """Remove what is not needed to know the structures at a position and later."""
        names = self._names()
        images = [at for at, name in enumerate(names) if name.endswith(_IMAGE) and _position(name) <= upto]
        self._remove(names[: images[-1]] if images else ())

    def _write_image(self, position: str, schema: Schema) -> None:
        self._write(position + _IMAGE, image(schema, self._last))
        self._statements = 0

    def _write(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines).encode()
        path = f"{self._path}/{name}"
        try:
            self._fs.create_dir(self._path, recursive=True)
            with self._fs.open_output_stream(path + _PART) as out:
                out.write(text + b"%08x\n" % zlib.crc32(text))
            self._fs.move(path + _PART, path)
        except OSError as exc:
            raise StateDirError(
                f"Option 'state.dir' is '{self._uri}', where the schema history cannot be written: {exc}.",
                "Make the directory writable for the user that runs the query, or free some space.",
            ) from None
        self._last = name

    def _read(self, name: str) -> list[dict[str, Any]]:
        try:
            with self._fs.open_input_file(f"{self._path}/{name}") as file:
                content = file.read()
            text = content[:-_SUM_BYTES]
            if b"%08x\n" % zlib.crc32(text) != content[-_SUM_BYTES:]:
                self._damaged(name, "its checksum is wrong")
            lines = [json.loads(line) for line in text.splitlines()]
        except (OSError, ValueError) as exc:
            self._damaged(name, str(exc))
        return [line[OWN] for line in lines if OWN in line]

    def _damaged(self, name: str, why: str) -> NoReturn:
        raise SchemaHistoryError(f"'{self._path}/{name}' of the schema history cannot be used: {why}.", _WAYS_OUT)

    def _names(self) -> list[str]:
        """Return the files' names, the oldest first; at one position the one with all structures is the last."""
        found = self._fs.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        names = [info.base_name for info in found if info.base_name.endswith((_RECORD, _IMAGE))]
        return sorted(names, key=lambda name: (_position(name), name.endswith(_IMAGE)))

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                self._fs.delete_file(f"{self._path}/{name}")
            except OSError:
                continue  # it is gone already, or goes the next time


def _position(name: str) -> str:
    return name.rpartition(".")[0]
