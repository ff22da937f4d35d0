"""Writes, reads and removes segment files in the state directory."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from pyarrow import fs

from floodmark.capture.files import make_private, open_filesystem, state_dir_error
from floodmark.capture.segment import Segment, SegmentData
from floodmark.errors import DamagedFileError, LogGoneError, StateDirError

SIGNALS = "signals"
"""Subdirectory of waiting signals, beside those of the runs."""
MIRRORS = "mirrors"
"""Subdirectory of what mirrors remember."""
REPORTS = "reports"
"""Subdirectory of the reports that the tasks of micro-batches write."""
DEAD_LETTERS = "dead-letters"
"""Subdirectory of records that could not be decoded."""
SCHEMA_HISTORY = "schema-history"
"""Subdirectory of the schema history."""
SPOOL = "spool"
"""Subdirectory of transactions whose outcome is not known yet."""


def is_run(uri: str, owner: str) -> bool:
    """Return whether a process of this machine runs a query of the source; False if that can't be known.

    Args:
        uri: the option ``state.dir``.
        owner: name of the source's directory below it.

    Raises:
        StateDirError: the directory cannot be opened.
    """
    filesystem, root = open_filesystem(uri)
    if not isinstance(filesystem, fs.LocalFileSystem):
        return False
    runs = filesystem.get_file_info(fs.FileSelector(f"{root.rstrip('/')}/{owner}", allow_not_found=True))
    return any(_is_locked(info.path) for info in runs if info.type == fs.FileType.Directory)


def _is_locked(directory: str) -> bool:
    try:
        file = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    return False


class SegmentStore:
    """The segments of one run of a query.

    Each run has a directory of its own, ``<state.dir>/<owner>/<run>``: the files of
    earlier runs are never read again (the source sends the log again), only removed.

    Args:
        uri: the option ``state.dir``.
        owner: name of the source's directory below it.
        run: this run's name.
    """

    def __init__(self, uri: str, owner: str, run: str) -> None:
        self._fs, root = open_filesystem(uri)
        self._uri = uri
        self._owner_path = f"{root.rstrip('/')}/{owner}"
        self._path = f"{self._owner_path}/{run}"
        self._owner = owner
        self._run = run
        self._held: int | None = None

    def create(self) -> None:
        """Create the run's directory, check that it can be written, and make the source's directory private.

        Raises:
            StateDirError: the directory cannot be created or written.
        """
        probe = f"{self._owner_path}/.probe-{self._run}"
        try:
            self._fs.create_dir(self._path, recursive=True)
            self._hold()
            make_private(self._fs, self._owner_path)
            with self._fs.open_output_stream(probe) as out:
                out.write(b"probe")
            with suppress(FileNotFoundError):  # a query that reads the log may have removed it: see take_over
                self._fs.delete_file(probe)
        except OSError as exc:
            raise self._unwritable(exc) from None

    def _hold(self) -> None:
        """Lock the run's directory, so that other processes see that the run goes on; the lock ends with this process.

        Only local directories can be locked.
        """
        self._let_go()
        if not isinstance(self._fs, fs.LocalFileSystem):
            return
        # Another run may have removed the directory just now, and a network's filesystem may know no locks.
        with suppress(OSError):
            self._held = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._held, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def _let_go(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def take_over(self) -> None:
        """Remove what other runs of the same source left, and create this run's directory if one of them removed it.

        For the one run that reads the log; one that waits for it takes over when the other has ended.

        Raises:
            StateDirError: the directory cannot be created.
        """
        selector = fs.FileSelector(self._owner_path, allow_not_found=True)
        for info in self._fs.get_file_info(selector):
            if info.base_name not in (self._run, SIGNALS, MIRRORS, REPORTS, DEAD_LETTERS, SCHEMA_HISTORY, SPOOL):
                self._try_remove(info)
        try:
            self._fs.create_dir(self._path, recursive=True)
        except OSError as exc:
            raise self._unwritable(exc) from None
        self._hold()

    def remove_all(self) -> None:
        """Remove the run's directory."""
        self._let_go()
        self._try_remove(self._fs.get_file_info(self._path))

    def write(self, name: str, data: SegmentData) -> None:
        """Write a segment.

        The file is neither synced nor renamed into place: readers get its name only when it is complete, and after a
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
            LogGoneError: the file is missing.
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
        """Return the name that a file's checksum covers: it distinguishes files of other runs and sources."""
        return f"{self._owner}/{self._run}/{name}"

    def exists(self, segment: Segment) -> bool:
        """Return whether a segment's file exists."""
        info = self._fs.get_file_info(f"{self._path}/{segment.name}")
        return bool(info.type == fs.FileType.File)

    def remove(self, segment: Segment) -> None:
        """Remove a segment's file if it exists."""
        self.remove_file(segment.name)

    def remove_file(self, name: str) -> None:
        """Remove a file of this run if it exists."""
        self._try_remove(self._fs.get_file_info(f"{self._path}/{name}"))

    def _try_remove(self, info: fs.FileInfo) -> None:
        try:
            if info.type == fs.FileType.Directory:
                self._fs.delete_dir(info.path)
            elif info.type == fs.FileType.File:
                self._fs.delete_file(info.path)
        except OSError:
            return  # another process removes it, or the next run does

    def _unwritable(self, exc: OSError) -> StateDirError:
        return state_dir_error(
            self._uri,
            "which cannot be written",
            exc,
            "Make the directory writable for the user that runs the query, free some space, or choose another one.",
        )
