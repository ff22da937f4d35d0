"""Creates files and directories in ``state.dir``: private to the user that runs the query, atomic, and durable.

Segments and dead letters hold raw rows, so no other user may read them, whatever the process's umask is. Only
local filesystems have such permissions; object stores and HDFS have their own rules.

A file that other processes find by its name is written under another name first (``write_atomically``), so that they
see all of it or nothing. Data that the query can't read again from the source is also synced to disk before anything
relies on it (``write_durably``). Object stores do both by themselves when a file is closed.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from typing import BinaryIO, cast

import pyarrow as pa
from pyarrow import fs

from floodmark.errors import StateDirError
from floodmark.redact import shown_uri, without_uri_secrets

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600

Part = bytes | memoryview


def open_filesystem(uri: str, private: bool = True) -> tuple[fs.FileSystem, str]:
    """Return the filesystem and path of ``state.dir``.

    Args:
        uri: a local path or a URI.
        private: whether files and directories created on a local filesystem are for this user alone.

    Raises:
        StateDirError: PyArrow cannot open the URI.
    """
    try:
        filesystem, path = fs.FileSystem.from_uri(uri) if "://" in uri else (fs.LocalFileSystem(), os.path.abspath(uri))
    except (OSError, ValueError, pa.ArrowException) as exc:
        cure = "Give a local path or a URI of a filesystem that PyArrow opens."
        raise state_dir_error(uri, "which cannot be opened", exc, cure) from None
    local = isinstance(filesystem, fs.LocalFileSystem)
    return (PrivateLocalFileSystem() if private and local else filesystem), str(path)


def state_dir_error(uri: str, problem: str, exc: Exception, cure: str) -> StateDirError:
    """Return the error for a problem with ``state.dir``; credentials in a URI are not shown.

    Args:
        uri: the option's value.
        problem: what can't be done, as a clause that follows the option's value.
        exc: the cause.
        cure: what the user can do.
    """
    reason = without_uri_secrets(uri, str(exc)).rstrip(".")
    return StateDirError(f"Option 'state.dir' is '{shown_uri(uri)}', {problem}: {reason}.", cure)


class PrivateLocalFileSystem(fs.LocalFileSystem):  # type: ignore[misc]
    """The local filesystem; directories and files that are created through it have the modes 0700 and 0600."""

    def create_dir(self, path: str, *, recursive: bool = True) -> None:
        """Create a directory; one that exists keeps its mode."""
        parent = os.path.dirname(path.rstrip("/"))
        if recursive and parent and not os.path.isdir(parent):
            self.create_dir(parent)
        try:
            os.mkdir(path, DIRECTORY_MODE)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
        else:
            _restrict(path, DIRECTORY_MODE)

    def open_output_stream(
        self,
        path: str,
        compression: str | None = "detect",
        buffer_size: int | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> pa.NativeFile:
        """Open a file for writing and empty it."""
        # PyArrow creates files with 0666 less the umask, but keeps the mode of one that exists.
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            _restrict(file, FILE_MODE)
        finally:
            os.close(file)
        return super().open_output_stream(path, compression, buffer_size, metadata)


def write_atomically(filesystem: fs.FileSystem, path: str, parts: Iterable[Part]) -> None:
    """Write a file atomically, replacing one that has its name.

    The directory is created if it is missing. While the file is written, its name begins with a dot.

    Args:
        filesystem: where it goes.
        path: of the file.
        parts: its content, as consecutive pieces.

    Raises:
        OSError: the file cannot be written; what was written of it is removed.
    """
    _write(filesystem, path, parts, durable=False)


def write_durably(filesystem: fs.FileSystem, path: str, parts: Iterable[Part]) -> None:
    """Write a file atomically, so that it survives a power failure once this returns.

    On a local filesystem the content is synced before the file gets its name, and its directory after that; so are
    directories that are created for it. As a directory is synced as a whole, earlier removals in it are durable too.

    Args:
        filesystem: where it goes.
        path: of the file.
        parts: its content, as consecutive pieces.

    Raises:
        OSError: the file cannot be written; what was written of it is removed.
    """
    _write(filesystem, path, parts, durable=True)


def _write(filesystem: fs.FileSystem, path: str, parts: Iterable[Part], durable: bool) -> None:
    durable = durable and isinstance(filesystem, fs.LocalFileSystem)
    directory, _, name = path.rpartition("/")
    unfinished = f"{directory}/.{name}"
    missing = list(_missing(directory)) if durable else []
    filesystem.create_dir(directory, recursive=True)
    # A new directory survives a power failure only once its parent, which holds its name, is synced.
    for made in missing:
        _sync(os.path.dirname(made))
    try:
        with filesystem.open_output_stream(unfinished, buffer_size=0) as out:
            for part in parts:
                out.write(part)
        if durable:
            _sync(unfinished)
        filesystem.move(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            filesystem.delete_file(unfinished)
        raise
    if durable:
        _sync(directory)


def _missing(directory: str) -> Iterable[str]:
    """Yield a directory and its parents that don't exist, the innermost first."""
    while directory and not os.path.isdir(directory):
        yield directory
        directory = os.path.dirname(directory)


def _sync(path: str) -> None:
    """Sync a file or directory to disk."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def open_scratch(uri: str, owner: str) -> BinaryIO:
    """Open a temporary file without a name, which disappears when it is closed or the process ends.

    It is in the source's directory in ``state.dir`` if that is local, else among the system's temporary files.

    Args:
        uri: the option ``state.dir``.
        owner: the name of the source's directory below it.

    Raises:
        OSError: the file cannot be created.
        StateDirError: PyArrow cannot open the URI.
    """
    filesystem, root = open_filesystem(uri)
    directory = None
    if isinstance(filesystem, fs.LocalFileSystem):
        directory = f"{root.rstrip('/')}/{owner}"
        filesystem.create_dir(directory, recursive=True)
    return cast(BinaryIO, tempfile.TemporaryFile(dir=directory))


def make_private(filesystem: fs.FileSystem, directory: str) -> None:
    """Remove other users' permissions, which earlier versions left, from a directory and everything in it.

    Other users' files and the targets of symbolic links are left alone.

    Args:
        filesystem: where the directory is; only a local one has permissions.
        directory: one that only Floodmark writes to.
    """
    if not isinstance(filesystem, fs.LocalFileSystem):
        return
    _restrict(directory, DIRECTORY_MODE)
    for parent, directories, files in os.walk(directory):
        for name in directories:
            _restrict(f"{parent}/{name}", DIRECTORY_MODE)
        for name in files:
            _restrict(f"{parent}/{name}", FILE_MODE)


def _restrict(path: str | int, mode: int) -> None:
    """Set the mode of a file or directory if it is this user's; ignore errors of mounts without permissions."""
    with contextlib.suppress(OSError):
        found = os.stat(path) if isinstance(path, int) else os.lstat(path)
        if not stat.S_ISLNK(found.st_mode) and found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != mode:
            os.chmod(path, mode)
