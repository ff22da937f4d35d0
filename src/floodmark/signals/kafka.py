"""Reads signals from a Kafka topic: Debezium's channel ``kafka``.

The query's offset determines where reading resumes: after the record that was taken last, which it always remembers.
So nothing depends on when Kafka receives a commit, and neither a lost nor a foreign commit repeats or loses a signal.
The consumer group's offset is where a query begins that has taken none yet, and shows how far signals are done.

The client reads in the background, so planning doesn't wait for the brokers. Only after the start, until the end of
the topic has been reached, it waits up to ``signal.kafka.poll.timeout.ms``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from threading import Lock, Thread

from confluent_kafka import OFFSET_STORED, Consumer, KafkaError, KafkaException, Message, TopicPartition

from floodmark.config.common import CommonOptions
from floodmark.config.kafka_clients import SIGNAL_CONSUMER, kafka_secrets, librdkafka_settings, without_secrets
from floodmark.errors import ConfigError, SignalError
from floodmark.logger import get_logger
from floodmark.signals.records import Signal, read_signal

log = get_logger(__name__)

PARTITION = 0
BURST = 1000
REPORT_AGAIN_S = 60.0
CLOSE_S = 1.0
METADATA_S = 5.0
DEFAULTS = {
    # The defaults of Debezium's consumer.
    "auto.offset.reset": "earliest",
    "session.timeout.ms": "10000",
    "allow.auto.create.topics": "true",
    # An unavailable broker isn't tried twenty times a second, and its errors are logged here, not by librdkafka.
    "reconnect.backoff.ms": "500",
    "queued.max.messages.kbytes": "1024",
    "log_level": "0",
}

Settings = dict[str, str | Callable[..., None]]
"""The settings of a consumer, by librdkafka's names, and the functions that it calls."""


