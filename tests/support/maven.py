"""Files from Maven Central, which are downloaded once and proven to be what was expected."""

from __future__ import annotations

import hashlib
import os
import tarfile
import urllib.request
from pathlib import Path

REPOSITORY = "https://repo1.maven.org/maven2"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "floodmark"
DOWNLOAD_S = 120.0


def jar(path: str, digest: str, directory: str) -> Path:
    """Return a jar; it is downloaded if it isn't there.

    Args:
        path: in the repository.
        digest: its SHA-256.
        directory: where it is kept, below the cache.

    Raises:
        RuntimeError: it isn't what was expected.
    """
    kept = CACHE / directory / Path(path).name
    if not kept.exists():
        with urllib.request.urlopen(f"{REPOSITORY}/{path}", timeout=DOWNLOAD_S) as response:
            content = response.read()
        if hashlib.sha256(content).hexdigest() != digest:
            raise RuntimeError(f"{REPOSITORY}/{path} is not what was expected.")
        kept.parent.mkdir(parents=True, exist_ok=True)
        # Another run may be downloading too; the name appears with the whole content.
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(content)
        part.replace(kept)
    return kept


def unpacked(path: str, digest: str, directory: str) -> Path:
    """Return a folder with the content of an archive; it is downloaded if it isn't there.

    Args:
        path: in the repository.
        digest: its SHA-256.
        directory: where it is kept, below the cache.

    Raises:
        RuntimeError: it isn't what was expected.
    """
    archive = jar(path, digest, directory)
    folder = archive.parent / archive.name.removesuffix(".tar.gz")
    if not folder.exists():
        part = folder.with_suffix(f".{os.getpid()}")
        with tarfile.open(archive) as content:
            content.extractall(part, filter="data")
        part.replace(folder)
    return folder


def listed(names: Path, directory: str) -> list[Path]:
    """Return the jars of a list, of which each line is a SHA-256 and a path in the repository; see `jar`.

    Raises:
        RuntimeError: a jar isn't what the list says.
    """
    lines = names.read_text(encoding="utf-8").splitlines()
    return [jar(path, digest, directory) for digest, path in map(str.split, lines)]
