"""Debezium's offsets and schema history in Kafka topics: Kafka Connect's ``offset.storage.topic``, and its own.

Source: Kafka Connect's ``KafkaOffsetBackingStore`` (the last value of a key counts, an empty one removes it) and
Debezium's ``KafkaSchemaHistory`` (one partition, records without keys).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from floodmark.config.kafka_clients import kafka_secrets, without_secrets
from floodmark.debezium.history import RECORD_MEMBERS
from floodmark.errors import ConfigError, ConnectError, OffsetError
from floodmark.json_data import Json

SCHEME = "kafka://"
TIMEOUT_S = 30.0
POLL_S = 0.1
"""How long as many records as there can be at once are waited for."""
BURST = 10_000
_SETTINGS = {"log_level": "0", "group.id": "floodmark-offsets", "enable.auto.commit": "false"}
_PRODUCER = {"log_level": "0", "enable.idempotence": "true", "partitioner": "murmur2_random"}
"""Java's clients choose a key's partition so."""


class Topic:
    """A topic that is read as it is now, and appended to.

    Args:
        uri: ``kafka://<brokers>/<topic>``.
        settings: further ones of the client, by librdkafka's names.

    Raises:
        ConfigError: the URI has another form.
    """

    def __init__(self, uri: str, settings: Mapping[str, str]) -> None:
        parts = urlsplit(uri)
        self._topic = parts.path.strip("/")
        if not parts.netloc or not self._topic or "/" in self._topic or parts.query:
            raise ConfigError(f"'{uri}' names no Kafka topic.", "Write kafka://<host>:<port>,<host>:<port>/<topic>.")
        self._settings = {"bootstrap.servers": parts.netloc, **settings}
        self._secrets = kafka_secrets(settings)
        self.place = f"the topic {self._topic}"

    def read(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Yield key and value of all records that are in the topic now; those of a partition in their order.

        Raises:
            ConnectError: the brokers can't be reached.
            OffsetError: there is no such topic.
        """
        for messages in self.batches():
            yield from ((_bytes(one.key()), _bytes(one.value())) for one in messages)

    def batches(self, places: Sequence[tuple[int, int]] | None = None) -> Iterator[list[Message]]:
        """Yield all records that are in the topic now, or some of them; those of a partition in their order.

        Args:
            places: partitions and offsets of those that are wanted; what isn't there any more is left out. None: all.

        Raises:
            ConnectError: the brokers can't be reached.
            OffsetError: there is no such topic.
        """
        consumer = Consumer({**_SETTINGS, **self._settings, "enable.partition.eof": True})
        try:
            found = consumer.list_topics(timeout=TIMEOUT_S).topics.get(self._topic)
            if found is None or found.error is not None or not found.partitions:
                raise OffsetError(f"There is no Kafka topic '{self._topic}'.", "Name that of Debezium's connector.")
            if places is None:
                yield from self._batches(consumer, [(number, OFFSET_BEGINNING) for number in found.partitions])
            else:
                for place in places:
                    yield from self._one(consumer, place)
        except KafkaException as exc:
            raise self._away("read", exc.args[0]) from None
        finally:
            consumer.close()

    def with_beginning(self) -> list[str]:
        """Return the rest of the names of those topics that begin as this one's name, which ends with ``*``.

        Raises:
            ConnectError: the brokers can't be reached.
        """
        begin = self._topic.removesuffix("*")
        try:
            names = Consumer({**_SETTINGS, **self._settings}).list_topics(timeout=TIMEOUT_S).topics
        except KafkaException as exc:
            raise self._away("listed", exc.args[0]) from None
        return sorted(name.removeprefix(begin) for name in names if name.startswith(begin))

    def append(self, records: Iterable[tuple[bytes | None, bytes]]) -> None:
        """Append records, and wait until the brokers have acknowledged them.

        Raises:
            ConnectError: they did not.
        """
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                errors.append(error)

        try:
            producer = Producer({**_PRODUCER, **self._settings})
            for number, (key, value) in enumerate(records):
                # The client holds a limited number of records.
                if number % BURST == BURST - 1 and producer.flush(TIMEOUT_S):
                    break
                producer.produce(self._topic, value, key, on_delivery=delivered)
            if producer.flush(TIMEOUT_S):
                producer.purge()
                errors.append(KafkaError(KafkaError._TIMED_OUT))
        except (KafkaException, BufferError) as exc:
            errors.append(exc.args[0] if isinstance(exc, KafkaException) else KafkaError(KafkaError._QUEUE_FULL))
        if errors:
            raise self._away("written", errors[0])

    def _batches(
        self, consumer: Consumer, starts: Sequence[tuple[int, int]], most: int = BURST
    ) -> Iterator[list[Message]]:
        # The client follows a partition whose leader changes while it fetches, and only then: so the ends come from
        # fetching, too, and not from requests of their own.
        left = {number for number, _ in starts}
        consumer.assign([TopicPartition(self._topic, number, offset) for number, offset in starts])
        until = time.monotonic() + TIMEOUT_S
        while left:
            messages = consumer.consume(most, POLL_S)
            if messages:
                until = time.monotonic() + TIMEOUT_S
            elif time.monotonic() > until:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            records = []
            for message in messages:
                error = message.error()
                if error is None:
                    # Records that arrive behind a partition's end are read with the others' rest.
                    records.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition() or 0)
                else:
                    raise KafkaException(error)
            if records:
                yield records

    def _one(self, consumer: Consumer, place: tuple[int, int]) -> Iterator[list[Message]]:
        for messages in self._batches(consumer, [place], most=1):
            if (messages[0].partition(), messages[0].offset()) == place:
                yield messages[:1]
            return

    def _away(self, done: str, error: KafkaError) -> ConnectError:
        text = f"The Kafka topic '{self._topic}' cannot be {done}: {error.str()}."
        return ConnectError(without_secrets(self._secrets, text), "See whether its brokers are there.")


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def topics_of(uri: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the topics that a URI names: by what its ``*``, if there is one, stands for, the URI of each.

    Args:
        uri: ``kafka://<brokers>/<topic>``, whose last character may be a ``*``.
        settings: further ones of the client, by librdkafka's names.

    Raises:
        ConfigError: the URI has another form.
        ConnectError: the brokers can't be reached.
    """
    if not uri.endswith("*"):
        return {"": uri}
    topic = Topic(uri, settings)
    return {name: f"{uri[:-1]}{name}" for name in topic.with_beginning()}


class TopicOffsets:
    """An ``OffsetStore`` in the topic of Kafka Connect's workers; arguments and errors as of ``Topic``."""

    def __init__(self, uri: str, settings: Mapping[str, str]) -> None:
        self._topic = Topic(uri, settings)
        self.place = self._topic.place

    def read(self) -> Mapping[bytes, bytes | None]:
        """Return the last value of each key."""
        return {key: value or None for key, value in self._topic.read() if key is not None}

    def write(self, key: bytes, value: bytes) -> str:
        """Append a value; the topic has the former one until it is compacted."""
        self._topic.append([(key, value)])
        return ""


class TopicHistory:
    """A ``HistoryStore`` in the topic of a connector; arguments and errors as of ``Topic``."""

    def __init__(self, uri: str, settings: Mapping[str, str]) -> None:
        self._topic = Topic(uri, settings)
        self.place = self._topic.place

    def read(self) -> Iterator[Mapping[str, Json]]:
        """Yield the records, the oldest first."""
        for number, (_, value) in enumerate(self._topic.read(), start=1):
            try:
                found = json.loads(value or b"null")
            except ValueError:
                found = None
            if not isinstance(found, Mapping) or not found.keys() >= RECORD_MEMBERS:
                raise OffsetError(
                    f"Record {number} of {self.place} is no record of Debezium's schema history.",
                    "Name the topic of schema.history.internal.kafka.topic.",
                )
            yield found

    def write(self, records: Sequence[Mapping[str, Json]]) -> str:
        """Append the records, which hold all structures; what the topic has stays."""
        texts = (json.dumps(one, separators=(",", ":"), ensure_ascii=False).encode() for one in records)
        self._topic.append((None, text) for text in texts)
        return ""
