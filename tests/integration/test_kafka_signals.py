"""Signals by a real Kafka broker: executed once, whatever dies, and never in the stream's way."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import CapturingLogger

from floodmark.demo.embedded import EmbeddedPostgres, free_port
from floodmark.signals import kafka
from tests.conftest import Source
from tests.integration.test_incremental import ids, over, until
from tests.support.inprocess import InProcess
from tests.support.kafka import Broker, running_broker
from tests.support.patience import within

ALL = [1, 2, 3, 4, 5]
READ_T = {"type": "execute-snapshot", "data": {"data-collections": ["public.t"]}}


@pytest.fixture
def server(pg18: EmbeddedPostgres) -> EmbeddedPostgres:
    """The server of all these tests: how signals come by Kafka doesn't depend on it."""
    return pg18


@pytest.fixture
def options(source: Source) -> dict[str, str]:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 5)")
    return {
        **source.options,
        # The broker is shared by the tests, so each has a topic of its own.
        "topic.prefix": source.dbname,
        "snapshot.mode": "no_data",
        "signal.enabled.channels": "kafka",
        "signal.poll.interval.ms": "1",
    }


@pytest.fixture
def connected(options: dict[str, str], broker: Broker) -> dict[str, str]:
    return {**options, "signal.kafka.bootstrap.servers": broker.servers}


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> CapturingLogger:
    logger = CapturingLogger()
    monkeypatch.setattr(kafka, "log", logger)
    return logger


def warnings(reports: CapturingLogger) -> list[str]:
    return [call.args[0] for call in reports.calls if call.method_name == "warning"]


def topic_of(options: dict[str, str]) -> str:
    return f"{options['topic.prefix']}-signal"


def send(broker: Broker, options: dict[str, str], content: object = READ_T) -> None:
    broker.send(topic_of(options), options["topic.prefix"], json.dumps(content))


def started(options: dict[str, str]) -> InProcess:
    query = InProcess(options)
    query.drain()
    query.restart()
    return query


def taken(count: int) -> Callable[[dict[str, Any]], bool]:
    """Return what tells whether so many records of the topic are done."""
    return lambda offset: over(offset) and bool(offset["taken"]) and offset["taken"][-1].endswith(f":{count - 1}")


def steps(query: InProcess, count: int = 5) -> list[dict[str, Any]]:
    return [row for _ in range(count) for row in query.step()]


def eventually(check: Callable[[], bool], query: InProcess, limit_s: float = 20) -> None:
    deadline = time.monotonic() + within(limit_s)
    while not check():
        assert time.monotonic() < deadline
        query.step()


def test_a_signal_reads_a_table(connected: dict[str, str], broker: Broker) -> None:
    query = started(connected)
    send(broker, connected)
    rows = until(query, taken(1))
    assert ids(rows) == ALL
    eventually(lambda: broker.committed(topic_of(connected)) == 1, query)
    send(broker, connected, {"id": "named", **READ_T, "data": json.dumps(READ_T["data"])})
    rows = until(query, taken(2)) + steps(query)
    query.stop()
    assert ids(rows) == ALL


def test_what_is_no_signal_is_passed_over(connected: dict[str, str], broker: Broker, reports: CapturingLogger) -> None:
    topic, key = topic_of(connected), connected["topic.prefix"]
    for other in (None, "", key.upper(), f"{key}.x"):
        broker.send(topic, other, json.dumps(READ_T))
    broker.send(topic, key, None)
    for malformed in (b"\xff\xfe", b"{", b"[]", b'{"data": {}}'):
        broker.send(topic, key, malformed)
    send(broker, connected)
    query = InProcess(connected)
    rows = query.drain()
    query.restart()
    rows += until(query, taken(10)) + steps(query)
    query.stop()
    assert ids(rows) == ALL
    assert warnings(reports) == ["signal_is_malformed"] * 4
    places = [call.kwargs["place"] for call in reports.calls if call.args[0] == "signal_is_malformed"]
    assert places == [f"kafka:{topic}:0:{offset}" for offset in (5, 6, 7, 8)]


def test_another_process_does_not_repeat_a_signal(connected: dict[str, str], broker: Broker) -> None:
    query = started(connected)
    send(broker, connected)
    rows = until(query, lambda offset: bool(offset["taken"]))
    query.restart()
    rows += until(query, taken(1)) + steps(query)
    query.stop()
    # As if it had died before Kafka heard of it, long ago.
    broker.commit(topic_of(connected), 0)
    query = InProcess(connected, query.offset)
    rows += steps(query)
    assert ids(rows) == ALL

    send(broker, connected)
    rows = until(query, taken(2)) + steps(query)
    query.stop()
    assert ids(rows) == ALL


def test_what_was_planned_only_is_taken_again(connected: dict[str, str], broker: Broker) -> None:
    query = started(connected)
    send(broker, connected)
    before = query.offset
    deadline = time.monotonic() + within(20)
    while not query.reader.latestOffset(before, query.reader.getDefaultReadLimit())["taken"]:
        assert time.monotonic() < deadline
    query.reader.latestOffset(before, query.reader.getDefaultReadLimit())
    query.stop()
    assert broker.committed(topic_of(connected)) <= 0
    query = InProcess(connected, before)
    rows = until(query, taken(1)) + steps(query)
    query.stop()
    assert ids(rows) == ALL


