"""The Kafka channel's rules: what is handed out, where reading goes on, what is committed, how long it waits."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest
from confluent_kafka import OFFSET_STORED, KafkaError, KafkaException, TopicPartition
from structlog.testing import CapturingLogger

from floodmark.cli.checks.environment import check_channels
from floodmark.config.kafka_clients import librdkafka_settings
from floodmark.connectors.load import load_options
from floodmark.errors import ConfigError
from floodmark.signals import kafka
from floodmark.signals.kafka import REPORT_AGAIN_S, KafkaChannel, kafka_channel
from tests.support.options import REQUIRED
from tests.support.patience import within
from tests.unit.test_signal_files import Clock, events

END = KafkaError._PARTITION_EOF
AWAY = KafkaError._ALL_BROKERS_DOWN
REFUSED = KafkaError._TRANSPORT
OPTIONS = {
    **REQUIRED,
    "state.dir": "/state",
    "signal.enabled.channels": "kafka",
    "signal.kafka.bootstrap.servers": "127.0.0.1:1",
}


@dataclass
class Record:
    """A record, the end of the partition or an error, as the client hands it on."""

    place: int
    content: bytes | None = None
    code: int | None = None
    name: bytes | None = b"shop"

    def offset(self) -> int:
        return self.place

    def key(self) -> bytes | None:
        return self.name

    def value(self) -> bytes | None:
        return self.content

    def timestamp(self) -> tuple[int, int]:
        return 0, -1

    def error(self) -> KafkaError | None:
        return None if self.code is None else KafkaError(self.code)


class Consumer:
    """A consumer that has what a test puts into it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.settings: dict[str, Any] = {}
        self.arrived: list[Record] = []
        self.assigned: list[int] = []
        self.commits: list[int] = []
        self.waits: list[float] = []
        self.partitions = 1
        self.closed = 0
        self.fails = False

    def connect(self, settings: dict[str, Any]) -> Any:
        self.settings = settings
        return self

    def assign(self, partitions: list[TopicPartition]) -> None:
        assert [(part.topic, part.partition) for part in partitions] == [("shop-signal", 0)]
        self.assigned.append(partitions[0].offset)

    def poll(self, timeout: float) -> Record | None:
        if self.fails:
            raise KafkaException(KafkaError(KafkaError._FAIL))
        self.waits.append(timeout)
        if self.arrived:
            return self.arrived.pop(0)
        self.clock.now += timeout
        return None

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        self.commits.append(offsets[0].offset)

    def list_topics(self, topic: str, timeout: float) -> Any:
        @dataclass
        class Topic:
            partitions: dict[int, None]

        @dataclass
        class Cluster:
            topics: dict[str, Topic]

        return Cluster({topic: Topic(dict.fromkeys(range(self.partitions)))})

    def close(self) -> None:
        self.closed += 1

    def complain(self, code: int, reason: str = "") -> None:
        self.settings["error_cb"](KafkaError(code, reason))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def consumer(clock: Clock) -> Consumer:
    return Consumer(clock)


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> CapturingLogger:
    logger = CapturingLogger()
    monkeypatch.setattr(kafka, "log", logger)
    return logger


Make = Callable[..., KafkaChannel]


@pytest.fixture
def make(consumer: Consumer, clock: Clock) -> Make:
    def channel(interval_s: float = 0, timeout_s: float = 0.1, **settings: str) -> KafkaChannel:
        return KafkaChannel(settings, "shop-signal", "shop", interval_s, timeout_s, consumer.connect, clock)

    return channel


def test_reading_begins_again_if_the_groups_offset_is_refused(make: Make, consumer: Consumer, clock: Clock) -> None:
    channel = make(interval_s=5)
    consumer.arrived = [Record(0, code=KafkaError.NOT_COORDINATOR)]
    channel.poll()
    channel.poll()
    assert consumer.assigned == [OFFSET_STORED]
    clock.now += 5
    channel.poll()
    assert consumer.assigned == [OFFSET_STORED, OFFSET_STORED]
    consumer.arrived = [Record(4, code=END), Record(0, code=KafkaError.NOT_COORDINATOR)]
    for _ in range(3):
        clock.now += 5
        channel.poll()
    assert len(consumer.assigned) == 2


