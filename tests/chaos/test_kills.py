"""The driver is killed at random points of snapshots and of streaming."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

import floodmark
from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import drop, make_source
from tests.support.driver import Driver
from tests.support.patience import within
from tests.support.turmoil import Turmoil
from tests.support.verify import verify
from tests.support.workload import Workload

KILLS = int(os.environ.get("FLOODMARK_CHAOS_KILLS", "4"))
ROUNDS = 4
SNAPSHOT_ROWS = 6000
TRIGGERS = ["0 seconds", "700 milliseconds"]


@pytest.mark.timeout(max(600, 24 * KILLS // ROUNDS))
@pytest.mark.parametrize("seed", [*(pytest.param(seed, marks=pytest.mark.long) for seed in (0, 1, 2)), 3])
def test_kill_9(seed: int, pg16: EmbeddedPostgres, pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    chance = random.Random(seed)
    server = (pg16, pg18)[seed % 2]
    # In the later rounds an incremental snapshot is all that reads the rows that were there before.
    incremental = seed >= ROUNDS // 2
    modes = {"snapshot.mode": "no_data", "signal.poll.interval.ms": "100"} if incremental else {}
    source = make_source(server, tmp_path / "state", **modes)
    # Small chunks and batches make many points at which to die.
    small = {
        **source.options,
        "snapshot.chunk.bytes": "65536",
        "max.batch.bytes": "262144",
        "segment.bytes": "65536",
        "max.batch.rows": "2000",
    }
    workload = Workload(source.database, seed)
    workload.create(SNAPSHOT_ROWS)
    turmoil = Turmoil(source.database, seed)
    turmoil.create()
    workload.start()
    turmoil.start()
    try:
        for _ in range(-(-KILLS // ROUNDS)):
            if incremental:
                floodmark.signal(small, "execute-snapshot", {"data-collections": [r"public\..*"]})
            driver = Driver(small, tmp_path, every=chance.choice(TRIGGERS))
            planned = driver.wait_for_batches(driver.batches() + chance.randint(1, 3), within(120))
            assert planned, driver.log()[-4000:]
            driver.wait_for_batches(1 << 30, chance.random() * 0.8)
            driver.kill()
    finally:
        workload.stop()
        turmoil.stop()
    last = Driver(source.options, tmp_path, available_now=True)
    assert last.wait(within(120)) == 0, last.log()[-4000:]
    verify(source.database, tmp_path, turmoil, reads=-(-KILLS // ROUNDS) if incremental else 1)
    drop(source)
