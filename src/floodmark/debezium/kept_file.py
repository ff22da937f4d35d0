"""A file of Debezium's, which is copied before it is replaced."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from pyarrow import fs

from floodmark.capture.files import write_durably
from floodmark.errors import OffsetError


class KeptFile:
    """The file.

    Args:
        path: its path.
        stamp: what the name of a copy ends with.
    """

    def __init__(self, path: Path, stamp: str = "") -> None:
        self._path = path
        self._stamp = stamp

    @property
    def place(self) -> str:
        """Names the file."""
        return f"the file {self._path}"

    def replace(self, content: Sequence[bytes]) -> str:
        """Replace the content; return where the former file was copied to, whose mode the new one has; empty if none.

        Raises:
            OffsetError: it can't be written.
        """
        copy = ""
        try:
            if self._path.exists():
                copy = f"{self._path}.backup-{self._stamp}"
                shutil.copy2(self._path, copy)
            write_durably(fs.LocalFileSystem(), os.path.abspath(self._path), content)
            if copy:
                os.chmod(self._path, stat.S_IMODE(os.stat(copy).st_mode))
        except OSError as exc:
            raise OffsetError(f"Cannot write {self.place}: {exc}.", "Check its directory's permissions.") from None
        return copy
