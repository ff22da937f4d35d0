"""What a mirror remembers of tables: a small file for each of them in ``state.dir``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from pyarrow import fs

from floodmark.capture.files import open_filesystem, state_dir_error, write_atomically, write_durably
from floodmark.capture.store import MIRRORS
from floodmark.config.common import CommonOptions


class Remembered:
    """Files by tables' names.

    Every method raises a ``StateDirError`` if the state directory can't be read or written.

    Args:
        options: the source's options.
        query: the query's id.
        kind: the folder for what is remembered; empty: the query's own.
    """

    def __init__(self, options: CommonOptions, query: str, kind: str = "") -> None:
        self._state_dir = options.state_dir
        self._fs, root = open_filesystem(options.state_dir)
        self._folder = f"{root.rstrip('/')}/{options.owner}/{MIRRORS}/{query}/{kind}".rstrip("/")

    @property
    def is_local(self) -> bool:
        """Whether the files are on a local disk or a mount, where writing one costs little."""
        return isinstance(self._fs, fs.LocalFileSystem)

    def has(self, table: str) -> bool:
        """Return whether there is a file for a table."""
        with self._told("Make it readable."):
            return bool(self._fs.get_file_info(self._path(table)).type == fs.FileType.File)

    def read(self, table: str) -> bytes | None:
        """Return the content of the file of a table; None: there is none."""
        if not self.has(table):
            return None
        with self._told("Make it readable."):
            return bytes(self._fs.open_input_file(self._path(table)).readall())

    def write(self, table: str, content: bytes, durable: bool = True) -> None:
        """Write the file of a table.

        Args:
            durable: whether it survives a power failure once this returns, which takes milliseconds on a local disk and
                many requests elsewhere.
        """
        with self._told("Make it writable, with space for small files."):
            if durable:
                write_durably(self._fs, self._path(table), [content])
            elif self.is_local:
                write_atomically(self._fs, self._path(table), [content])
            else:
                with self._fs.open_output_stream(self._path(table)) as out:
                    out.write(content)

    def remove(self, table: str) -> None:
        """Remove the file of a table, if there is one."""
        if self.has(table):
            with self._told("Make it writable."):
                self._fs.delete_file(self._path(table))

    def contents(self) -> list[bytes]:
        """Return the contents of all files."""
        with self._told("Make it readable."):
            found = self._fs.get_file_info(fs.FileSelector(self._folder, allow_not_found=True))
            # What a process that was killed has not finished begins with a dot.
            files = [one.path for one in found if one.type == fs.FileType.File and one.base_name[0] != "."]
            return [self._fs.open_input_file(path).readall() for path in files]

    @contextmanager
    def _told(self, cure: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise state_dir_error(self._state_dir, "where the mirror's tables are remembered", error, cure) from None

    def _path(self, table: str) -> str:
        # A name may be longer than a filesystem allows, or not be one.
        return f"{self._folder}/{hashlib.sha256(table.encode()).hexdigest()}"
