"""The same query on a Spark standalone cluster: a master and two workers, each a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import drop, make_source
from tests.support.cluster import running_cluster
from tests.support.driver import Driver
from tests.support.patience import within
from tests.support.verify import verify
from tests.support.workload import Workload


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """Return the URL of a cluster."""
    with running_cluster(tmp_path) as found:
        yield found.url


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