class KafkaChannel:
    """``signal.kafka.topic``: records whose key is the topic prefix, as ``{"type": …, "data": {…}}``.

    Args:
        settings: the consumer's settings, by librdkafka's names.
        topic: the topic; only its first partition is read.
        key: the key of the records for this source.
        interval_s: seconds between reads.
        timeout_s: how long a read may wait, in seconds, until the end of the topic has been reached once.
        connect: returns a consumer.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        topic: str,
        key: str,
        interval_s: float,
        timeout_s: float,
        connect: Callable[[Settings], Consumer] = Consumer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topic = topic
        self._key = key.encode()
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._clock = clock
        self._next = clock()
        self._secrets = kafka_secrets(settings)
        self._pending: dict[int, Signal] = {}
        self._assigned = False
        self._begin = OFFSET_STORED
        self._caught_up = False
        self._away = False
        self._partitions = 0
        self._counting: Thread | None = None
        self._closed = False
        self._in_use = Lock()
        self._read_up_to: int | None = None
        self._committed: int | None = None
        self._commit_failed = False
        self._report_at: dict[str, float] = {}
        self._consumer = connect({**settings, "error_cb": self._report, "on_commit": self._on_commit})

    def poll(self) -> list[Signal]:
        """Return the waiting signals, oldest first."""
        now = self._clock()
        due = now >= self._next
        if due:
            self._next = now + self._interval_s
        try:
            self._read_topic(due)
        except KafkaException as exc:
            self._report(exc.args[0])
        return list(self._pending.values())

    def read_at_once(self) -> None:
        """Let the next ``poll`` receive what the client has read."""
        self._next = self._clock()

    def acknowledge(self, receipts: Iterable[str]) -> list[str]:
        """Remove signals; return the last receipt, which must always be remembered: reading resumes after it."""
        taken = [offset for receipt in receipts if (offset := self._offset_of(receipt)) is not None]
        for offset in taken:
            self._pending.pop(offset, None)
        try:
            self._assign(taken[-1] if taken else None)
            self._commit()
        except KafkaException as exc:
            self._report(exc.args[0])
        return [self._receipt(taken[-1])] if taken else []

    def close(self) -> None:
        """Close the consumer, in the background if it waits for an unavailable broker."""
        closing = Thread(target=self._close, daemon=True)
        closing.start()
        closing.join(CLOSE_S)

    def _close(self) -> None:
        with self._in_use:
            if not self._closed:
                self._closed = True
                self._consumer.close()

    def _receipt(self, offset: int) -> str:
        return f"kafka:{self._topic}:{PARTITION}:{offset}"

    def _offset_of(self, receipt: str) -> int | None:
        """Return the offset of a record of this topic; None for another channel's signal."""
        prefix, _, offset = receipt.rpartition(":")
        return int(offset) if offset.isdecimal() and f"{prefix}:{offset}" == self._receipt(int(offset)) else None

    def _assign(self, taken: int | None) -> None:
        """Begin to read after the last record taken; if none was, at the group's offset, or else at the beginning."""
        if not self._assigned:
            if taken is not None:
                self._begin = taken + 1
            self._consumer.assign([self._at(self._begin)])
            self._assigned = True

    def _at(self, offset: int) -> TopicPartition:
        return TopicPartition(self._topic, PARTITION, offset)

    def _read_topic(self, due: bool) -> None:
        if due:
            self._assign(None)
            if self._caught_up:
                self._begin_counting()
        if due or not self._caught_up:
            self._take(due and not self._away)
        if due and self._commit_failed:
            self._commit_failed, self._committed = False, None
        self._commit()

    def _take(self, wait: bool) -> None:
        """Receive what the client has read."""
        until = self._clock() + self._timeout_s
        for number in count():
            if number >= BURST and self._clock() >= until:
                return
            waits = wait and not self._caught_up
            message = self._consumer.poll(max(until - self._clock(), 0) if waits else 0)
            if message is None:
                return
            error = message.error()
            if error is None:
                self._receive(message)
            elif error.name() == "_PARTITION_EOF":
                self._caught_up, self._away = True, False
                self._read_up_to = message.offset()
            else:
                self._report(error)
                # Reading may not have begun: the client requests the group's offset only once, and gives up if the
                # coordinator moves meanwhile.
                self._assigned = self._read_up_to is not None

    def _receive(self, message: Message) -> None:
        self._away = False
        offset, value = message.offset(), message.value()
        assert offset is not None
        self._read_up_to = offset + 1
        if message.key() != self._key:
            log.info("signal_is_not_for_this_source", topic=self._topic, offset=offset, key=str(message.key()))
            return
        if not value:
            return
        receipt = self._receipt(offset)
        try:
            signal = _read(value, receipt)
        except SignalError as exc:
            log.warning("signal_is_malformed", place=receipt, error=str(exc))
            return
        self._pending[offset] = replace(signal, place=receipt, millis=max(message.timestamp()[1], 0))

    def _commit(self) -> None:
        """Commit to Kafka how far the signals are done: up to the first that isn't acknowledged."""
        done = next(iter(self._pending), self._read_up_to)
        if done is not None and done != self._committed:
            self._committed = done
            self._consumer.commit(offsets=[self._at(done)], asynchronous=True)

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        failed = error or next((partition.error for partition in partitions if partition.error), None)
        if failed:
            # Retried with the next read that is due, not with each micro-batch.
            self._commit_failed = True
            self._report(failed)

    def _report(self, error: KafkaError) -> None:
        """Log an error of the topic or the brokers, each kind only once in a while: the client keeps retrying."""
        name = error.name()
        if name == "_ALL_BROKERS_DOWN":
            # The error of each broker has been logged.
            self._away = True
            return
        now = self._clock()
        if now >= self._report_at.get(name, now):
            self._report_at[name] = now + REPORT_AGAIN_S
            reason = without_secrets(self._secrets, error.str())
            log.warning("signals_cannot_be_read", place=f"topic {self._topic}", error=reason)

    def _begin_counting(self) -> None:
        # In the background, since the broker answers only after the fetch request that it holds open.
        running = self._counting is not None and self._counting.is_alive()
        # Check in this order: the thread sets the number before it ends.
        if not running and not self._partitions:
            self._counting = Thread(target=self._count_partitions, daemon=True)
            self._counting.start()

    def _count_partitions(self) -> None:
        """Warn if the topic has more than the partition that is read."""
        with self._in_use:
            if self._closed:
                return
            try:
                found = self._consumer.list_topics(self._topic, timeout=METADATA_S)
            except KafkaException:
                return
        self._partitions = len(found.topics[self._topic].partitions)
        if self._partitions > 1:
            log.warning(
                "signal_topic_has_several_partitions",
                topic=self._topic,
                partitions=self._partitions,
                read=PARTITION,
                cure="signals in the others are not seen; make a topic of one partition",
            )


def kafka_channel(options: CommonOptions) -> KafkaChannel:
    """Return the channel that the options describe.

    Raises:
        ConfigError: an option of the consumer is wrong.
    """
    settings = {
        **DEFAULTS,
        "bootstrap.servers": options.signal_kafka_bootstrap_servers or "",
        "group.id": options.signal_kafka_group_id,
        **librdkafka_settings(options.signal_consumer),
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
    }
    try:
        return KafkaChannel(
            settings,
            options.signal_topic,
            options.topic_prefix,
            options.signal_poll_interval_ms / 1000,
            options.signal_kafka_poll_timeout_ms / 1000,
        )
    except (KafkaException, TypeError, ValueError) as exc:
        reason = exc.args[0].str() if isinstance(exc, KafkaException) else str(exc)
        raise ConfigError(
            f"An option '{SIGNAL_CONSUMER}…' is wrong: {without_secrets(kafka_secrets(settings), reason)}.",
            "Names and values are librdkafka's.",
        ) from None


def _read(value: bytes, default_id: str) -> Signal:
    try:
        return read_signal(value.decode(), default_id)
    except UnicodeDecodeError as exc:
        raise SignalError(f"The signal {value[:80]!r} is not UTF-8: {exc}.") from None
