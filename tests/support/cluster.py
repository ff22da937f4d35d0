"""A Spark standalone cluster: a master and two workers of one core each, each a process of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyspark

from floodmark.demo.embedded import free_port
from tests.support import quick_start
from tests.support.patience import within

_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class Cluster:
    """A running cluster.

    Attributes:
        url: names it for drivers.
    """

    def __init__(self, url: str, workers: list[subprocess.Popen[bytes]]) -> None:
        self.url = url
        self._workers = workers

    def executors(self) -> list[psutil.Process]:
        """Return the executors that run."""
        found = []
        for worker in self._workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                for process in psutil.Process(worker.pid).children(recursive=True):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        if _EXECUTOR in process.cmdline():
                            found.append(process)
        return found


@contextmanager
def running_cluster(folder: Path, spark: Path | None = None) -> Iterator[Cluster]:
    """Yield a cluster; it ends with the block.

    Args:
        folder: for logs, and what executors write (``worker1``, ``worker2``).
        spark: directory that another version of PySpark is installed in; None: the one that runs here.
    """
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    home = Path(pyspark.__file__).parent if spark is None else spark / "pyspark"
    if spark is not None:
        paths = filter(None, [str(spark), os.environ.get("PYTHONPATH")])
        env |= {"SPARK_HOME": str(home), quick_start.OPTIONS: quick_start.FLAGS, "PYTHONPATH": os.pathsep.join(paths)}
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> None:
        with (folder / f"{name}.log").open("wb") as log:
            command = [str(home / "bin" / "spark-class"), *arguments]
            processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=folder))

    here = ("--host", "127.0.0.1", "--webui-port", "0")
    try:
        start("master", "org.apache.spark.deploy.master.Master", *here, "--port", str(port))
        _wait_for_port(port)
        for number in (1, 2):
            limits = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker{number}")]
            start(f"worker{number}", "org.apache.spark.deploy.worker.Worker", *here, *limits, url)
        yield Cluster(url, processes[1:])
    finally:
        for process in processes:
            process.terminate()
            process.wait(within(30))


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + within(60)
    while True:
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < deadline, "the master did not start"
        time.sleep(0.1)
