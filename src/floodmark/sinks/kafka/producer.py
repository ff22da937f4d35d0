"""Produces records with librdkafka, and waits until brokers have them."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import create_string_buffer
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.config.kafka_clients import kafka_secrets, without_secrets
from floodmark.errors import TargetError
from floodmark.sinks.kafka import librdkafka as rd
from floodmark.sinks.kafka.failures import no_login, no_trust, not_taken, too_large
from floodmark.sinks.kafka.producer_settings import largest

SLICE = 5_000
"""How many records librdkafka is given at once; failures are looked for in between."""
_WAIT_MS = 5
"""How long to wait where the producer's memory is full."""
_FLUSH_MS = 50
_UNTRUSTED = "certificate verify failed"
"""What OpenSSL says of a certificate that it doesn't trust; other errors of TLS may pass."""
_ALL_DOWN = "_ALL_BROKERS_DOWN"
"""An error that says less than the one before it, which names a broker and the reason."""


class Producer:
    """Sends records in their order. After an error it is of no use.

    Args:
        settings: librdkafka's, with secrets.

    Raises:
        ConfigError: a setting is refused, or librdkafka isn't there.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._kafka: Any = rd.library()
        self._most, self._sets_most = largest(settings)
        self._secrets = kafka_secrets(settings)
        self._client: int | None = rd.new_client({**settings, "log_level": "0"})
        self._events = self._kafka.rd_kafka_queue_get_main(self._client)
        self._topics: dict[str, int] = {}
        self._connection = ""

    def produce(
        self,
        topic: str,
        keys: pa.Array,
        values: pa.Array,
        headers: pa.Array | None = None,
        partitions: pa.Array | None = None,
    ) -> None:
        """Hand over records of a topic; they may still be on their way when this returns.

        Args:
            topic: its name.
            keys: texts or binaries; null: a record has none.
            values: texts or binaries; null: a tombstone.
            headers: lists of names and values, such as those of ``HEADERS``; None: no record has any.
            partitions: their numbers; null, or None for all: one by the record's key.

        Raises:
            TargetError: a record, of these or of earlier ones, isn't taken.
        """
        messages = rd.messages_of(keys, values, partitions)
        sizes = messages["len"] + messages["key_len"]
        if len(sizes) and sizes.max() > self._most:
            # There would never be memory for one that is larger than all of it.
            raise too_large(str(sizes.max()), str(self._most), self._sets_most)
        begin = 0
        if headers is not None:
            for at in np.flatnonzero(_counts(headers)).tolist():
                self._produce(topic, messages[begin:at])
                self._produce_one(topic, messages[at], headers[at].as_py())
                begin = at + 1
        self._produce(topic, messages[begin:])

    def flush(self) -> None:
        """Wait until brokers have all records.

        Raises:
            TargetError: they don't take one.
        """
        while self._kafka.rd_kafka_flush(self._client, _FLUSH_MS) == rd.TIMED_OUT:
            self._serve(0)
        self._serve(0)

    def close(self) -> None:
        """End at once; records that brokers don't have yet are dropped."""
        if self._client is not None:
            self._kafka.rd_kafka_purge(self._client, rd.PURGE_ALL)
            for topic in self._topics.values():
                self._kafka.rd_kafka_topic_destroy(topic)
            self._kafka.rd_kafka_queue_destroy(self._events)
            self._kafka.rd_kafka_destroy(self._client)
            self._client = None

    def _produce(self, topic: str, messages: NDArray[np.void]) -> None:
        for begin in range(0, len(messages), SLICE):
            part = np.ascontiguousarray(messages[begin : begin + SLICE])
            done = 0
            while done < len(part):
                done += self._hand_over(topic, part[done:])
                self._serve(0 if done == len(part) else _WAIT_MS)

    def _hand_over(self, topic: str, messages: NDArray[np.void]) -> int:
        """Return how many records were taken: all, or those for which there is memory."""
        messages["err"] = 0
        flags = rd.COPY | rd.EACH_PARTITION
        address = messages.ctypes.data
        self._kafka.rd_kafka_produce_batch(self._topic(topic), rd.ANY_PARTITION, flags, address, len(messages))
        failed = np.flatnonzero(messages["err"])
        if not len(failed):
            return len(messages)
        # After one for which there is no memory, none is taken.
        first = messages[failed[0]]
        if first["err"] != rd.QUEUE_FULL:
            raise self._refused(topic, int(first["err"]), int(first["len"] + first["key_len"]))
        return int(failed[0])

    def _produce_one(self, topic: str, message: Any, headers: list[Mapping[str, Any]]) -> None:
        parts = [rd.Part(kind) for kind in (rd.TOPIC, rd.PARTITION, rd.FLAGS, rd.VALUE, rd.KEY)]
        parts[0].u.cstr = topic.encode()
        parts[1].u.i32 = int(message["partition"])
        parts[2].u.i = rd.COPY
        for part, name in zip(parts[3:], ("payload", "key"), strict=True):
            part.u.mem.ptr, part.u.mem.size = int(message[name]) or None, int(message[_LENGTHS[name]])
        for one in headers:
            part = rd.Part(rd.HEADER)
            value = one["value"]
            part.u.header.name, part.u.header.val = one["key"].encode(), value
            part.u.header.size = 0 if value is None else len(value)
            parts.append(part)
        while error := self._kafka.rd_kafka_produceva(self._client, (rd.Part * len(parts))(*parts), len(parts)):
            code = self._kafka.rd_kafka_error_code(error)
            self._kafka.rd_kafka_error_destroy(error)
            if code != rd.QUEUE_FULL:
                raise self._refused(topic, code, int(message["len"] + message["key_len"]))
            self._serve(_WAIT_MS)

    def _topic(self, name: str) -> int:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._kafka.rd_kafka_topic_new(self._client, name.encode(), None)
            if topic is None:
                raise not_taken("TOPIC_EXCEPTION", "the name is not allowed", name, "")
            self._topics[name] = topic
        return topic

    def _refused(self, topic: str, code: int, size: int) -> TargetError:
        """Return the error for a record that librdkafka doesn't take."""
        name = rd.error_name(code)
        if name == "MSG_SIZE_TOO_LARGE":
            return too_large(str(size), str(self._most))
        return self._fatal() if code == rd.FATAL else self._not_taken(code, topic)

    def _serve(self, wait_ms: int) -> None:
        """Look at what librdkafka reports: deliveries that have failed, and errors.

        Args:
            wait_ms: how long to wait for a report.
        """
        while event := self._kafka.rd_kafka_queue_poll(self._events, wait_ms):
            wait_ms = 0
            try:
                self._look_at(event)
            finally:
                self._kafka.rd_kafka_event_destroy(event)

    def _look_at(self, event: int) -> None:
        kind = self._kafka.rd_kafka_event_type(event)
        if kind == rd.EVENT_DELIVERY:
            while message := self._kafka.rd_kafka_event_message_next(event):
                report = message.contents
                if report.err:
                    name = self._kafka.rd_kafka_topic_name(report.rkt).decode(errors="replace")
                    raise self._not_taken(report.err, name)
        elif kind == rd.EVENT_ERROR:
            code = self._kafka.rd_kafka_event_error(event)
            text = self._kafka.rd_kafka_event_error_string(event) or b""
            shown = without_secrets(self._secrets, text.decode(errors="replace"))
            name = rd.error_name(code)
            if code == rd.FATAL:
                raise self._fatal()
            if name == "_AUTHENTICATION":
                raise no_login(shown)
            if name == "_SSL" and _UNTRUSTED in shown:
                raise no_trust(shown)
            if name != _ALL_DOWN:
                # The client goes on trying; if it doesn't succeed in time, this is why.
                self._connection = shown

    def _not_taken(self, code: int, topic: str) -> TargetError:
        return not_taken(rd.error_name(code), rd.error_text(code), topic, self._connection)

    def _fatal(self) -> TargetError:
        reason = create_string_buffer(rd.REASON_BYTES)
        code = self._kafka.rd_kafka_fatal_error(self._client, reason, rd.REASON_BYTES)
        shown = without_secrets(self._secrets, reason.value.decode(errors="replace"))
        return not_taken(rd.error_name(code), shown, "", self._connection)


_LENGTHS = {"payload": "len", "key": "key_len"}


def _counts(headers: pa.Array) -> NDArray[np.int64]:
    """Return how many headers each record has, shape (records,)."""
    counts: NDArray[np.int64] = headers.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return counts
