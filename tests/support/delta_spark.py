"""Delta's own Spark, beside the tests: it reads the tables that Floodmark writes, and changes them as other tools do.

It also writes tables, as mirrors with ``engine=spark`` do.

Delta has no release for the Spark that the tests run on, so a newest older one runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from floodmark import errors
from floodmark.changes.arrow_tables import packed, unpacked
from floodmark.json_data import Json
from floodmark.sinks.delta.parts import MESSAGE, Part
from floodmark.sinks.delta.protocols import TableListener, TableWriter
from floodmark.sinks.delta.stores import table_folder
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.delta.runtime import SETTINGS
from floodmark.spark.delta.table import SparkTable
from floodmark.spark.delta.writer import SparkWriter
from floodmark.spark.targets.sessions import Sessions
from tests.support import quick_start
from tests.support.maven import jar
from tests.support.older import installed

SPARK = "4.2.1"
_JARS = {
    "io/delta/delta-spark_4.2_2.13/4.4.0/delta-spark_4.2_2.13-4.4.0.jar": (
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead"
    ),
    "io/delta/delta-storage/4.4.0/delta-storage-4.4.0.jar": (
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"
    ),
}
_MARK = "RESULT "
TABLE, FOLDER = "db.t", "t"
"""The name of the table that is written, and of its directory."""


def home() -> Path | None:
    """Return the directory of the Spark that Delta has a release for; None: it is the one that runs here."""
    return installed(SPARK)


def delta_jars() -> list[Path]:
    """Return Delta's jars; those that aren't there are downloaded."""
    return [jar(path, digest, "delta") for path, digest in _JARS.items()]


def properties() -> dict[str, str]:
    """Return the properties with which that Spark has Delta's runtime; the jars are downloaded if they aren't there."""
    return {
        "spark.jars": ",".join(map(str, delta_jars())),
        "spark.databricks.delta.snapshotPartitions": "1",
        **SETTINGS,
    }


def delta_environment() -> dict[str, str]:
    """Return the variables with which Python imports Delta's Spark, and not the tests' own."""
    spark = home() or Path(pyspark.__file__).parent.parent
    return {
        "SPARK_HOME": str(spark / "pyspark"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(spark), os.environ.get("PYTHONPATH")])),
    }


class DeltaSpark:
    """Runs SQL in Delta's Spark."""

    def __init__(self, process: subprocess.Popen[str], log: IO[bytes]) -> None:
        self._process = process
        self._log = log

    def run(self, statement: str) -> None:
        """Run a statement.

        Raises:
            RuntimeError: it failed; the message is Spark's.
        """
        self._sent("run", statement)

    def rows(self, query: str) -> pa.Table:
        """Return the rows of a query.

        Raises:
            RuntimeError: it failed; the message is Spark's.
        """
        return unpacked(b64decode(self._sent("rows", query)))

    def writer(
        self,
        location: Path,
        application: str,
        options: Mapping[str, str],
        listener: TableListener,
        written: int | None = None,
    ) -> RemoteWriter:
        """Return what writes the table in the directory ``FOLDER`` of another one with Spark.

        Args:
            application: names the query in the table's log.
            options: the mirror's.
            listener: what is told about the table.
            written: the last micro-batch that the table must have.
        """
        return RemoteWriter(self, self._sent("open", [str(location), application, dict(options), written]), listener)

    def write(
        self, writer: str, batch: int, parts: Sequence[Part]
    ) -> tuple[bool, list[list[Any]], errors.FloodmarkError | None]:
        """Let a writer write a micro-batch.

        Returns:
            Whether the table was changed, the calls of the listener, and the error that the writer raised.
        """
        rows = [{**dict.fromkeys(MESSAGE.names), **part.to_message(TABLE)} for part in parts]
        packed_rows = b64encode(packed(pa.Table.from_pylist(rows, MESSAGE))).decode()
        changed, told, error = json.loads(self._sent("write", [writer, batch, packed_rows]))
        if error is None:
            return changed, told, None
        kind, what, cure = error
        return False, told, getattr(errors, kind)(what, cure)

    def _sent(self, what: str, content: Json) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([what, content]), file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith(_MARK):
                result, error = json.loads(line.removeprefix(_MARK))
                if error is not None:
                    raise RuntimeError(error)
                return str(result)
        self._log.seek(0)
        raise RuntimeError(self._log.read().decode(errors="replace")[-4000:])


