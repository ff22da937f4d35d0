"""A filesystem of a few pages that can get full, in a namespace of its own: it needs no rights of the user."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from floodmark.demo.embedded import Owner

_MOUNT = 'mount -t tmpfs -o "size=$1" none "$2" && echo mounted && exec sleep infinity'
BALLAST = "ballast"
PAGE = 4096


class SmallDisk:
    """A mounted filesystem that only the processes see that are started with ``command``.

    Args:
        place: the directory that it is mounted at.
        size: as ``mount`` takes it, such as ``16m``.
        owner: the user that mounts it, to whom it belongs; this process's if not given.

    Attributes:
        seen: where others find what is on it.
    """

    def __init__(self, place: Path, size: str, owner: Owner | None = None) -> None:
        place.mkdir()
        self._holder = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _MOUNT, "sh", size, str(place)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **(owner or {}),
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"mounted\n":
            _, error = self._holder.communicate()
            pytest.skip(f"no filesystem can be mounted here: {error.decode().strip()}")
        self.seen = Path(f"/proc/{self._holder.pid}/root{place}")

    @property
    def command(self) -> list[str]:
        """What begins a command that sees the filesystem."""
        target = str(self._holder.pid)
        return ["nsenter", "--preserve-credentials", "--user", "--mount", "--target", target, f"--wd={os.getcwd()}"]

    def close(self) -> None:
        """Give it up."""
        self._holder.kill()
        self._holder.wait()


def fill(disk: Path, pages: int = 0) -> None:
    """Fill a filesystem.

    Args:
        disk: a directory of it.
        pages: how many are left.
    """
    found = os.statvfs(disk)
    wanted = found.f_bavail * found.f_frsize - pages * PAGE
    if wanted > 0:
        with (disk / BALLAST).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, wanted)


def free(disk: Path) -> None:
    """Undo what ``fill`` did."""
    (disk / BALLAST).unlink(missing_ok=True)