def test_reading_begins_again_behind_what_was_taken(make: Make, consumer: Consumer, clock: Clock) -> None:
    channel = make(interval_s=5)
    channel.acknowledge(["kafka:shop-signal:0:6"])
    consumer.arrived = [Record(0, code=KafkaError.UNKNOWN_TOPIC_OR_PART)]
    channel.poll()
    clock.now += 5
    channel.poll()
    assert consumer.assigned == [7, 7]


def record(offset: int, name: str | None = None) -> Record:
    content = {"type": "log", "data": {"message": "x"}} | ({"id": name} if name else {})
    return Record(offset, json.dumps(content).encode())


def receipt(offset: int) -> str:
    return f"kafka:shop-signal:0:{offset}"


def offsets(channel: KafkaChannel) -> list[int]:
    return [int(signal.receipt.rpartition(":")[2]) for signal in channel.poll()]


def test_records_wait_until_they_are_acknowledged(make: Make, consumer: Consumer) -> None:
    channel = make()
    consumer.arrived += [record(0), record(1, "a"), record(2, "a"), Record(3, code=END)]
    assert [signal.id for signal in channel.poll()] == [receipt(0), "a", "a"]
    assert offsets(channel) == [0, 1, 2]
    assert channel.acknowledge([receipt(0), "a", receipt(1)]) == [receipt(1)]
    assert offsets(channel) == [2]
    consumer.arrived.append(record(3))
    assert offsets(channel) == [2, 3]


def test_commits_go_up_to_the_first_that_waits(make: Make, consumer: Consumer) -> None:
    channel = make()
    consumer.arrived += [Record(4, b"", name=b"other"), record(5), record(6), Record(7, name=b"other")]
    channel.poll()
    assert consumer.commits == [5]
    channel.acknowledge([receipt(6)])
    assert consumer.commits == [5]
    channel.acknowledge([receipt(6), receipt(5)])
    assert consumer.commits == [5, 8]
    channel.poll()
    assert consumer.commits == [5, 8]


def test_a_failed_commit_is_tried_again_with_the_next_look(
    make: Make, consumer: Consumer, clock: Clock, reports: CapturingLogger
) -> None:
    channel = make(interval_s=5)
    consumer.arrived.append(Record(4, code=END))
    channel.poll()
    consumer.settings["on_commit"](KafkaError(KafkaError._TIMED_OUT), [])
    channel.poll()
    channel.acknowledge([])
    assert consumer.commits == [4]
    clock.now = 5
    channel.poll()
    channel.poll()
    assert consumer.commits == [4, 4]
    assert events(reports) == ["signals_cannot_be_read"]


@pytest.mark.parametrize(
    ("receipts", "first"),
    [
        ([], OFFSET_STORED),
        (["a", "kafka:shop-signal:0:x", "kafka:other:0:5", "kafka:shop-signal:1:5", "5"], OFFSET_STORED),
        ([receipt(7)], 8),
        # The topic was created again after 7.
        ([receipt(7), "a", receipt(0), receipt(1)], 2),
    ],
)
def test_reading_goes_on_behind_what_the_offset_took(
    make: Make, consumer: Consumer, receipts: list[str], first: int
) -> None:
    channel = make()
    kept = channel.acknowledge(receipts)
    channel.poll()
    channel.acknowledge([receipt(20)])
    assert consumer.assigned == [first]
    assert kept == ([] if first == OFFSET_STORED else [receipt(first - 1)])


def test_the_first_look_waits_until_the_end_was_reached(make: Make, consumer: Consumer, clock: Clock) -> None:
    channel = make(interval_s=5, timeout_s=0.1)
    assert offsets(channel) == []
    assert consumer.waits == [pytest.approx(0.1)]
    channel.poll()
    assert consumer.waits[1:] == [0]
    clock.now = 5.5
    consumer.arrived += [record(0), Record(1, code=END), record(1)]
    assert offsets(channel) == [0, 1]
    assert consumer.waits[2:] == [pytest.approx(0.1), pytest.approx(0.1), 0, 0]
    consumer.arrived.append(record(2))
    assert offsets(channel) == [0, 1]
    clock.now = 11
    assert offsets(channel) == [0, 1, 2]
    assert consumer.waits[6:] == [0, 0]


