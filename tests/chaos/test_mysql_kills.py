"""The driver is killed while it reads MySQL or MariaDB, whose tables are altered meanwhile."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.support.databases import Mysql
from tests.support.driver import Driver
from tests.support.mysql import Flavor, MysqlServer
from tests.support.patience import within
from tests.support.turmoil import Turmoil
from tests.support.verify import verify
from tests.support.workload import Workload

KILLS = int(os.environ.get("FLOODMARK_CHAOS_MYSQL_KILLS", "2"))
ROUNDS = max(1, -(-KILLS // 50))
"""Rows are compared at the end of each round, so that a long run shows early what it found."""
SNAPSHOT_ROWS = 6000
TRIGGERS = ["0 seconds", "700 milliseconds"]
IMAGES = ["FULL", "MINIMAL", "NOBLOB"]


@pytest.mark.timeout(max(600, 24 * KILLS // ROUNDS))
@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("flavor", [pytest.param("mysql", marks=pytest.mark.long), "mariadb"])
def test_kill_9(flavor: Flavor, seed: int, tmp_path: Path) -> None:
    chance = random.Random(f"{flavor} {seed}")
    with MysqlServer(flavor) as server:
        server.execute("CREATE DATABASE shop")
        database = Mysql(server, "shop", chance.choice(IMAGES))
        options = {
            **server.options(),
            "topic.prefix": "test",
            "state.dir": str(tmp_path / "state"),
            "database.include.list": "shop",
            "include.schema.changes": "false",
        }
        # Small chunks and batches make many points at which to die.
        small = {
            **options,
            "snapshot.chunk.bytes": "65536",
            "max.batch.bytes": "262144",
            "segment.bytes": "65536",
            "max.batch.rows": "2000",
        }
        workload = Workload(database, seed)
        workload.create(SNAPSHOT_ROWS)
        turmoil = Turmoil(database, seed, xa=True)
        turmoil.create()
        workload.start()
        turmoil.start()
        try:
            for _ in range(-(-KILLS // ROUNDS)):
                driver = Driver(small, tmp_path, every=chance.choice(TRIGGERS))
                planned = driver.wait_for_batches(driver.batches() + chance.randint(1, 3), within(180))
                assert planned, driver.log()[-4000:]
                driver.wait_for_batches(1 << 30, chance.random() * 0.8)
                driver.kill()
        finally:
            workload.stop()
            turmoil.stop()
        last = Driver(options, tmp_path, available_now=True)
        assert last.wait(within(180)) == 0, last.log()[-4000:]
        verify(database, tmp_path, turmoil)
