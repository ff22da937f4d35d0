"""Reads a query's checkpoint, in which Spark keeps a file for each planned and each finished micro-batch."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from pyarrow import fs

from floodmark.capture.files import open_filesystem, write_durably
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

    def planned(self) -> dict[str, Json] | None:
        """Return the source's offset of the newest planned micro-batch; None if there is none.

        Raises:
            CheckpointError: the file cannot be read, or the query is not Floodmark's.
        """
        files = self.offsets()
        return self.read_offset(files[-1]) if files else None

    def delivered(self) -> dict[str, Json] | None:
        """Return the source's offset of the newest finished micro-batch; None if there is none.

        Raises:
            CheckpointError: the file cannot be read, or the query is not Floodmark's.
        """
        finished = {file.batch for file in self.commits()}
        files = [file for file in self.offsets() if file.batch in finished]
        return self.read_offset(files[-1]) if files else None

    def copy(self, stamp: str) -> str:
        """Copy the directory beside itself, and return where to.

        Args:
            stamp: what the copy's name ends with.

        Raises:
            CheckpointError: it cannot be copied.
        """
        copy = f"{self._path}.backup-{stamp}"
        try:
            fs.copy_files(self._path, copy, self._fs, self._fs)
        except OSError as exc:
            raise self._unwritable(exc) from None
        return copy

    def set_aside(self, stamp: str) -> str:
        """Rename the directory, so that the next query is a new one, and return its new name.

        Args:
            stamp: what that ends with.

        Raises:
            CheckpointError: it cannot be renamed.
        """
        place = f"{self._path}.backup-{stamp}"
        try:
            self._fs.move(self._path, place)
        except OSError as exc:
            raise self._unwritable(exc) from None
        return place

    def go_on_from(self, offset: Mapping[str, Json]) -> int:
        """Let the query go on from an offset, as if a micro-batch had ended there; begin a new query if there is none.

        Spark's files of a micro-batch: a version line, a line about the batch, then one line for each source. The line
        about the batch is that of the micro-batch before; Spark takes what it lacks from the session.

        Args:
            offset: the source's offset.

        Returns:
            The number of that micro-batch.

        Raises:
            CheckpointError: a file cannot be read or written.
        """
        planned = self.offsets()
        about, batch = "", 0
        try:
            if planned:
                batch = planned[-1].batch + 1
                about = self._lines(planned[-1])[1]
            else:
                about = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": int(time.time() * 1000), "conf": {}})
                self._write("metadata", json.dumps({"id": str(uuid.uuid4())}))
            done = 'v1\n{"nextBatchWatermarkMs":0}'
            finished = self.commits()
            if finished:
                done = self._content(finished[-1].path)
            # A micro-batch that was planned and not finished is given up: the commit of the new one passes it.
            self._write(f"offsets/{batch}", f"v1\n{about}\n{json.dumps(offset)}")
            self._write(f"commits/{batch}", done)
        except OSError as exc:
            raise self._unwritable(exc) from None
        return batch

    def _write(self, name: str, text: str) -> None:
        path = f"{self._path}/{name}"
        directory, _, base = path.rpartition("/")
        # Hadoop keeps a checksum of each file beside it, which would be that of a former one.
        checksum = f"{directory}/.{base}.crc"
        if self._fs.get_file_info(checksum).type == fs.FileType.File:
            self._fs.delete_file(checksum)
        write_durably(self._fs, path, [text.encode()])

    def _content(self, path: str) -> str:
        with self._fs.open_input_stream(path) as stream:
            return str(stream.read().decode("utf-8"))

    def _lines(self, file: BatchFile) -> list[str]:
        lines = self._content(file.path).splitlines()
        if len(lines) < 3:
            raise CheckpointError(f"The file {file.path} of the checkpoint {self.uri} is damaged.", "Restore it.")
        return lines

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

    def _unwritable(self, exc: OSError) -> CheckpointError:
        return CheckpointError(
            f"The checkpoint {self.uri} cannot be written: {exc}.", "Check the path, its permissions and its disk."
        )

    def _unreadable(self, exc: OSError) -> CheckpointError:
        return CheckpointError(
            f"The checkpoint {self.uri} cannot be read: {exc}.", "Check the path and its permissions."
        )
