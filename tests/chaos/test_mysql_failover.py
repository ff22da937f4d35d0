"""A replica takes over while a query runs with Spark, cleanly; then the former server, which lacks what came since."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.databases import Mysql
from tests.support.driver import Driver
from tests.support.forwarder import Forwarder
from tests.support.mysql import Flavor, MysqlServer
from tests.support.patience import within
from tests.support.replication import SETTINGS, replica_of, stop_replica, wait_for_replica
from tests.support.verify import verify
from tests.support.workload import Workload

FLAVORS: tuple[Flavor, ...] = ("mysql", "mariadb")


class Moving(Mysql):
    """A database that another server takes over."""

    def lead_to(self, server: MysqlServer) -> None:
        """Open sessions at another server from now on."""
        self._server = server


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("flavor", FLAVORS if os.environ.get("FLOODMARK_FULL_MATRIX") else FLAVORS[:1])
def test_a_replica_takes_over(flavor: Flavor, tmp_path: Path) -> None:
    with ExitStack() as stack:
        first, second = (stack.enter_context(MysqlServer(flavor, **SETTINGS[flavor])) for _ in range(2))
        second.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        first.execute("CREATE DATABASE shop")
        replica_of(first, second)
        address = Forwarder(first.port)
        stack.callback(address.close)
        options = {
            **first.options(),
            "database.port": str(address.port),
            "topic.prefix": "test",
            "state.dir": str(tmp_path / "state"),
            "database.include.list": "shop",
            "include.schema.changes": "false",
            "errors.retry.delay.max.ms": "500",
        }
        database = Moving(first, "shop")
        workload = Workload(database, seed=11)
        workload.create(1000)
        workload.start()
        driver = Driver(options, tmp_path)
        try:
            assert driver.wait_for_batches(4, within(120)), driver.log()[-3000:]
            workload.stop()
            wait_for_replica(first, second)
            stop_replica(second)
            database.lead_to(second)
            address.lead_to(second.port)
            workload.start()
            assert driver.wait_for_batches(driver.batches() + 4, within(120)), driver.log()[-3000:]
        finally:
            workload.stop()
            driver.kill()
        last = Driver(options, tmp_path, available_now=True)
        assert last.wait(within(180)) == 0, last.log()[-4000:]
        verify(database, tmp_path)
        address.lead_to(first.port)
        refused = Driver(options, tmp_path, available_now=True)
        assert refused.wait(within(120)) != 0
        assert "lacks transactions" in refused.log()
        verify(database, tmp_path)
