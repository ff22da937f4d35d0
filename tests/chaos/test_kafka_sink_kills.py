"""A query into Kafka is killed at random points: what a consumer sees of its topics."""

from __future__ import annotations

import os
import random
import time
from itertools import product
from pathlib import Path

import pytest

from floodmark.spark.versions import GIVES_START
from tests.chaos.killing import Place
from tests.support.consumed import rebuilt, records_by_key, verify_order
from tests.support.driver import Driver
from tests.support.kafka import Broker, running_broker, spark_jars
from tests.support.patience import within
from tests.support.workload import Workload, source_rows, toasted_rows

KILLS = int(os.environ.get("FLOODMARK_KAFKA_KILLS", "2"))
CASES = [("pg18", "floodmark")]
if os.environ.get("FLOODMARK_FULL_MATRIX"):
    CASES = [*product(["pg18", "mysql", "mariadb"], ["floodmark", "spark"])]
BLOCKS = ({"event.blocks": "2"}, {"event.blocks": "3"})
"""The source's option that a pipeline sets for Floodmark's own engine: one task reads and writes the log, or several
with a shuffle between them. One start takes the first, the next the second."""
BROKER_FALLS_EVERY = 4
"""Every which time the broker is killed beside the query."""
ELSEWHERE_EVERY = 3
"""Every which time the query is killed at any moment, not while it writes, which takes a small part of the time."""
PARTITIONS = 3
CREATION = {
    "topic.creation.default.partitions": str(PARTITIONS),
    "topic.creation.default.replication.factor": "1",
}
MANY = 10
PROPERTIES = {"spark.sql.streaming.unsupportedOperationCheck": "false"}


@pytest.mark.timeout(max(600, 40 * KILLS))
@pytest.mark.parametrize(("place", "engine"), CASES, indirect=["place"])
def test_what_a_consumer_sees(place: Place, engine: str, tmp_path: Path) -> None:
    if engine == "spark" and not GIVES_START:
        pytest.skip("the jars are those of the connector for Spark 4.2 and 4.3")
    database, options = place
    small = {**options, "snapshot.chunk.bytes": "65536", "segment.bytes": "65536", "max.batch.rows": "2000"}
    chance = random.Random(database.schema)
    workload = Workload(database, 1)
    workload.create(6000)
    jars = {"spark.jars": ",".join(map(str, spark_jars()))} if engine == "spark" else {}
    properties = {**PROPERTIES, **jars}
    with running_broker(tmp_path / "broker") as broker:
        target = {"engine": engine, "kafka.bootstrap.servers": broker.servers, **CREATION}
        workload.start()
        try:
            for number in range(1, KILLS + 1):
                driver = Driver({**small, **_blocks(engine, number)}, tmp_path, kafka=target, properties=properties)
                planned = driver.wait_for_batches(driver.batches() + chance.randint(1, 3), within(120))
                assert planned, driver.log()[-4000:]
                if number % ELSEWHERE_EVERY == 0:
                    driver.wait_for_batches(1 << 30, chance.random() * 2)
                else:
                    _wait_for_writing(broker, options["topic.prefix"])
                    time.sleep(chance.random() * 0.05)
                if number % BROKER_FALLS_EVERY == 0:
                    broker.kill()
                    driver.wait_for_batches(1 << 30, chance.random())
                    broker.start()
                    driver.wait_for_batches(1 << 30, chance.random() * 2)
                driver.kill()
        finally:
            workload.stop()
        last = Driver(
            {**options, **_blocks(engine, 0)}, tmp_path, available_now=True, kafka=target, properties=properties
        )
        assert last.wait(within(120)) == 0, last.log()[-4000:]
        _verify(place, broker)


def _blocks(engine: str, number: int) -> dict[str, str]:
    return BLOCKS[number % len(BLOCKS)] if engine == "floodmark" else {}


def _wait_for_writing(broker: Broker, prefix: str) -> None:
    before, until = broker.written(prefix), time.monotonic() + within(60)
    while broker.written(prefix) == before:
        assert time.monotonic() < until
        time.sleep(0.002)


def _verify(place: Place, broker: Broker) -> None:
    database, options = place
    repeated = 0
    for table, expected in source_rows(database).items():
        topic = f"{options['topic.prefix']}.{table.replace(' ', '_')}"
        assert broker.topics()[topic] == PARTITIONS
        keys = records_by_key(broker.records(topic))
        repeated += sum(verify_order(records, KILLS) for records in keys.values())
        rows = {key: row for key, records in keys.items() if (row := rebuilt(records)) is not None}
        assert {key: row["v"] for key, row in rows.items()} == expected, table
        if table.endswith(".toasted"):
            assert {key: row["big"] for key, row in rows.items()} == toasted_rows(database)
    print(f"{repeated} times the records of a key were repeated after {KILLS} kills")
    # Some of so many must have come while records were written.
    assert repeated or KILLS < MANY
