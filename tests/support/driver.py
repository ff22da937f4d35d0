"""Starting, killing and waiting for a driver process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from tests.support import delta_spark, iceberg_spark, quick_start
from tests.support.older import installed
from tests.support.patience import within

_SPARK_GAVE_UP = b"Python worker failed to connect back"
"""Spark waits 10 s for a Python process to start, which no setting changes; on a busy machine that may be too short."""


class Driver:
    """A query in a process of its own. One that Spark ends because the machine is too busy is started again.

    Args:
        options: the source's options.
        work: directory for the checkpoint and the output.
        available_now: whether the query ends when it has caught up.
        master: the Spark master.
        every: the interval of the trigger.
        mirrors: options of a mirror, which writes Delta tables below the output directory; None: Parquet files. With
            ``engine=spark`` it runs on the Spark that Delta, or Iceberg, has a release for, unless they name the
            catalogue.
        jdbc: options of the sink jdbc; None: it isn't the sink.
        kafka: those of the sink kafka.
        prefix: what begins the command.
        properties: more properties of Spark.
        spark: directory that another version of PySpark is installed in; None: the one that runs here.
    """

    def __init__(
        self,
        options: dict[str, str],
        work: Path,
        available_now: bool = False,
        master: str = "local[2]",
        every: str = "0 seconds",
        spark: Path | None = None,
        mirrors: dict[str, str] | None = None,
        prefix: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        jdbc: dict[str, str] | None = None,
        kafka: dict[str, str] | None = None,
    ) -> None:
        quick_start.prepare()
        self.out = work / "out"
        self._log = work / "driver.log"
        spec = {
            "options": options,
            "out": str(self.out),
            "checkpoint": str(work / "checkpoint"),
            "available_now": available_now,
            "every": every,
            "master": master,
            "mirrors": mirrors,
            "jdbc": jdbc,
            "kafka": kafka,
            "properties": dict(properties or {}),
        }
        if mirrors is not None and mirrors.get("format") == "iceberg" and "catalog.type" not in mirrors:
            spark = installed(iceberg_spark.SPARK)
        elif mirrors is not None and mirrors.get("engine") == "spark":
            spec["properties"], spark = {**delta_spark.properties(), **(properties or {})}, delta_spark.home()
        self._environment = {**os.environ, "FLOODMARK_LOG": "info"}
        if spark is not None:
            paths = filter(None, [str(spark), os.environ.get("PYTHONPATH")])
            # The tests' own Spark and its archive of classes are another version's.
            home = {"SPARK_HOME": str(spark / "pyspark"), quick_start.OPTIONS: quick_start.FLAGS}
            self._environment |= home | {"PYTHONPATH": os.pathsep.join(paths)}
        self._command = [*prefix, sys.executable, "-m", "tests.chaos.driver", json.dumps(spec)]
        self._start()
        self._checkpoint = work / "checkpoint"

    def _start(self) -> None:
        with self._log.open("ab") as log:
            self._begin = log.tell()
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self._environment,
            )

    def _started_again(self) -> bool:
        """Start the query again if Spark has ended it because a process took too long; return whether that was so."""
        if self._process.poll() in (None, 0) or _SPARK_GAVE_UP not in self._log.read_bytes()[self._begin :]:
            return False
        self._start()
        return True

    def batches(self) -> int:
        """Return how many micro-batches have been planned; of these, Spark keeps the last hundred."""
        offsets = self._checkpoint / "offsets"
        numbers = (int(path.name) for path in offsets.iterdir() if path.name.isdigit()) if offsets.exists() else ()
        return max(numbers, default=-1) + 1

    def wait_for_batches(self, count: int, seconds: float) -> bool:
        """Wait until ``count`` micro-batches have been planned; return whether that happened in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.batches() >= count:
                return True
            if self._process.poll() is not None and not self._started_again():
                return False
            time.sleep(0.02)
        return False

    def kill(self) -> None:
        """Kill the driver and its JVM, as a lost machine would; Spark's Python workers see the end of their pipe."""
        if self._process.poll() is not None:
            return
        root = psutil.Process(self._process.pid)
        for victim in [root, *root.children(recursive=True)]:
            # Workers come and go, also between the listing and the question for their name.
            with contextlib.suppress(psutil.NoSuchProcess):
                if victim == root or victim.name() == "java":
                    victim.send_signal(signal.SIGKILL)
        self._process.wait(within(30))

    def take_the_sink_away(self) -> None:
        """Let the sink fail until the query has given up, and bring it back."""
        away = self.out.with_name("away")
        self.out.rename(away)
        self.out.write_text("This is no directory.")
        assert self.wait(within(60)) != 0
        self.out.unlink()
        away.rename(self.out)

    def ended(self, seconds: float) -> bool:
        """Return whether the query ends within some time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll() is not None

    def wait(self, seconds: float) -> int:
        """Wait for the query to end.

        Raises:
            TimeoutError: it did not; the message has the end of its log.
        """
        deadline = time.monotonic() + seconds
        try:
            while True:
                code = self._process.wait(max(deadline - time.monotonic(), 0))
                if not self._started_again():
                    return code
        except subprocess.TimeoutExpired:
            self.kill()
            raise TimeoutError(f"the query did not end in {seconds} s:\n{self.log()[-3000:]}") from None

    def log(self) -> str:
        """Return what the drivers of this work directory wrote."""
        return self._log.read_text(errors="replace")