def test_a_blocking_snapshot_is_taken_once(connected: dict[str, str], broker: Broker) -> None:
    query = started(connected)
    send(broker, connected, {**READ_T, "data": {"data-collections": ["public.t"], "type": "blocking"}})
    rows = until(query, lambda offset: offset["snapshot"] is not None)
    query.stop()
    query = InProcess(connected, query.offset)
    rows += until(query, lambda offset: offset["snapshot"] is None) + steps(query)
    query.stop()
    assert ids(rows) == ALL


def test_the_first_start_begins_at_the_groups_offset(connected: dict[str, str], broker: Broker) -> None:
    for _ in range(3):
        send(broker, connected)
    broker.commit(topic_of(connected), 2, "mine")
    query = InProcess({**connected, "signal.kafka.groupId": "mine"})
    rows = query.drain()
    query.restart()
    rows += until(query, taken(3)) + steps(query)
    query.stop()
    assert ids(rows) == ALL


@pytest.mark.parametrize("seed", range(3))
def test_every_signal_is_executed_once_wherever_a_process_ends(
    connected: dict[str, str], broker: Broker, seed: int
) -> None:
    dice = random.Random(seed)
    query = started(connected)
    rows: list[dict[str, Any]] = []
    for number in range(1, 7):
        send(broker, connected)
        deadline = time.monotonic() + within(30)
        while not taken(number)(query.offset):
            assert time.monotonic() < deadline
            if dice.random() < 0.3:
                # Planned, and forgotten with the process.
                query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
            if dice.random() < 0.3:
                query.stop()
                broker.commit(topic_of(connected), dice.randint(0, number))
                query = InProcess(connected, query.offset)
            rows += query.step()
    query.stop()
    assert ids(rows) == sorted(ALL * 6)


def test_available_now_takes_what_waits(connected: dict[str, str], broker: Broker) -> None:
    query = started({**connected, "signal.kafka.poll.timeout.ms": "20000"})
    send(broker, connected)
    assert ids(query.drain()) == ALL
    query.restart()
    begun = time.monotonic()
    query.drain()
    query.stop()
    # It waits until the end of the topic is reached, and not for the rest of the time.
    assert time.monotonic() - begun < 10


def test_only_one_partition_is_read(connected: dict[str, str], broker: Broker, reports: CapturingLogger) -> None:
    topic, key = topic_of(connected), connected["topic.prefix"]
    broker.create(topic, partitions=3)
    broker.send(topic, key, json.dumps(READ_T), partition=1)
    query = started(connected)
    eventually(lambda: bool(warnings(reports)), query)
    send(broker, connected)
    rows = until(query, taken(1)) + steps(query)
    query.stop()
    assert ids(rows) == ALL
    assert warnings(reports) == ["signal_topic_has_several_partitions"]


def test_a_broker_that_comes_later(
    options: dict[str, str], source: Source, tmp_path: Path, reports: CapturingLogger
) -> None:
    broker = Broker(tmp_path / "broker")
    query = started({**options, "signal.kafka.bootstrap.servers": broker.servers})
    reports.calls.clear()
    slowest = 0.0
    for number in range(6, 16):
        source.execute(f"INSERT INTO t VALUES ({number})")
        rows: list[dict[str, Any]] = []
        while not rows:
            begun = time.monotonic()
            rows = query.step()
            slowest = max(slowest, time.monotonic() - begun)
        assert [row["key"] for row in rows if row["table"]] == [f'{{"id":{number}}}']
    assert slowest < 5
    assert warnings(reports) == ["signals_cannot_be_read"]
    try:
        broker.start()
        send(broker, options)
        rows = until(query, taken(1), 120)
    finally:
        query.stop()
        broker.kill()
    assert ids(rows) == list(range(1, 16))


def test_a_broker_that_dies(options: dict[str, str], source: Source, tmp_path: Path, reports: CapturingLogger) -> None:
    with running_broker(tmp_path / "broker") as broker:
        query = started({**options, "signal.kafka.bootstrap.servers": broker.servers})
        send(broker, options)
        rows = until(query, lambda offset: bool(offset["taken"]))
        broker.kill()
        rows += until(query, over)
        source.execute("INSERT INTO t VALUES (6)")
        streamed: list[dict[str, Any]] = []
        while not streamed:
            streamed = query.step()
        assert [row["key"] for row in streamed if row["table"]] == ['{"id":6}']
        eventually(lambda: "signals_cannot_be_read" in warnings(reports), query)
        begun = time.monotonic()
        query.stop()
        assert time.monotonic() - begun < 8
        query = InProcess({**options, "signal.kafka.bootstrap.servers": broker.servers}, query.offset)
        rows += steps(query)
        assert ids(rows) == ALL
        broker.start()
        send(broker, options)
        rows = until(query, taken(2), 40) + steps(query)
        query.stop()
    assert ids(rows) == [*ALL, 6]


def test_wrong_options_of_the_consumer_are_named(options: dict[str, str]) -> None:
    wrong = {"signal.kafka.bootstrap.servers": f"127.0.0.1:{free_port()}", "signal.consumer.fetch.wait.ms": "5"}
    query = InProcess({**options, **wrong})
    with pytest.raises(Exception, match=r'No such configuration property: "fetch\.wait\.ms"'):
        query.drain()
