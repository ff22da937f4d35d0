"""Topics that lose events which a query has written: it notices, and says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import floodmark
from floodmark.spark.failures import explain
from tests.conftest import Source
from tests.integration.test_program import small
from tests.support.batch import wait_for
from tests.support.kafka import Broker, running_broker, running_cluster

__all__ = ["small"]
pytestmark = pytest.mark.slow


class Query:
    """A query that is started again and again.

    Args:
        spark: its session.
        source: its source.
        folder: for its checkpoint.
        options: of its sink.
    """

    def __init__(self, spark: SparkSession, source: Source, folder: Path, **options: str) -> None:
        self.topic = f"{folder.name}.public.t"
        self.options = {name.replace("_", "."): value for name, value in options.items()}
        self._source = source
        self._given = {**source.options, "topic.prefix": folder.name, "event.blocks": "2"}
        self._spark = spark
        self._checkpoint = str(folder / "checkpoint")

    def run(self, **options: str) -> None:
        """Let it come to the end of the log."""
        given = {**self._given, "trigger.available.now": "true"}
        events = self._spark.readStream.format("floodmark").options(**given).load()
        chosen = self.options | {name.replace("_", "."): value for name, value in options.items()}
        writer = floodmark.kafka(events, chosen).option("checkpointLocation", self._checkpoint)
        query = writer.trigger(availableNow=True).start()
        try:
            query.processAllAvailable()
        except Exception as error:
            raise explain(error) from None
        finally:
            query.stop()

    def change(self, first: int, last: int) -> None:
        self._source.execute(f"INSERT INTO t SELECT generate_series({first}, {last})")


def keys(broker: Broker, topic: str) -> list[int]:
    return sorted(json.loads(one.key() or b"{}")["id"] for one in broker.records(topic))


def query_of(spark: SparkSession, source: Source, folder: Path, broker: Broker, **options: str) -> Query:
    return Query(spark, source, folder, **{"kafka_bootstrap_servers": broker.servers, **options})


def recreate(broker: Broker, topic: str) -> None:
    broker.drop(topic)
    broker.create(topic, 2)


@pytest.mark.parametrize(
    ("lose", "told"),
    [
        (recreate, r"the topic '.*\.public\.t' is another one than the query has written"),
        # It takes the sink as long as a broker may take over from another one.
        pytest.param(Broker.drop, r"the topic '.*\.public\.t' isn't there any more", marks=pytest.mark.long),
    ],
    ids=["made again", "gone"],
)
def test_a_topic_that_is_deleted(
    lose: Callable[[Broker, str], None],
    told: str,
    spark: SparkSession,
    small: Source,
    broker: Broker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    query = query_of(spark, small, tmp_path, broker)
    broker.create(query.topic, 2)
    query.run()
    # Nothing has happened to it.
    query.change(21, 22)
    query.run()
    assert keys(broker, query.topic) == list(range(1, 23))
    lose(broker, query.topic)
    query.change(23, 24)
    for _ in range(2):
        with pytest.raises(floodmark.TargetChangedError, match=told):
            query.run()
    query.run(lost_events="warn")
    assert "kafka_has_lost_events" in capsys.readouterr().err
    assert keys(broker, query.topic) == [23, 24]
    # It is known again now.
    query.change(25, 25)
    query.run()
    assert keys(broker, query.topic) == [23, 24, 25]


def test_partitions_that_are_added(spark: SparkSession, small: Source, broker: Broker, tmp_path: Path) -> None:
    query = query_of(spark, small, tmp_path, broker, kafka_metadata_max_age_ms="1000")
    broker.create(query.topic, 1)
    query.run()
    broker.grow(query.topic, 3)
    query.change(21, 60)
    query.run()
    assert keys(broker, query.topic) == list(range(1, 61))
    query.change(61, 90)
    query.run()
    assert keys(broker, query.topic) == list(range(1, 91))


def test_brokers_that_are_restored_or_others(spark: SparkSession, small: Source, tmp_path: Path) -> None:
    with running_broker(tmp_path / "broker") as broker, running_broker(tmp_path / "other") as other:
        query = query_of(spark, small, tmp_path, broker)
        for one in (broker, other):
            one.create(query.topic, 1)
        query.run()
        broker.copy(tmp_path / "copy")
        query.change(21, 22)
        query.run()
        query.change(23, 24)
        with pytest.raises(floodmark.TargetChangedError, match="another one"):
            query.run(kafka_bootstrap_servers=other.servers)
        assert other.count(query.topic) == 0
        # A crash loses nothing.
        broker.kill()
        broker.start()
        query.run()
        broker.restore(tmp_path / "copy")
        query.change(25, 26)
        told = r"partition 0 of the topic '.*' had 24 records, and now ends after 20\."
        with pytest.raises(floodmark.TargetChangedError, match=told):
            query.run()
        query.run(lost_events="warn")
        assert keys(broker, query.topic) == [*range(1, 21), 25, 26]


@pytest.mark.long
def test_an_unclean_leader(spark: SparkSession, small: Source, tmp_path: Path) -> None:
    with running_cluster(tmp_path / "brokers", 3) as brokers:
        query = query_of(spark, small, tmp_path, brokers[0])
        query.options["kafka.bootstrap.servers"] = ",".join(one.servers for one in brokers)
        brokers[0].create(query.topic, 1, 2, unclean_leader_election_enable="true", min_insync_replicas="1")
        query.run()
        leads = brokers[0].leader(query.topic) - 1
        (follows,) = [number - 1 for number in brokers[0].replicas(query.topic) if number - 1 != leads]
        third = brokers[3 - leads - follows]
        brokers[follows].kill()
        query.change(21, 40)
        query.run()
        brokers[leads].kill()
        brokers[follows].start()
        wait_for(lambda: third.leader(query.topic) == follows + 1, "the follower leads")
        query.change(41, 42)
        with pytest.raises(floodmark.TargetChangedError, match="had 40 records, and now ends after 20"):
            query.run()
