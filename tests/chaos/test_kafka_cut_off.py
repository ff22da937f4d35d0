"""An executor that is cut off from the driver, but not from Kafka, ends before its events are written again."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest

from floodmark.demo.embedded import EmbeddedPostgres, free_port
from floodmark.spark.sinks.late_writers import PROPERTIES
from tests.chaos.test_executor_kills import until
from tests.conftest import drop, make_source
from tests.support.cluster import running_cluster
from tests.support.consumed import rebuilt, records_by_key, verify_order
from tests.support.driver import Driver
from tests.support.freezing import HOST, Network
from tests.support.kafka import running_broker
from tests.support.patience import within

ROWS = 40_000
BYTES_A_SECOND = 400_000
"""What the broker takes of each producer: the micro-batch is written for about half a minute."""
GIVEN_UP_S = 20


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not os.environ.get("FLOODMARK_FULL_MATRIX"), reason="takes minutes: make chaos")
def test_an_executor_that_is_cut_off(pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state", **{"event.blocks": "2"})
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, v integer, w text)",
        f"INSERT INTO t SELECT g, 0, md5(g::text) || md5(g::text || 'w') FROM generate_series(1, {ROWS}) g",
    )
    topic = f"{source.options['topic.prefix']}.public.t"
    port, blocks = free_port(), free_port()
    properties = {
        **PROPERTIES,
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.port": str(port),
        "spark.driver.blockManager.port": str(blocks),
        "spark.executor.heartbeatInterval": "1s",
        "spark.network.timeout": f"{GIVEN_UP_S}s",
        "spark.network.timeoutInterval": "1s",
        "spark.task.maxFailures": "10",
    }
    with (
        running_broker(tmp_path / "broker") as broker,
        running_cluster(tmp_path) as cluster,
        Network(port, blocks) as network,
    ):
        broker.create(topic, 2)
        target = {"kafka.bootstrap.servers": broker.servers, "kafka.compression.type": "none"}
        driver = Driver(source.options, tmp_path, master=cluster.url, kafka=target, properties=properties)
        try:
            assert driver.wait_for_batches(1, within(120)), driver.log()[-4000:]
            until(lambda: broker.count(topic) >= ROWS, driver)
            broker.limit(BYTES_A_SECOND)
            source.execute("UPDATE t SET v = 1, w = w || w")
            source.execute("UPDATE t SET v = 2, w = w || w")
            until(lambda: broker.count(topic) > ROWS, driver)
            cut_off = cluster.executors()[0]
            network.freeze(cut_off)
            began = time.monotonic()
            _, runs = psutil.wait_procs([cut_off], GIVEN_UP_S)
            assert not runs
            print(f"it has ended by itself after {time.monotonic() - began:.1f} s")
            broker.limit(1 << 30)
            until(lambda: len(finished(driver)) > 1, driver)
        finally:
            driver.kill()
        last = Driver(source.options, tmp_path, available_now=True, kafka=target)
        assert last.wait(within(120)) == 0, last.log()[-4000:]
        keys = records_by_key(broker.records(topic))
        assert len(keys) == ROWS
        assert all(row is not None and row["v"] == 2 for row in map(rebuilt, keys.values()))
        print(f"{sum(verify_order(records, 3) for records in keys.values())} times a key's records were repeated")
    drop(source)


def finished(driver: Driver) -> list[Path]:
    return [path for path in (driver.out.parent / "checkpoint" / "commits").glob("[0-9]*") if path.name.isdigit()]
