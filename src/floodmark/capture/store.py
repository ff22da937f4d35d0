"""The state directory: writing, reading and removing segment files."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
from pyarrow import fs

from floodmark.capture.segment import Segment, SegmentData
from floodmark.errors import LogGoneError, StateDirError

SIGNALS = "signals"
"""The directory beside those of the runs that signals wait in."""
REPORTS = "reports"
"""The one that the tasks of micro-batches report in."""
DEAD_LETTERS = "dead-letters"
"""The one that keeps records which could not be decoded."""
SCHEMA_HISTORY = "schema-history"
"""The one that keeps what is known of the tables at earlier places of the log."""


def open_filesystem(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the filesystem and path of ``state.dir``.

    Raises:
        StateDirError: PyArrow cannot open the URI.
    """
    try:
        if "://" in uri:
            filesystem, path = fs.FileSystem.from_uri(uri)
            return filesystem, str(path)
        return fs.LocalFileSystem(), os.path.abspath(uri)
    except (OSError, ValueError, pa.ArrowException) as exc:
        raise StateDirError(
            f"Option 'state.dir' is '{uri}', which cannot be opened: {exc}.",
            "Give a local path or a URI of a filesystem that PyArrow opens.",
        ) from None


class SegmentStore:
    """The segments of one run of a query.

    Each run has a directory of its own, ``<state.dir>/<owner>/<run>``: what an earlier run left is
    never read again (the source re-sends it), only removed.

    Args:
        uri: the option ``state.dir``.
        owner: what makes the source unique below it.
        run: this run's name.
    """

    def __init__(self, uri: str, owner: str, run: str) -> None:
        self._fs, root = open_filesystem(uri)
        self._uri = uri
        self._owner_path = f"{root.rstrip('/')}/{owner}"
        self._path = f"{self._owner_path}/{run}"
        self._run = run

    def create(self) -> None:
        """Create the run's directory and prove that it can be written.

        Raises:
            StateDirError: it cannot.
        """
        try:
            self._fs.create_dir(self._path, recursive=True)
            probe = f"{self._path}/.probe"
            with self._fs.open_output_stream(probe) as out:
                out.write(b"probe")
            self._fs.delete_file(probe)
        except OSError as exc:
            raise self._unwritable(exc) from None

    def remove_others(self) -> None:
        """Remove what earlier runs of the same source left."""
        selector = fs.FileSelector(self._owner_path, allow_not_found=True)
        for info in self._fs.get_file_info(selector):
            if info.base_name not in (self._run, SIGNALS, REPORTS, DEAD_LETTERS, SCHEMA_HISTORY):
                self._try_remove(info)

    def remove_all(self) -> None:
        """Remove the run's directory."""
        self._try_remove(self._fs.get_file_info(self._path))

    def write(self, name: str, data: SegmentData) -> None:
        """Write a segment.

        Raises:
            StateDirError: the directory is gone, full or not writable.
        """
        path = f"{self._path}/{name}"
        try:
            with self._fs.open_output_stream(path, buffer_size=0) as out:
                for part in data.to_parts():
                    out.write(part)
        except OSError as exc:
            raise self._unwritable(exc) from None

    def read(self, name: str) -> SegmentData:
        """Read a segment.

        Raises:
            LogGoneError: the file isn't there.
        """
        path = f"{self._path}/{name}"
        try:
            with self._fs.open_input_file(path) as file:
                return SegmentData.from_buffer(memoryview(file.read_buffer()), name)
        except FileNotFoundError:
            raise LogGoneError(
                f"The log segment {path} is missing.",
                "If state.dir was emptied, restart the query: the log is read again from the source. "
                "If this is an executor, state.dir must be a directory that the driver and all executors share.",
            ) from None

    def exists(self, segment: Segment) -> bool:
        """Tell whether a segment's file is there."""
        info = self._fs.get_file_info(f"{self._path}/{segment.name}")
        return bool(info.type == fs.FileType.File)

    def remove(self, segment: Segment) -> None:
        """Remove a segment's file; one that is gone already is fine."""
        self.remove_file(segment.name)

    def remove_file(self, name: str) -> None:
        """Remove a file of this run; one that is gone already is fine."""
        self._try_remove(self._fs.get_file_info(f"{self._path}/{name}"))

    def _try_remove(self, info: Any) -> None:
        try:
            if info.type == fs.FileType.Directory:
                self._fs.delete_dir(info.path)
            elif info.type == fs.FileType.File:
                self._fs.delete_file(info.path)
        except OSError:
            return  # removed by somebody else, or removed by the next run

    def _unwritable(self, exc: OSError) -> StateDirError:
        return StateDirError(
            f"Option 'state.dir' is '{self._uri}', which cannot be written: {exc}.",
            "Make the directory writable for the user that runs the query, free some space, or choose another one.",
        )
