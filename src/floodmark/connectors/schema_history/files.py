"""Storage of the schema history: files of lines that can be listed, read, written whole and removed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Protocol

from pyarrow import fs

from floodmark.capture.files import open_filesystem, state_dir_error, write_durably
from floodmark.capture.seals import is_sealed, opened, sealed
from floodmark.capture.store import SCHEMA_HISTORY
from floodmark.errors import DamagedFileError

_PART = ".part"
"""The suffix that earlier versions gave to the names of files while they wrote them."""
_SUM_BYTES = 9


class HistoryFiles(Protocol):
    """The files of one source's history.

    Attributes:
        place: where they are, for messages.
    """

    place: str

    def names(self) -> list[str]:
        """Return the names of the complete files, in any order.

        Raises:
            FloodmarkError: the storage cannot be read.
        """

    def read(self, name: str) -> list[bytes]:
        """Return a file's lines.

        Raises:
            OSError: it can't be read.
            ValueError: it is not what was written.
        """

    def write(self, name: str, lines: Sequence[bytes]) -> None:
        """Write a file atomically and durably: the offset relies on it.

        Raises:
            FloodmarkError: the storage cannot be written.
        """

    def remove(self, names: Sequence[str]) -> None:
        """Remove files.

        Raises:
            ConnectError: the storage cannot be reached.
        """


class ReadOnlyFiles:
    """Files that are read only, such as those of a query that isn't to be changed; nothing is removed.

    Args:
        files: the files.
    """

    def __init__(self, files: HistoryFiles) -> None:
        self._files = files
        self.place = files.place

    def names(self) -> list[str]:
        """Return the names of the files."""
        return self._files.names()

    def read(self, name: str) -> list[bytes]:
        """Return a file's lines."""
        return self._files.read(name)

    def write(self, name: str, lines: Sequence[bytes]) -> None:
        """Do nothing."""

    def remove(self, names: Sequence[str]) -> None:
        """Do nothing."""


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
        return [
            info.base_name
            for info in found
            if not info.base_name.endswith(_PART) and not info.base_name.startswith(".")
        ]

    def read(self, name: str) -> list[bytes]:
        """Return a file's lines."""
        with self._fs.open_input_file(f"{self.place}/{name}") as file:
            content: bytes = file.read()
        try:
            return _text(name, content).splitlines()
        except DamagedFileError as exc:
            raise ValueError(exc.what) from None

    def write(self, name: str, lines: Sequence[bytes]) -> None:
        """Write a file.

        Raises:
            StateDirError: the directory cannot be written.
        """
        text = b"".join(line + b"\n" for line in lines)
        try:
            write_durably(self._fs, f"{self.place}/{name}", [sealed(name, text)])
        except OSError as exc:
            raise state_dir_error(
                self._uri,
                "where the schema history cannot be written",
                exc,
                "Make the directory writable for the user that runs the query, or free some space. If a file was "
                "removed while it was written, restart the query, and let nothing else change the directory.",
            ) from None

    def remove(self, names: Sequence[str]) -> None:
        """Remove files; one that can't be removed now is removed the next time."""
        for name in names:
            try:
                self._fs.delete_file(f"{self.place}/{name}")
            except OSError:
                continue  # it is gone already, or is removed the next time


def _text(name: str, content: bytes) -> bytes:
    """Return the lines of a file without its checksum, also of one that an earlier version wrote.

    Raises:
        DamagedFileError: the content is not what was written.
    """
    text = content[:-_SUM_BYTES]
    if not is_sealed(content) and b"%08x\n" % zlib.crc32(text) == content[-_SUM_BYTES:]:
        return text
    return opened(name, content)
