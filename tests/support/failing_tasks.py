"""A mirror some of whose tasks fail after they have written, so that Spark runs them again.

Its only argument is a JSON document: ``options`` of the source, ``out``, ``checkpoint``, ``failure`` (``error``, or
``worker``: the task's process is killed), ``marks`` (a directory that counts the failures) and ``times`` (how many
there are).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from floodmark.spark.sinks import mirror
from floodmark.spark.sinks.mirrors import mirror as mirrored
from tests.support.available_now import ENDING, start_to_end

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
MASTER = "local[2,3]"
"""Two tasks at a time, each of which may be run three times."""


def failing(work: Work, failure: str, marks: str, times: int) -> Work:
    """Return what a task does: of those that write a table's files, some fail after that."""

    def attempt(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        results = list(work(batches))
        number = len(os.listdir(marks))
        if number < times and any(batch.num_rows for batch in results):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(f"{marks}/{number}", os.O_CREAT | os.O_EXCL))
                if failure == "error":
                    raise RuntimeError("a task fails after it has written")
                os.kill(os.getpid(), signal.SIGKILL)
        yield from results

    return attempt


def main() -> None:
    """Run the query to the end of the log."""
    spec = json.loads(sys.argv[1])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    parts_of: Any = mirror._parts_of
    mirror._parts_of = lambda *given: failing(parts_of(*given), spec["failure"], spec["marks"], spec["times"])
    spark = SparkSession.builder.master(MASTER).config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    stream = spark.readStream.format("floodmark").options(**spec["options"], **ENDING).load()
    writer = mirrored(stream, spec["out"], spec["options"]).option("checkpointLocation", spec["checkpoint"])
    start_to_end(writer).awaitTermination()
    print("ENDED with", len(list(Path(spec["marks"]).iterdir())), "failures", flush=True)


if __name__ == "__main__":
    main()
