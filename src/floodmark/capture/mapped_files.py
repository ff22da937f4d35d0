"""Files whose content is mapped into memory, so that only the pages that are used are read."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import fs


@dataclass(frozen=True)
class MappedFile:
    """A file that is read as if it were in memory.

    Attributes:
        content: the file's bytes. The file must not change while they are used; it may be removed.
        pages: the mapping; None: the content was read into memory, since the filesystem isn't local.
    """

    content: pa.Buffer
    pages: mmap.mmap | None = None

    def release(self) -> None:
        """Count the pages that were read no longer as this process's memory; they are read again when they are used."""
        if self.pages is not None and hasattr(mmap, "MADV_DONTNEED"):
            self.pages.madvise(mmap.MADV_DONTNEED)


def map_file(filesystem: fs.FileSystem, path: str) -> MappedFile:
    """Return a file's content, mapped into memory if the filesystem is local.

    Raises:
        OSError: the file can't be read.
    """
    if not isinstance(filesystem, fs.LocalFileSystem):
        with filesystem.open_input_file(path) as source:
            return MappedFile(source.read_buffer())
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not os.fstat(file).st_size:
            return MappedFile(pa.py_buffer(b""))
        pages = mmap.mmap(file, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(file)
    return MappedFile(pa.py_buffer(pages), pages)
