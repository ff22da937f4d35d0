"""The schema history in a Kafka topic: ``schema.history.internal=…KafkaSchemaHistory``.

Each line of a file is a record of the topic's one partition. Its key is ``<owner>/<file>/<line>/<lines>``, so several
sources can share a topic, and records of others are skipped. A record without value removes its line. A file counts
only if all its lines are there, so one whose writer died doesn't. The topic is read once, at its first use; from then
on this process is the only one that writes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import RLock
from typing import TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from floodmark.config.kafka_clients import kafka_secrets, librdkafka_settings, without_secrets
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.errors import ConfigError, ConnectError

T = TypeVar("T")
HISTORY = "schema.history.internal"
PARTITION = 0
POLL_S = 0.5
TOLD_S = 0.05
WRITE_S = 30.0
BURST = 10_000
_QUIET = {"log_level": "0", "reconnect.backoff.ms": "500"}
_UNSETTLED = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
)
"""Errors for a moment when a topic has just been created, or another broker becomes the leader."""
_FOREVER = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


class TopicFiles:
    """``HistoryFiles`` in a topic, which is created if it isn't there.

    Args:
        topic: its name.
        owner: what makes the source unique in it.
        consumer: settings of the client that reads, by librdkafka's names.
        producer: settings of the client that writes.
        timeout_s: how long the brokers may take to answer.
        create_s: how long they may take to create the topic.
    """

    def __init__(
        self,
        topic: str,
        owner: str,
        consumer: Mapping[str, str],
        producer: Mapping[str, str],
        timeout_s: float,
        create_s: float,
    ) -> None:
        self.place = f"the topic {topic}"
        self._topic = topic
        self._owner = owner
        self._consumer = {**_QUIET, **consumer, "group.id": f"floodmark-{uuid.uuid4()}", "enable.auto.commit": "false"}
        self._producing = {**_QUIET, **producer, "enable.idempotence": "true"}
        self._timeout_s = timeout_s
        self._create_s = create_s
        self._secrets = kafka_secrets(consumer) + kafka_secrets(producer)
        self._lines: dict[str, dict[tuple[int, int], bytes]] | None = None
        self._producer: Producer | None = None
        # Capture writes files while the planner removes others.
        self._lock = RLock()

    def names(self) -> list[str]:
        """Return the names of the files.

        Raises:
            ConfigError: the topic has several partitions, or a setting is wrong.
            ConnectError: the brokers cannot be reached.
        """
        with self._lock:
            return [name for name, lines in self._known().items() if _whole(lines)]

    def read(self, name: str) -> list[bytes]:
        """Return a file's lines."""
        with self._lock:
            lines = self._known().get(name, {})
        if not _whole(lines):
            raise ValueError("it is not there")
        return [lines[at] for at in sorted(lines)]

    def write(self, name: str, lines: Sequence[bytes]) -> None:
        """Write a file.

        Raises:
            ConnectError: the brokers did not accept it.
        """
        with self._lock:
            known = self._known()
            # Keys hold the number of lines, so old records might not be replaced.
            self.remove([name] if name in known else [])
            written = {(number, len(lines)): line for number, line in enumerate(lines)}
            self._produce((self._key(name, at), line) for at, line in written.items())
            known[name] = written

    def remove(self, names: Sequence[str]) -> None:
        """Remove files.

        Raises:
            ConnectError: the brokers did not accept it.
        """
        with self._lock:
            known = self._known()
            self._produce((self._key(name, at), None) for name in names for at in known.get(name, ()))
            for name in names:
                known.pop(name, None)

    def _key(self, name: str, at: tuple[int, int]) -> str:
        return f"{self._owner}/{name}/{at[0]}/{at[1]}"

    def _known(self) -> dict[str, dict[tuple[int, int], bytes]]:
        if self._lines is None:
            try:
                self._lines = self._load()
            except KafkaException as exc:
                raise self._away("read", exc.args[0]) from None
        return self._lines

    def _load(self) -> dict[str, dict[tuple[int, int], bytes]]:
        consumer = self._made(Consumer, self._consumer)
        try:
            self._prepare(consumer)
            lines: dict[str, dict[tuple[int, int], bytes]] = {}
            for key, value in self._records(consumer):
                owner, _, rest = key.partition("/")
                parts = rest.split("/")
                if owner != self._owner or len(parts) != 3 or not all(map(str.isdecimal, parts[1:])):
                    continue
                file = lines.setdefault(parts[0], {})
                at = int(parts[1]), int(parts[2])
                if value is None:
                    file.pop(at, None)
                else:
                    file[at] = value
            return lines
        finally:
            consumer.close()

    def _prepare(self, consumer: Consumer) -> None:
        """Create the topic if it isn't there, and verify that it has one partition."""
        partitions = self._partitions(consumer)
        if not partitions:
            # -1: the brokers' default number of replicas.
            topic = NewTopic(self._topic, 1, -1, config=_FOREVER)
            admin = AdminClient(dict(self._producing))
            try:
                admin.create_topics([topic])[self._topic].result(self._create_s)
            except KafkaException as exc:
                if exc.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
            until = time.monotonic() + self._create_s
            while not self._partitions(consumer) and time.monotonic() < until:
                time.sleep(TOLD_S)
        elif partitions > 1:
            raise ConfigError(
                f"Option '{HISTORY}.kafka.topic' is '{self._topic}', which has {partitions} partitions.",
                "The history has an order, so the topic must have one partition.",
            )

    def _partitions(self, consumer: Consumer) -> int:
        """Return how many partitions the topic has; 0 if it isn't there, as far as the broker that answers knows."""
        found = consumer.list_topics(timeout=self._timeout_s).topics.get(self._topic)
        return 0 if found is None or found.error is not None else len(found.partitions)

    def _records(self, consumer: Consumer) -> Iterator[tuple[str, bytes | None]]:
        """Yield key and value of all records that are in the topic now."""
        partition = TopicPartition(self._topic, PARTITION, OFFSET_BEGINNING)
        first, end = self._ends(consumer, partition)
        consumer.assign([partition])
        at, until = first, time.monotonic() + self._timeout_s
        while at < end:
            message = consumer.poll(POLL_S)
            if message is None:
                at = max([at, *(found.offset for found in consumer.position([partition]))])
                if time.monotonic() > until:
                    raise self._away("read", KafkaError(KafkaError._TIMED_OUT))
                continue
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            until = time.monotonic() + self._timeout_s
            offset, key = message.offset(), message.key()
            assert offset is not None
            at = offset + 1
            if isinstance(key, bytes):
                value = message.value()
                yield key.decode("utf-8", "replace"), value if isinstance(value, bytes) else None

    def _ends(self, consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
        """Return the first offset and the one after the last, once the partition has a leader."""
        until = time.monotonic() + self._timeout_s
        while True:
            try:
                return consumer.get_watermark_offsets(partition, timeout=self._timeout_s)
            except KafkaException as exc:
                if exc.args[0].code() not in _UNSETTLED or time.monotonic() > until:
                    raise
            time.sleep(TOLD_S)

    def _produce(self, records: Iterator[tuple[str, bytes | None]]) -> None:
        """Write records, and wait until the brokers have acknowledged them."""
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                errors.append(error)

        try:
            if self._producer is None:
                self._producer = self._made(Producer, self._producing)
            for number, (key, value) in enumerate(records):
                # The client holds a limited number of records.
                if number % BURST == BURST - 1 and self._producer.flush(WRITE_S):
                    break
                self._producer.produce(self._topic, value, key, PARTITION, on_delivery=delivered)
            if self._producer.flush(WRITE_S):
                self._producer.purge()
                errors.append(KafkaError(KafkaError._TIMED_OUT))
        except (KafkaException, BufferError) as exc:
            reason = exc.args[0] if isinstance(exc, KafkaException) else KafkaError(KafkaError._QUEUE_FULL)
            errors.append(reason)
        if errors:
            # Which records were written isn't known, so the topic is read again before the next write.
            self._lines = self._producer = None
            raise self._away("written", errors[0])

    def _made(self, make: Callable[[dict[str, str]], T], settings: Mapping[str, str]) -> T:
        try:
            return make(dict(settings))
        except (KafkaException, TypeError, ValueError) as exc:
            reason = exc.args[0].str() if isinstance(exc, KafkaException) else str(exc)
            raise ConfigError(
                self._without(f"An option '{HISTORY}.consumer.…' or '{HISTORY}.producer.…' is wrong: {reason}."),
                "Names and values are librdkafka's.",
            ) from None

    def _away(self, done: str, error: KafkaError) -> ConnectError:
        return ConnectError(
            self._without(f"The schema history in {self.place} cannot be {done}: {error.str()}."),
            f"See whether the brokers of {HISTORY}.kafka.bootstrap.servers are there.",
        )

    def _without(self, text: str) -> str:
        return without_secrets(self._secrets, text)


def topic_files(options: BinlogOptions) -> TopicFiles:
    """Return the files of the topic that the options name."""
    brokers = {"bootstrap.servers": options.history_brokers or ""}
    return TopicFiles(
        options.history_topic or "",
        options.owner,
        brokers | librdkafka_settings(options.history_consumer),
        brokers | librdkafka_settings(options.history_producer),
        options.history_poll_ms * options.history_attempts / 1000,
        options.history_create_ms / 1000,
    )


def _whole(lines: Mapping[tuple[int, int], bytes]) -> bool:
    """Return whether a file's lines are all there."""
    return bool(lines) and len(lines) == next(iter(lines))[1]
