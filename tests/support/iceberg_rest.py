"""A REST catalogue of Iceberg tables: the server of Iceberg's own tests, over a database."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from tests.support.iceberg_spark import SPARK, iceberg_jars
from tests.support.maven import listed
from tests.support.older import installed
from tests.support.patience import within

_JARS = Path(__file__).with_name("iceberg_rest_jars.txt")
_OF_SPARK = ("jackson-", "avro-1", "slf4j-api", "hadoop-client-", "log4j", "commons-", "Roaring")
"""Beginnings of the names of jars that the server needs and Spark has."""


@contextmanager
def running_rest_catalogue(backend: Mapping[str, str]) -> Iterator[str]:
    """Yield the URI of a server; it ends with the block.

    Args:
        backend: properties of the catalogue that it serves.

    Raises:
        RuntimeError: it doesn't start.
    """
    spark = installed(SPARK)
    assert spark is not None
    own = [path for path in (spark / "pyspark" / "jars").glob("*.jar") if path.name.startswith(_OF_SPARK)]
    driver = [path for path in iceberg_jars() if path.name.startswith("postgresql")]
    path = os.pathsep.join(map(str, [*listed(_JARS, "iceberg"), *own, *driver]))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {f"CATALOG_{_variable(name)}": value for name, value in {**backend, "rest.port": str(port)}.items()}
    command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", path, "org.apache.iceberg.rest.RESTCatalogServer"]
    uri = f"http://127.0.0.1:{port}"
    with (
        TemporaryFile() as log,
        subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **variables}) as server,
    ):
        try:
            until = time.monotonic() + within(60)
            while not _answers(uri):
                if server.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    raise RuntimeError(log.read().decode(errors="replace")[-4000:])
                time.sleep(0.1)
            yield uri
        finally:
            server.kill()


def _variable(name: str) -> str:
    """Return the name of the variable in which the server finds a property."""
    return name.replace("-", "__").replace(".", "_").upper()


def _answers(uri: str) -> bool:
    try:
        with urllib.request.urlopen(f"{uri}/v1/config", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False