def test_a_broker_that_is_away_is_not_waited_for(
    make: Make, consumer: Consumer, clock: Clock, reports: CapturingLogger
) -> None:
    channel = make(interval_s=1, timeout_s=0.1)
    channel.poll()
    for second in range(1, 100):
        clock.now = second
        consumer.complain(REFUSED, "refused")
        consumer.complain(AWAY)
        channel.poll()
    assert set(consumer.waits[1:]) == {0}
    assert events(reports) == ["signals_cannot_be_read"] * 2
    assert REPORT_AGAIN_S == 60
    consumer.arrived.append(record(0))
    clock.now += 1
    assert offsets(channel) == [0]


def test_a_crowded_topic_does_not_hold_up_planning(make: Make, consumer: Consumer) -> None:
    channel = make(timeout_s=0)
    consumer.arrived += [Record(offset, name=None) for offset in range(kafka.BURST + 500)]
    channel.poll()
    assert len(consumer.arrived) == 500
    channel.poll()
    assert consumer.arrived == []


def test_what_is_no_signal_is_passed_over(make: Make, consumer: Consumer, reports: CapturingLogger) -> None:
    channel = make()
    foreign = [Record(offset, b"{", name=name) for offset, name in enumerate((None, b"", b"Shop", b"shop.x"))]
    malformed = [b"\xff", b"{", b"[]", b"{}", b'{"type": 5}', b'{"type": "log", "id": "\\ud800"}']
    consumer.arrived += [*foreign, Record(4), Record(5, b"")]
    consumer.arrived += [Record(6 + number, content) for number, content in enumerate(malformed)]
    assert channel.poll() == []
    assert events(reports) == ["signal_is_not_for_this_source"] * 4 + ["signal_is_malformed"] * 6
    assert consumer.commits == [12]


def test_errors_stop_nothing_and_hold_no_secrets(make: Make, consumer: Consumer, reports: CapturingLogger) -> None:
    channel = make(**{"sasl.password": "geheim", "sasl.username": "me"})
    consumer.complain(KafkaError._AUTHENTICATION, "me and geheim are wrong")
    consumer.arrived.append(Record(0, code=KafkaError.UNKNOWN_TOPIC_OR_PART))
    assert channel.poll() == []
    consumer.fails = True
    assert channel.poll() == []
    told = [call.kwargs["error"] for call in reports.calls]
    assert told[0] == "me and … are wrong"
    assert events(reports) == ["signals_cannot_be_read"] * 3


def test_several_partitions_are_warned_of_once(make: Make, consumer: Consumer, reports: CapturingLogger) -> None:
    channel = make()
    consumer.partitions = 3
    consumer.arrived.append(Record(0, code=END))
    channel.poll()
    assert events(reports) == []
    deadline = time.monotonic() + within(10)
    while not reports.calls:
        assert time.monotonic() < deadline
        channel.poll()
    for _ in range(20):
        channel.poll()
    assert events(reports) == ["signal_topic_has_several_partitions"]


