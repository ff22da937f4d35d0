"""Asks brokers about topics, with the client of the package confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from floodmark.config.kafka_clients import kafka_secrets, without_secrets
from floodmark.errors import TargetError
from floodmark.logger import get_logger
from floodmark.sinks.kafka.failures import no_topics

if TYPE_CHECKING:
    from collections.abc import Collection

    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient

log = get_logger(__name__)

TIMEOUT_S = 30.0
_ATTEMPT_S = 10.0
_ALL_DOWN = "_ALL_BROKERS_DOWN"
_MISSING = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC")


class TopicEnds(NamedTuple):
    """A topic as it is at some time.

    Attributes:
        id: what tells it from others that had its name before it, or get it after it; brokers before 2.8 have none.
        ends: of each partition that answers, the offset of its next record.
    """

    id: str
    ends: dict[int, int]


class Brokers:
    """Asks brokers.

    Args:
        settings: librdkafka's, with secrets.
        timeout_s: how long they have to answer, in seconds.

    Attributes:
        timeout_s: the same.
    """

    def __init__(self, settings: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> None:
        self.timeout_s = timeout_s
        self._secrets = kafka_secrets(settings)
        self._errors: list[KafkaError] = []
        self._given: dict[str, Any] = {**settings, "log_level": "0", "error_cb": self._errors.append}
        self.admin = self._client()

    def _client(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        return AdminClient(self._given)

    def names(self) -> set[str]:
        """Return the names of all topics that this user is shown.

        Raises:
            TargetError: the brokers don't answer.
        """
        from confluent_kafka import KafkaException

        self._errors.clear()
        try:
            return set(self.admin.list_topics(timeout=self.timeout_s).topics)
        except KafkaException as error:
            raise self.unanswered(error.args[0]) from None

    def ends(self, topics: Collection[str]) -> dict[str, TopicEnds]:
        """Return what topics are like now; those that aren't there are left out.

        Raises:
            TargetError: the brokers don't answer.
        """
        if not topics:
            return {}
        until = time.monotonic() + self.timeout_s
        while True:
            try:
                return self._ends(topics, min(self.timeout_s, _ATTEMPT_S))
            except TargetError:
                if time.monotonic() >= until:
                    raise
            # This one may wait for a broker that is gone, though others answer.
            self.admin = self._client()

    def _ends(self, topics: Collection[str], timeout_s: float) -> dict[str, TopicEnds]:
        from confluent_kafka import KafkaException, TopicCollection, TopicPartition, Uuid
        from confluent_kafka.admin._listoffsets import OffsetSpec

        # It has no types.
        spec: Any = OffsetSpec
        self._errors.clear()
        none = str(Uuid(0, 0))
        found: dict[str, TopicEnds] = {}
        wanted: dict[TopicPartition, OffsetSpec] = {}
        described = self.admin.describe_topics(TopicCollection(list(topics)), request_timeout=timeout_s)
        for topic, answer in described.items():
            try:
                about = answer.result()
            except KafkaException as error:
                if error.args[0].name() in _MISSING:
                    continue
                raise self.unanswered(error.args[0]) from None
            number = str(about.topic_id)
            found[topic] = TopicEnds("" if number == none else number, {})
            wanted |= {TopicPartition(topic, one.id): spec.latest() for one in about.partitions}
        if wanted:
            for place, offset in self.admin.list_offsets(wanted, request_timeout=timeout_s).items():
                try:
                    found[place.topic].ends[place.partition] = offset.result().offset
                except KafkaException as error:
                    # It may have no leader at this time.
                    told = self.shown(error.args[0])
                    log.warning("a_partition_does_not_answer", topic=place.topic, partition=place.partition, error=told)
        return found

    def unanswered(self, error: KafkaError) -> TargetError:
        """Return the error for a request that failed."""
        return no_topics(self.reason(error))

    def reason(self, error: KafkaError) -> str:
        """Return why a request failed, such as a wrong password, without secrets."""
        self.admin.poll(0)
        return self.shown(next((one for one in self._errors if one.name() != _ALL_DOWN), error))

    def shown(self, error: KafkaError) -> str:
        """Return Kafka's words for an error, without secrets."""
        return without_secrets(self._secrets, error.str())
