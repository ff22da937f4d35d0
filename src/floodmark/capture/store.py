"""The state directory: writing, reading and removing segment files."""

from __future__ import annotations

from typing import Any

from pyarrow import fs

from floodmark.capture.files import make_private, open_filesystem, state_dir_error
from floodmark.capture.segment import Segment, SegmentData
from floodmark.errors import DamagedFileError, LogGoneError, StateDirError

SIGNALS = "signals"
"""The directory beside those of the runs that signals wait in."""
REPORTS = "reports"
"""The one that the tasks of micro-batches report in."""
DEAD_LETTERS = "dead-letters"
"""The one that keeps records which could not be decoded."""
SCHEMA_HISTORY = "schema-history"
"""The one that keeps what is known of the tables at earlier places of the log."""
SPOOL = "spool"
"""The one that keeps transactions whose outcome is not known yet."""


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
        self._owner = owner
        self._run = run

    def create(self) -> None:
        """Create the run's directory, prove that it can be written, and keep other users out of the source's one.

        Raises:
            StateDirError: it cannot.
        """
        try:
            self._fs.create_dir(self._path, recursive=True)
            make_private(self._fs, self._owner_path)
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
            if info.base_name not in (self._run, SIGNALS, REPORTS, DEAD_LETTERS, SCHEMA_HISTORY, SPOOL):
                self._try_remove(info)

    def remove_all(self) -> None:
        """Remove the run's directory."""
        self._try_remove(self._fs.get_file_info(self._path))

    def write(self, name: str, data: SegmentData) -> None:
        """Write a segment.

        It is neither synced nor renamed into place: whoever reads it is told its name when it is whole, and after a
        crash the log is read again.

        Raises:
            StateDirError: the directory is gone, full or not writable.
        """
        path = f"{self._path}/{name}"
        try:
            with self._fs.open_output_stream(path, buffer_size=0) as out:
                for part in data.to_parts(self._full_name(name)):
                    out.write(part)
        except OSError as exc:
            raise self._unwritable(exc) from None

    def read(self, name: str) -> SegmentData:
        """Read a segment.

        Raises:
            LogGoneError: the file isn't there.
            DamagedFileError: it is not what was written.
            StateDirError: it cannot be read.
        """
        path = f"{self._path}/{name}"
        try:
            with self._fs.open_input_file(path) as file:
                return SegmentData.from_buffer(memoryview(file.read_buffer()), self._full_name(name))
        except FileNotFoundError:
            raise LogGoneError(
                f"The log segment {path} is missing.",
                "If state.dir was emptied, restart the query: the log is read again from the source. "
                "If this is an executor, state.dir must be a directory that the driver and all executors share.",
            ) from None
        except DamagedFileError as exc:
            raise DamagedFileError(
                f"{exc.what} The file is {path}.",
                "Restart the query: what the file held is read again from the source. See whether the disk is faulty, "
                "or another program writes to state.dir.",
            ) from None
        except OSError as exc:
            raise StateDirError(
                f"The log segment {path} cannot be read: {exc}.",
                "Restart the query: the log is read again from the source. See whether the disk is faulty.",
            ) from None

    def _full_name(self, name: str) -> str:
        """Return what a file's checksum calls it, so that a file of another run or source is not taken for it."""
        return f"{self._owner}/{self._run}/{name}"

    def exists(self, segment: Segment) -> bool:
        """Return whether a segment's file is there."""
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
        return state_dir_error(
            self._uri,
            "which cannot be written",
            exc,
            "Make the directory writable for the user that runs the query, free some space, or choose another one.",
        )
