"""The same query on a Spark standalone cluster: a master and two workers, each a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from floodmark.demo.embedded import EmbeddedPostgres, free_port
from tests.conftest import drop, make_source
from tests.support.driver import Driver
from tests.support.patience import within
from tests.support.verify import verify
from tests.support.workload import Workload

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """Start a master and two workers of one core each."""
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> None:
        with (tmp_path / f"{name}.log").open("wb") as log:
            command = [str(SPARK_CLASS), *arguments]
            processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=tmp_path))

    start(
        "master",
        "org.apache.spark.deploy.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--webui-port",
        "0",
    )
    _wait_for_port(port)
    for number in (1, 2):
        work = str(tmp_path / f"worker{number}")
        limits = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", work, "--host", "127.0.0.1"]
        start(f"worker{number}", "org.apache.spark.deploy.worker.Worker", *limits, url)
    yield url
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


@pytest.mark.timeout(300)
def test_two_workers_give_the_same_result(cluster: str, pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state", **{"snapshot.chunk.bytes": "65536", "segment.bytes": "65536"})
    workload = Workload(source.database, seed=3)
    workload.create(2000)
    workload.start()
    driver = Driver(source.options, tmp_path, master=cluster)
    try:
        assert driver.wait_for_batches(6, within(120)), driver.log()[-3000:]
    finally:
        workload.stop()
        driver.kill()
    last = Driver(source.options, tmp_path, available_now=True, master=cluster)
    assert last.wait(within(150)) == 0, last.log()[-4000:]
    executors = {path.parent.parent.name for path in tmp_path.glob("worker*/app-*/*")}
    executors |= {path.parts[len(tmp_path.parts)] for path in tmp_path.glob("worker*/app-*/*/stderr")}
    assert {"worker1", "worker2"} <= executors
    verify(source.database, tmp_path)
    drop(source)