class RemoteWriter:
    """A writer in Delta's Spark.

    Args:
        spark: that Spark.
        name: what it calls the writer.
        listener: what is told about the table.
    """

    def __init__(self, spark: DeltaSpark, name: str, listener: TableListener) -> None:
        self._spark = spark
        self._name = name
        self._listener = listener

    def write(self, batch: int, parts: Sequence[Part]) -> bool:
        """Commit a micro-batch, as ``TableWriter`` does."""
        changed, told, error = self._spark.write(self._name, batch, parts)
        for method, *arguments in told:
            getattr(self._listener, method)(*arguments)
        if error is not None:
            raise error
        return changed


@contextmanager
def running_delta_spark() -> Iterator[DeltaSpark]:
    """Yield a session; it ends with the block."""
    with running_process("tests.support.delta_spark", properties(), delta_environment()) as (process, log):
        yield DeltaSpark(process, log)


@contextmanager
def running_process(
    module: str, spark: Mapping[str, str], environment: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[str], IO[bytes]]]:
    """Yield a process that takes lines of JSON, and its log; it ends with the block.

    Args:
        module: what it runs.
        spark: properties of its Spark.
        environment: variables with which Python imports that Spark.
    """
    # The archive of classes of the tests' own Spark is another version's.
    given = {**os.environ, **environment, quick_start.OPTIONS: quick_start.FLAGS}
    root = Path(__file__).parent.parent.parent
    with (
        TemporaryFile() as log,
        subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(dict(spark))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=given,
            cwd=root,
        ) as process,
    ):
        try:
            yield process, log
        finally:
            assert process.stdin is not None
            process.stdin.close()


def main(kind: type[Writers]) -> None:
    """Run the statements that come as lines of JSON, and print what each results in.

    Args:
        kind: the writers of its tables.
    """
    spark = (
        SparkSession.builder.master("local[1]")
        .config(map=json.loads(sys.argv[1]))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        # VACUUM lists a directory with as many tasks, ten thousand by default.
        .config("spark.sql.sources.parallelPartitionDiscovery.parallelism", "1")
        .config("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    writers = kind(spark)
    for line in sys.stdin:
        try:
            what, content = json.loads(line)
            if what == "open":
                result = [writers.open(*content), None]
            elif what == "write":
                result = [writers.write(*content), None]
            else:
                found = spark.sql(content)
                result = ["" if what == "run" else b64encode(packed(found.toArrow())).decode(), None]
        except Exception as error:
            result = [None, str(error)]
        print(_MARK + json.dumps(result), flush=True)


class Told:
    """Keeps the calls of a listener."""

    def __init__(self) -> None:
        self.calls: list[list[Any]] = []

    def is_missing(self, table: str, keyed: bool, torn: bool = False) -> None:
        self.calls.append(["is_missing", table, keyed, torn])

    def exists(self, table: str) -> None:
        self.calls.append(["exists", table])

    def gets_columns(self, table: str, columns: Sequence[str]) -> None:
        self.calls.append(["gets_columns", table, list(columns)])


class Writers:
    """The writers of tables.

    Args:
        spark: what they write with.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._sessions = self._sessions_like(spark)
        self._open: list[tuple[TableWriter, Told]] = []

    def open(self, location: str, application: str, options: Mapping[str, str], written: int | None) -> str:
        """Make a writer and return its name."""
        told, parsed = Told(), MirrorOptions.parse(options)
        self._open.append((self._writer(location, application, parsed, told, written), told))
        return str(len(self._open) - 1)

    def _sessions_like(self, spark: SparkSession) -> Sessions:
        return Sessions(spark)

    def _writer(
        self, location: str, application: str, options: MirrorOptions, told: Told, written: int | None
    ) -> TableWriter:
        table, folder = SparkTable(location, FOLDER, options.catalog_schema), table_folder(location, FOLDER)
        return SparkWriter(self._sessions, table, folder, application, TABLE, options, told, written)

    def write(self, name: str, batch: int, rows: str) -> str:
        """Let a writer write a micro-batch, and return what came of it as JSON."""
        writer, told = self._open[int(name)]
        told.calls.clear()
        parts = [Part.from_message(row) for row in unpacked(b64decode(rows)).to_pylist()]
        changed, error = False, None
        try:
            changed = writer.write(batch, parts)
        except errors.FloodmarkError as raised:
            error = [type(raised).__name__, raised.what, raised.cure]
        return json.dumps([changed, told.calls, error])


if __name__ == "__main__":
    main(Writers)