def test_partitions_are_not_counted_again_by_who_sees_the_count_end(
    make: Make, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []

    class Ending:
        """A thread that ends at the moment in which it is looked at."""

        def __init__(self, target: Callable[[], None], **_: Any) -> None:
            self._target = target

        def start(self) -> None:
            started.append(self)

        def is_alive(self) -> bool:
            self._target()
            return False

    channel = make()
    monkeypatch.setattr("floodmark.signals.kafka.Thread", Ending)
    consumer.partitions = 3
    consumer.arrived.append(Record(0, code=END))
    for _ in range(5):
        channel.poll()
    assert len(started) == 1


def test_it_is_closed_once(make: Make, consumer: Consumer) -> None:
    channel = make()
    channel.close()
    channel.close()
    assert consumer.closed == 1


def test_names_of_the_java_client_are_translated() -> None:
    given = {
        "signal.consumer.Request.Timeout.ms": "5",
        "signal.consumer.fetch.max.wait.ms": "6",
        "signal.consumer.ssl.endpoint.identification.algorithm": "",
        "signal.consumer.auto.offset.reset": "none",
        "signal.consumer.sasl.password": "geheim",
    }
    options = load_options({**OPTIONS, **given})
    assert librdkafka_settings(options.signal_consumer) == {
        "socket.timeout.ms": "5",
        "fetch.wait.max.ms": "6",
        "ssl.endpoint.identification.algorithm": "none",
        "auto.offset.reset": "error",
        "sasl.password": "geheim",
    }
    assert "geheim" not in repr(options) + str(options.values())
    assert "signal.consumer.<option>" not in options.values()


def test_settings_are_debeziums_and_can_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []
    channel = cast(Any, lambda settings, *rest: made.append({**settings, "rest": rest}))
    monkeypatch.setattr(kafka, "KafkaChannel", channel)
    kafka_channel(load_options(OPTIONS))
    changed = {"signal.consumer.auto.offset.reset": "latest", "signal.consumer.group.id": "mine"}
    named = {"signal.kafka.topic": "t", "signal.kafka.groupId": "g", "signal.kafka.poll.timeout.ms": "0"}
    kafka_channel(load_options({**OPTIONS, **changed, **named, "signal.poll.interval.ms": "7"}))
    assert made[0] | {"bootstrap.servers": "127.0.0.1:1", "group.id": "kafka-signal"} == made[0]
    assert made[0] | {"auto.offset.reset": "earliest", "enable.auto.commit": "false"} == made[0]
    assert made[0]["rest"] == ("shop-signal", "shop", 5.0, 0.1)
    assert made[1] | {"auto.offset.reset": "latest", "group.id": "mine"} == made[1]
    assert made[1]["rest"] == ("t", "shop", 0.007, 0.0)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"signal.kafka.bootstrap.servers": ""}, "'signal.kafka.bootstrap.servers' is required"),
        ({"signal.kafka.topic": "a b"}, "'signal.kafka.topic' has the value 'a b'"),
        ({"signal.kafka.poll.timeout.ms": "-1"}, "at least 0"),
        ({"signal.consumer.sasl.jaas.config": "geheim"}, "'signal.consumer.sasl.username' and 'signal.consumer.sasl"),
        ({"signal.consumer.ssl.truststore.location": "geheim"}, "by 'signal.consumer.ssl.ca.location'"),
        ({"signal.consumer.enable.auto.commit": "true"}, "leave it out"),
        ({"signal.consumer.sasl.pasword": "geheim"}, 'No such configuration property: "sasl.pasword"'),
        ({"signal.consumer.socket.timeout.ms": "geheim"}, '"socket.timeout.ms"'),
        ({"signal.consumer.ssl.ca.pem": "geheim", "signal.consumer.security.protocol": "SSL"}, "ssl.ca.pem"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        kafka_channel(load_options({**OPTIONS, **options}))
    assert expected in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_check_tells_whether_a_broker_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(**changed: str) -> list[tuple[str, str]]:
        given = {**OPTIONS, **{f"signal.{name.replace('_', '.')}": value for name, value in changed.items()}}
        return [(found.status, found.finding + found.fix) for found in check_channels(load_options(given))]

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert check(kafka_bootstrap_servers=address) == [("ok", f"Kafka broker {address} answers")]
    ((status, text),) = check(kafka_bootstrap_servers=address)
    assert status == "warning"
    assert "signal.kafka.bootstrap.servers" in text
    assert check(enabled_channels="source") == []
    monkeypatch.setattr("floodmark.cli.checks.environment.find_spec", lambda _: None)
    ((status, text),) = check()
    assert (status, "floodmark[kafka]" in text) == ("error", True)


def test_the_client_is_needed_by_its_channel_only() -> None:
    code = (
        "import sys; sys.modules['confluent_kafka'] = None\n"
        "from floodmark.connectors.load import load_options\n"
        "from floodmark.errors import ConfigError\n"
        "import floodmark.spark.stream.planning\n"
        "from floodmark.signals.files import signal_channels\n"
        f"options = {OPTIONS | {'state.dir': '/tmp'}!r}\n"
        "signal_channels(load_options(options | {'signal.enabled.channels': 'file'}), 'o')\n"
        "try: signal_channels(load_options(options), 'o')\n"
        "except ConfigError as exc: print(exc)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=within(60))
    assert "'confluent_kafka' is not installed. Install it with: pip install 'floodmark[kafka]'" in done.stdout
