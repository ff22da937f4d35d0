"""Where the schema history is kept: files of lines that can be listed, read, written whole and removed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Protocol

from pyarrow import fs

from floodmark.capture.store import SCHEMA_HISTORY, open_filesystem
from floodmark.errors import StateDirError

_PART = ".part"
_SUM_BYTES = 9


class HistoryFiles(Protocol):
    """The files of one source's history.

    Attributes:
        place: where they are, for messages.
    """

    place: str

    def names(self) -> list[str]:
        """Return the names of the files that are there as a whole, in any order.

        Raises:
            FloodmarkError: the place cannot be read.
        """

    def read(self, name: str) -> list[bytes]:
        """Return a file's lines.

        Raises:
            OSError: it can't be read.
            ValueError: it is not what was written.
        """

    def write(self, name: str, lines: Sequence[bytes]) -> None:
        """Write a file, which is there as a whole or not at all.

        Raises:
            FloodmarkError: the place cannot be written.
        """

    def remove(self, names: Sequence[str]) -> None:
        """Remove files.

        Raises:
            ConnectError: the place cannot be reached.
        """


class StateDirFiles:
    """Files below ``<state.dir>/<owner>/schema-history``, each with a checksum at its end.

    Args:
        uri: the option ``state.dir``.
        owner: what makes the source unique below it.
    """

    def __init__(self, uri: str, owner: str) -> None:
        self._fs, root = open_filesystem(uri)
        self._uri = uri
        self.place = f"{root.rstrip('/')}/{owner}/{SCHEMA_HISTORY}"

    def names(self) -> list[str]:
        """Return the names of the files."""
        found = self._fs.get_file_info(fs.FileSelector(self.place, allow_not_found=True))
        return [info.base_name for info in found if not info.base_name.endswith(_PART)]

    def read(self, name: str) -> list[bytes]:
        """Return a file's lines."""
        with self._fs.open_input_file(f"{self.place}/{name}") as file:
            content = file.read()
        text: bytes = content[:-_SUM_BYTES]
        if b"%08x\n" % zlib.crc32(text) != content[-_SUM_BYTES:]:
            raise ValueError("its checksum is wrong")
        return text.splitlines()

    def write(self, name: str, lines: Sequence[bytes]) -> None:
        """Write a file.

        Raises:
            StateDirError: the directory cannot be written.
        """
        text = b"".join(line + b"\n" for line in lines)
        path = f"{self.place}/{name}"
        try:
            self._fs.create_dir(self.place, recursive=True)
            with self._fs.open_output_stream(path + _PART) as out:
                out.write(text + b"%08x\n" % zlib.crc32(text))
            self._fs.move(path + _PART, path)
        except OSError as exc:
            raise StateDirError(
                f"Option 'state.dir' is '{self._uri}', where the schema history cannot be written: {exc}.",
                "Make the directory writable for the user that runs the query, or free some space.",
            ) from None

    def remove(self, names: Sequence[str]) -> None:
        """Remove files; one that can't be removed now is the next time."""
        for name in names:
            try:
                self._fs.delete_file(f"{self.place}/{name}")
            except OSError:
                continue  # it is gone already, or goes the next time
