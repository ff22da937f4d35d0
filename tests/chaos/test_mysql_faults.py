"""Faults of MySQL, MariaDB, the network, the sink and the state directory while a query runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pymysql
import pytest

from tests.support.databases import Mysql
from tests.support.driver import Driver
from tests.support.mysql import Flavor, MysqlServer
from tests.support.patience import within
from tests.support.verify import verify
from tests.support.workload import Workload


def restart_fast(server: MysqlServer) -> None:
    server.restart()


def restart_after_a_crash(server: MysqlServer) -> None:
    server.restart(kill=True)


def cut_connections(server: MysqlServer) -> None:
    with server.connect() as session, session.cursor() as cursor:
        for _ in range(3):
            cursor.execute(f"SELECT id FROM information_schema.processlist WHERE user = '{server.user}'")
            for (thread,) in cursor.fetchall():
                with suppress(pymysql.err.OperationalError):  # It has ended by itself.
                    cursor.execute(f"KILL {thread}")
            time.sleep(0.3)


def rotate(server: MysqlServer) -> None:
    server.execute(*["FLUSH BINARY LOGS"] * 3)


FAULTS: tuple[Callable[[MysqlServer], None], ...] = (rotate, cut_connections, restart_fast, restart_after_a_crash)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("flavor", [pytest.param("mysql", marks=pytest.mark.long), "mariadb"])
def test_faults(flavor: Flavor, tmp_path: Path) -> None:
    """The first ones come in the snapshot, the others while the log is delivered; some end the query."""
    with MysqlServer(flavor) as server:
        server.execute("CREATE DATABASE shop")
        # A history that is lost can only be rebuilt if no table was altered since.
        database = Mysql(server, "shop")
        database.alterations = ()
        options = {
            **server.options(),
            "topic.prefix": "test",
            "state.dir": str(tmp_path / "state"),
            "database.include.list": "shop",
            "include.schema.changes": "false",
            "snapshot.chunk.bytes": "65536",
            "max.batch.bytes": "131072",
            "max.batch.rows": "5000",
            "errors.retry.delay.max.ms": "1000",
        }
        workload = Workload(database, seed=7)
        workload.create(3000)
        workload.start()
        # A task that loses its connection in the middle of a chunk is run again, as on any cluster.
        driver = Driver(options, tmp_path, master="local[2,4]")
        try:
            assert driver.wait_for_batches(2, within(90)), driver.log()[-3000:]
            for fault in FAULTS:
                fault(server)
                assert driver.wait_for_batches(driver.batches() + 3, within(60)), (fault, driver.log()[-3000:])
            driver.take_the_sink_away()
        finally:
            workload.stop()
            driver.kill()
        shutil.rmtree(tmp_path / "state")
        refused = Driver(options, tmp_path, available_now=True)
        assert refused.wait(within(120)) != 0
        assert "snapshot.mode=recovery" in refused.log()
        last = Driver({**options, "snapshot.mode": "recovery"}, tmp_path, available_now=True)
        assert last.wait(within(180)) == 0, last.log()[-4000:]
        verify(database, tmp_path)
