"""The same query on a Spark standalone cluster: a master and two workers, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import drop, make_source
from tests.support import quick_start
from tests.support.cluster import running_cluster
from tests.support.driver import Driver
from tests.support.patience import within
from tests.support.verify import verify
from tests.support.workload import Workload

PROGRAM = Path(__file__).parents[2] / "examples" / "submit" / "pipeline.py"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """Return the URL of a cluster."""
    with running_cluster(tmp_path) as found:
        yield found.url


def executors(directory: Path) -> set[str]:
    """Return the workers that have had an executor."""
    found = {path.parent.parent.name for path in directory.glob("worker*/app-*/*")}
    return found | {path.parts[len(directory.parts)] for path in directory.glob("worker*/app-*/*/stderr")}


@pytest.mark.long
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
    assert {"worker1", "worker2"} <= executors(tmp_path)
    verify(source.database, tmp_path)
    drop(source)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_spark_submit_runs_a_pipeline_file(cluster: str, pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state", **{"snapshot.chunk.bytes": "8192"})
    source.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 2000)")
    content = {
        "source": {**source.options, "state.dir": "${SHARED}/state"},
        "sink": {"type": "parquet", "path": "${SHARED}/events"},
        "checkpoint": "${SHARED}/checkpoint",
        "trigger": {"availableNow": True},
    }
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    quick_start.prepare()
    submit = [
        str(Path(os.environ["SPARK_HOME"]) / "bin" / "spark-submit"),
        "--master",
        cluster,
        str(PROGRAM),
        str(file),
    ]
    env = {**os.environ, "SHARED": str(tmp_path)}
    done = subprocess.run(submit, env=env, capture_output=True, text=True, timeout=within(120))
    assert done.returncode == 0, done.stderr[-4000:]
    events = [row for path in (tmp_path / "events").glob("part-*.parquet") for row in pq.read_table(path).to_pylist()]
    assert sorted(json.loads(event["key"])["id"] for event in events) == list(range(1, 2001))
    assert {"worker1", "worker2"} <= executors(tmp_path)
    drop(source)
