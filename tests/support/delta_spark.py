"""Delta's own Spark, beside the tests: it reads the tables that Floodmark writes, and changes them as other tools do.

Delta has no release for the Spark that the tests run on, so a newest older one runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from floodmark.changes.arrow_tables import packed, unpacked
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


DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What a session needs to be Delta's, beside the jars."""


def delta_jars() -> list[Path]:
    """Return Delta's jars; those that aren't there are downloaded."""
    return [jar(path, digest, "delta") for path, digest in _JARS.items()]


def delta_environment() -> dict[str, str]:
    """Return the variables with which Python imports Delta's Spark, and not the tests' own."""
    spark = installed(SPARK) or Path(pyspark.__file__).parent.parent
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

    def _sent(self, what: str, statement: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([what, statement]), file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith(_MARK):
                result, error = json.loads(line.removeprefix(_MARK))
                if error is not None:
                    raise RuntimeError(error)
                return str(result)
        self._log.seek(0)
        raise RuntimeError(self._log.read().decode(errors="replace")[-4000:])


@contextmanager
def running_delta_spark() -> Iterator[DeltaSpark]:
    """Yield a session; it ends with the block."""
    jars = ",".join(map(str, delta_jars()))
    # The archive of classes of the tests' own Spark is another version's.
    environment = {**os.environ, **delta_environment(), quick_start.OPTIONS: quick_start.FLAGS}
    root = Path(__file__).parent.parent.parent
    with (
        TemporaryFile() as log,
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.delta_spark", jars],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
            cwd=root,
        ) as process,
    ):
        try:
            yield DeltaSpark(process, log)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def main() -> None:
    """Run the statements that come as lines of JSON, and print what each results in."""
    spark = (
        SparkSession.builder.master("local[1]")
        .config(map={**DELTA})
        .config("spark.ui.enabled", "false")
        .config("spark.jars", sys.argv[1])
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    for line in sys.stdin:
        try:
            what, statement = json.loads(line)
            found = spark.sql(statement)
            result = ["" if what == "run" else b64encode(packed(found.toArrow())).decode(), None]
        except Exception as error:
            result = [None, str(error)]
        print(_MARK + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
