"""The driver is killed while signals come by Kafka: each is executed, and once."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import drop, make_source
from tests.support.driver import Driver
from tests.support.kafka import running_broker
from tests.support.patience import within
from tests.support.sink import read_sink

KILLS = 2
SIGNALS = 2
ROWS = 50


@pytest.mark.long
@pytest.mark.timeout(600)
def test_kill_9(pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    chance = random.Random(1)
    source = make_source(pg18, tmp_path / "state", **{"snapshot.mode": "no_data"})
    with running_broker(tmp_path / "broker") as broker:
        options = {
            **source.options,
            "incremental.snapshot.chunk.size": "10",
            "signal.enabled.channels": "kafka",
            "signal.kafka.bootstrap.servers": broker.servers,
            "signal.kafka.poll.timeout.ms": "10000",
            "signal.poll.interval.ms": "20",
        }
        # A table for each signal: how often it was read is how often the signal was executed.
        tables = [f"t{number}" for number in range(KILLS * SIGNALS)]
        for table in tables:
            source.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY)")
            source.execute(f"INSERT INTO {table} SELECT generate_series(1, {ROWS})")
        for number in range(KILLS):
            driver = Driver(options, tmp_path)
            for table in tables[number * SIGNALS : (number + 1) * SIGNALS]:
                planned = driver.batches()
                data = {"data-collections": [f"public.{table}"]}
                broker.send("test-signal", "test", json.dumps({"type": "execute-snapshot", "data": data}))
                driver.wait_for_batches(planned + 1, within(20))
                driver.wait_for_batches(1 << 30, chance.random() * 0.2)
            driver.kill()
        last = Driver(options, tmp_path, available_now=True)
        assert last.wait(within(120)) == 0, last.log()[-4000:]
    drop(source)
    read = Counter((event.table, event.key) for event in read_sink(tmp_path / "out") if event.op == "r")
    assert read == Counter((f"public.{table}", f'{{"id":{key}}}') for table in tables for key in range(1, ROWS + 1))
