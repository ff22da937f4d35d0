"""Reads a query's checkpoint, in which Spark keeps a file for each planned and each finished micro-batch."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyarrow import fs

from floodmark.capture.files import open_filesystem
from floodmark.errors import CheckpointError, StateDirError
from floodmark.json_data import Json


@dataclass(frozen=True)
class BatchFile:
    """A micro-batch's file.

    Attributes:
        batch: the micro-batch's number.
        path: the file's path in the checkpoint's filesystem.
        written: when it was written, in seconds since 1970; None if the filesystem doesn't know.
    """

    batch: int
    path: str
    written: float | None


class Checkpoint:
    """A query's checkpoint.

    Args:
        uri: its directory: a local path, or a URI of a filesystem that PyArrow opens.

    Raises:
        CheckpointError: PyArrow cannot open the URI.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        try:
            self._fs, path = open_filesystem(uri.removeprefix("file:") if uri.startswith("file:/") else uri)
        except StateDirError:
            cure = "Give a local path or a URI of a filesystem that PyArrow opens."
            raise CheckpointError(f"The checkpoint {uri} cannot be opened.", cure) from None
        self._path = path.rstrip("/")

    def require(self) -> None:
        """Verify that a query has begun to use the directory.

        Raises:
            CheckpointError: it is missing or empty, or it is something else.
        """
        if self.is_used():
            return
        if self._type("") == fs.FileType.File or self._entries(""):
            raise CheckpointError(f"{self.uri} is not the checkpoint of a query.", "Correct the key 'checkpoint'.")
        cure = "The first `floodmark run` of the pipeline makes it."
        raise CheckpointError(f"There is no checkpoint in {self.uri} yet.", cure)

    def is_used(self) -> bool:
        """Return whether a query has begun to use the directory.

        Raises:
            CheckpointError: it cannot be read.
        """
        return bool(self._type("metadata") == fs.FileType.File or self._type("offsets") == fs.FileType.Directory)

    def folders(self) -> list[str]:
        """Return the names of its subdirectories.

        Raises:
            CheckpointError: it cannot be read.
        """
        return sorted(info.base_name for info in self._entries("") if info.type == fs.FileType.Directory)

    def offsets(self) -> list[BatchFile]:
        """Return the files of the planned micro-batches, the newest last.

        Raises:
            CheckpointError: the directory cannot be read.
        """
        return self._batches("offsets")

    def commits(self) -> list[BatchFile]:
        """Return the files of the finished micro-batches, the newest last.

        Raises:
            CheckpointError: the directory cannot be read.
        """
        return self._batches("commits")

    def read_offset(self, file: BatchFile) -> dict[str, Json]:
        """Return the source's offset in a file of ``offsets``.

        Raises:
            CheckpointError: the file cannot be read, or the query is not Floodmark's.
        """
        try:
            with self._fs.open_input_stream(file.path) as stream:
                lines = stream.read().decode("utf-8").splitlines()
            # A version line, a line about the batch, then one line for each source.
            offset = json.loads(lines[2])
        except OSError as exc:
            raise self._unreadable(exc) from None
        except (ValueError, IndexError):
            offset = None
        if isinstance(offset, dict) and {"v", "log", "snapshot"} <= offset.keys():
            return offset
        cure = "Correct the key 'checkpoint': one directory for one query."
        raise CheckpointError(f"{self.uri} is not the checkpoint of a Floodmark query.", cure)

    def query(self) -> str:
        """Return the query's id; empty if it isn't there, or damaged.

        Raises:
            CheckpointError: the file cannot be read.
        """
        try:
            with self._fs.open_input_stream(f"{self._path}/metadata") as stream:
                found = json.loads(stream.read())
        except FileNotFoundError:
            return ""
        except OSError as exc:
            raise self._unreadable(exc) from None
        except ValueError:
            return ""
        return str(found.get("id", "")) if isinstance(found, dict) else ""

    def _batches(self, folder: str) -> list[BatchFile]:
        files = [
            BatchFile(int(info.base_name), info.path, None if info.mtime_ns is None else info.mtime_ns / 1e9)
            for info in self._entries(folder)
            if info.base_name.isdigit()
        ]
        return sorted(files, key=lambda file: file.batch)

    def _entries(self, folder: str) -> list[fs.FileInfo]:
        selector = fs.FileSelector(f"{self._path}/{folder}".rstrip("/"), allow_not_found=True)
        try:
            found: list[fs.FileInfo] = self._fs.get_file_info(selector)
        except OSError as exc:
            raise self._unreadable(exc) from None
        return found

    def _type(self, name: str) -> fs.FileType:
        try:
            return self._fs.get_file_info(f"{self._path}/{name}".rstrip("/")).type
        except OSError as exc:
            raise self._unreadable(exc) from None

    def _unreadable(self, exc: OSError) -> CheckpointError:
        return CheckpointError(
            f"The checkpoint {self.uri} cannot be read: {exc}.", "Check the path and its permissions."
        )
