"""Spark for sessions that live for seconds: what they spend on loading and compiling is most of their time.

- The classes that Spark loads for a streaming query are kept in an archive which all JVMs of the tests share.
- What the just-in-time compiler's second stage would gain in so short a life, it costs.
- Spark's Python processes import PySpark from a zip file that holds no compiled modules, so each of them compiles
  what it imports. The tests' Spark is the installed one with such modules beside the others in that file.
"""

from __future__ import annotations

import compileall
import functools
import hashlib
import os
import py_compile
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

from tests.support.debian import locked
from tests.support.maven import CACHE
from tests.support.patience import within

FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable -Xlog:all=warning:stderr"
"""A JVM's warnings belong to where Spark's go; by default they are lines of what the program prints."""
OPTIONS = "SPARK_SUBMIT_OPTS"
"""What Spark's scripts give to the JVM of a session."""
LAUNCHER_OPTIONS = "SPARK_LAUNCHER_OPTS"
TIMEOUT_S = within(600)
UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH
UNUSED = re.compile(r"/(tests|ml|mllib|connect)/|/pyspark/pandas/")
INSTALLED = Path(pyspark.__file__).parent


def configure() -> None:
    """Let the sessions that this process and its children start be quick, as far as what they need has been made."""
    home = _home()
    if not _archive(home).exists():
        # Named and missing, it would keep the JVM from using the JDK's own.
        os.environ[OPTIONS] = FLAGS
        return
    os.environ["SPARK_HOME"] = str(home)
    os.environ[OPTIONS] = f"{FLAGS} -XX:SharedArchiveFile={_archive(home)}"
    os.environ[LAUNCHER_OPTIONS] = FLAGS


@functools.cache
def prepare() -> None:
    """Make what is needed if it isn't there."""
    home = _home()
    archive = _archive(home)
    with locked(home):
        if not archive.exists():
            shutil.rmtree(home, ignore_errors=True)
            _copy_spark(home)
            part = archive.with_suffix(".part")
            own = {
                "SPARK_HOME": str(home),
                OPTIONS: f"{FLAGS} -XX:ArchiveClassesAtExit={part}",
                "PYSPARK_PYTHON": sys.executable,
            }
            with tempfile.TemporaryDirectory() as scratch:
                command = [sys.executable, "-m", "tests.support.quick_start", scratch]
                subprocess.run(command, env=os.environ | own, check=True, timeout=TIMEOUT_S, capture_output=True)
            part.replace(archive)
    configure()


@functools.cache
def _home() -> Path:
    """Return the place of the tests' Spark; it is good for one Java and one Python with PySpark only."""
    java = shutil.which(str(Path(os.environ["JAVA_HOME"]) / "bin" / "java") if "JAVA_HOME" in os.environ else "java")
    version = subprocess.run([java or "java", "-version"], capture_output=True, check=False).stderr if java else b""
    sign = hashlib.sha256(version + f"{sys.version} {INSTALLED}".encode()).hexdigest()[:12]
    return CACHE / "spark" / f"{pyspark.__version__}-{sign}"


def _archive(home: Path) -> Path:
    """Return the place of the archive; a JVM takes it only while Spark's jars are the very files it was made from."""
    jars = sorted((jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in (INSTALLED / "jars").glob("*.jar"))
    return home / f"classes-{hashlib.sha256(repr(jars).encode()).hexdigest()[:12]}.jsa"


def _copy_spark(home: Path) -> None:
    """Make a Spark that is the installed one but for the compiled modules."""
    libraries = home / "python" / "lib"
    libraries.mkdir(parents=True)
    for entry in INSTALLED.iterdir():
        if entry.name != "python":
            (home / entry.name).symlink_to(entry)
    for archive in (INSTALLED / "python" / "lib").glob("*.zip"):
        with tempfile.TemporaryDirectory() as scratch:
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(scratch)
            compileall.compile_dir(scratch, quiet=2, legacy=True, rx=UNUSED, invalidation_mode=UNCHECKED)
            shutil.make_archive(str(libraries / archive.stem), "zip", scratch)


class _Numbers(SimpleDataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:
        return {"n": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[Any, ...]], dict[str, int]]:
        return iter([(start["n"], "row")] if start["n"] < 2 else []), {"n": min(start["n"] + 1, 2)}

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[Any, ...]]:
        return iter([(n, "row") for n in range(start["n"], end["n"])])


class _Source(DataSource):
    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "n bigint, text string"

    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:
        return _Numbers()


def _load_classes(scratch: Path) -> None:
    """Run a query of the kind that the tests run, and end the JVM, which writes the archive then."""
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.dataSource.register(_Source)
    stream = session.readStream.format("numbers").load()
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(scratch / "checkpoint"))
    query = writer.option("path", str(scratch / "out")).start()
    query.processAllAvailable()
    query.stop()
    session.read.parquet(str(scratch / "out")).where("n > 0").groupBy("text").count().collect()
    gateway: Any = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(TIMEOUT_S)


if __name__ == "__main__":
    _load_classes(Path(sys.argv[1]))
