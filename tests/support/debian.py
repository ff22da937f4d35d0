"""Programs from Debian's packages, unpacked beside the system, which stays as it is.

apt works in a root of its own, of an empty system: so every library comes too, libc as well, and programs of a newer
Debian run through the loader that belongs to them.
"""

from __future__ import annotations

import fcntl
import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.guard import Guard
from tests.support.maven import CACHE

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
FALLBACK_MIRROR = "http://deb.debian.org/debian"
LIBRARIES = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")
LOADERS = ("lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2")


@dataclass(frozen=True)
class Packages:
    """What to unpack.

    Args:
        name: of the folder below the cache.
        suite: Debian's suite, such as ``sid``.
        wanted: packages that come with all they depend on.
        alone: packages that come without it.
        kept: patterns of the files that are kept beside the libraries.
    """

    name: str
    suite: str
    wanted: tuple[str, ...]
    alone: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class Programs:
    """Unpacked programs.

    Args:
        tree: the folder that stands for ``/``.
    """

    tree: Path

    def command(self, program: str, *arguments: str) -> list[str]:
        """Return what runs a program, such as ``usr/sbin/mysqld``."""
        loader = next(self.tree / name for name in LOADERS if (self.tree / name).exists())
        libraries = os.pathsep.join(str(self.tree / name) for name in LIBRARIES)
        return [str(loader), "--library-path", libraries, str(self.tree / program), *arguments]


@functools.cache
def programs(packages: Packages) -> Programs:
    """Return the packages' programs where the user of a server can read them; they are downloaded if need be."""
    tree = CACHE / "debian" / packages.name
    with locked(tree):
        if not tree.exists():
            _download(packages, tree)
    return Programs(_readable(tree))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time make a file or folder of the cache."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _readable(tree: Path) -> Path:
    """Return a copy of a tree if this process is root, whose cache a server's unprivileged user can't read."""
    if os.geteuid() != 0:
        return tree
    parent = tempfile.mkdtemp(prefix="floodmark-programs-")
    Guard(f"rm -rf {shlex.quote(parent)}")
    Path(parent).chmod(0o755)
    copy = Path(parent) / tree.name
    shutil.copytree(tree, copy, symlinks=True)
    return copy


def _download(packages: Packages, tree: Path) -> None:
    with tempfile.TemporaryDirectory(dir=tree.parent) as scratch:
        apt, whole, kept = Path(scratch) / "apt", Path(scratch) / "whole", Path(scratch) / "kept"
        options = _apt_root(apt, packages.suite)
        _run("apt-get", *options, "update")
        _run("apt-get", *options, "--download-only", "--no-install-recommends", "-y", "install", *packages.wanted)
        archives = apt / "cache" / "archives"
        if packages.alone:
            _run("apt-get", *options, "download", *packages.alone, cwd=archives)
        for archive in sorted(archives.glob("*.deb")):
            _run("dpkg", "-x", str(archive), str(whole))
        for pattern in (*LOADERS, *(f"{folder}/*.so*" for folder in LIBRARIES), *packages.kept):
            for path in whole.glob(pattern):
                target = kept / path.relative_to(whole)
                target.parent.mkdir(parents=True, exist_ok=True)
                if not path.is_dir():
                    shutil.copy2(path, target, follow_symlinks=False)
        kept.rename(tree)


def _apt_root(root: Path, suite: str) -> list[str]:
    """Make a root of an empty system and return apt's options for it."""
    for name in ("etc", "state/lists/partial", "cache/archives/partial"):
        (root / name).mkdir(parents=True)
    (root / "state" / "status").touch()
    (root / "etc" / "sources.list").write_text(f"deb [signed-by={KEYRING}] {_mirror()} {suite} main\n")
    settings = {
        "Dir::Etc": root / "etc",
        "Dir::State": root / "state",
        "Dir::State::status": root / "state" / "status",
        "Dir::Cache": root / "cache",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::Retries": "3",
    }
    return [f"-o{name}={value}" for name, value in settings.items()]


def _mirror() -> str:
    """Return the mirror that the machine uses already."""
    query = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"]
    sites = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
    return next((site for site in sites if site.rstrip("/").endswith("/debian")), FALLBACK_MIRROR)


def _run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()[-2000:]}")
