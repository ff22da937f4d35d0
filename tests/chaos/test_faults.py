"""Faults of the server, the network and the state directory while a query runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import Source, make_source
from tests.support.driver import Driver
from tests.support.patience import within
from tests.support.verify import verify
from tests.support.workload import Workload


@pytest.fixture
def own_server(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    """Return a server that a test may restart."""
    with EmbeddedPostgres(request.param, {"fsync": "on"}) as server:
        yield server


def restart_fast(source: Source, driver: Driver) -> None:
    source.server.stop("fast")
    source.server.start()


def restart_immediate(source: Source, driver: Driver) -> None:
    source.server.stop("immediate")
    source.server.start()


def cut_connections(source: Source, driver: Driver) -> None:
    with psycopg.connect(source.server.conninfo(), autocommit=True) as conn:
        for _ in range(5):
            conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'floodmark'")
            time.sleep(0.3)


def empty_state(source: Source, driver: Driver) -> None:
    for path in Path(source.options["state.dir"]).iterdir():
        shutil.rmtree(path, ignore_errors=True)


def take_the_sink_away(source: Source, driver: Driver) -> None:
    driver.take_the_sink_away()


def finish_and_verify(source: Source, work: Path) -> None:
    """Let a new driver deliver the rest, and compare with the source."""
    last = Driver(source.options, work, available_now=True)
    assert last.wait(within(120)) == 0, last.log()[-4000:]
    verify(source.database, work)


Fault = Callable[[Source, Driver], None]

FAULTS = [
    pytest.param(restart_fast, 16, marks=pytest.mark.long),
    (restart_immediate, 18),
    pytest.param(cut_connections, 16, marks=pytest.mark.long),
    pytest.param(empty_state, 18, marks=pytest.mark.long),
    pytest.param(take_the_sink_away, 16, marks=pytest.mark.long),
]
ENDING = (empty_state, take_the_sink_away)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("fault", "own_server"), FAULTS, indirect=["own_server"], ids=lambda value: getattr(value, "__name__", str(value))
)
def test_fault_while_streaming(fault: Fault, own_server: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(own_server, tmp_path / "state", **{"max.batch.rows": "5000"})
    workload = Workload(source.database, seed=7)
    workload.create(500)
    workload.start()
    driver = Driver(source.options, tmp_path)
    try:
        assert driver.wait_for_batches(5, within(90)), driver.log()[-3000:]
        fault(source, driver)
        survived = driver.wait_for_batches(driver.batches() + 4, within(40))
        assert survived or fault in ENDING, driver.log()[-3000:]
    finally:
        workload.stop()
        driver.kill()
    finish_and_verify(source, tmp_path)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("fault", "own_server"),
    [
        FAULTS[0],
        *(pytest.param(*fault, marks=pytest.mark.long) for fault in ((restart_immediate, 18), (cut_connections, 16))),
    ],
    indirect=["own_server"],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_fault_while_snapshotting(fault: Fault, own_server: EmbeddedPostgres, tmp_path: Path) -> None:
    small = {"snapshot.chunk.bytes": "65536", "max.batch.bytes": "131072"}
    source = make_source(own_server, tmp_path / "state", **small)
    workload = Workload(source.database, seed=8)
    workload.create(8000)
    workload.start()
    # A task that loses its connection in the middle of a chunk is run again, as on any cluster.
    driver = Driver(source.options, tmp_path, master="local[2,4]")
    try:
        assert driver.wait_for_batches(3, within(90)), driver.log()[-3000:]
        fault(source, driver)
        assert driver.wait_for_batches(driver.batches() + 3, within(40)), driver.log()[-3000:]
    finally:
        workload.stop()
        driver.kill()
    finish_and_verify(source, tmp_path)
