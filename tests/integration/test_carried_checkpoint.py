"""A checkpoint that goes from one version of Spark to another, back and forth, while its queries are killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import drop, make_source
from tests.support.driver import Driver
from tests.support.older import HERE, OLDER, installed
from tests.support.patience import within
from tests.support.verify import verify
from tests.support.workload import Workload

ROUTE: tuple[str, ...] = (OLDER[0], HERE, OLDER[1])
"""Those that aren't told the start of a micro-batch, and one that is."""
if os.environ.get("FLOODMARK_FULL_MATRIX"):
    ROUTE = (*OLDER, HERE, *reversed(OLDER), HERE)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_checkpoint_is_carried_through_all_versions(pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    route = [(version, installed(version)) for version in ROUTE]
    source = make_source(pg18, tmp_path / "state")
    workload = Workload(source.database, 1)
    workload.create(6000)
    options = {**source.options, "snapshot.chunk.bytes": "65536", "max.batch.rows": "2000"}
    workload.start()
    try:
        for version, spark in route:
            driver = Driver(options, tmp_path, spark=spark)
            # The last one that another version had planned, delivered or not, and then some of its own.
            assert driver.wait_for_batches(driver.batches() + 3, within(120)), driver.log()[-4000:]
            driver.kill()
            assert driver.log().rsplit("STARTED on Spark ", 1)[1].startswith(version), driver.log()[-4000:]
    finally:
        workload.stop()
    last = Driver(source.options, tmp_path, available_now=True)
    assert last.wait(within(120)) == 0, last.log()[-4000:]
    verify(source.database, tmp_path)
    drop(source)
