"""Makes topics, from what writes their first events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from floodmark.errors import ConfigError, TargetError
from floodmark.logger import get_logger
from floodmark.sinks.kafka.brokers import TIMEOUT_S, Brokers
from floodmark.sinks.kafka.failures import not_made
from floodmark.sinks.kafka.topics import TopicRules, TopicSettings

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

log = get_logger(__name__)

_EXISTS = "TOPIC_ALREADY_EXISTS"


class MissingTopics:
    """Makes the topics that events go to, unless they are there; those that are there stay as they are.

    Args:
        settings: librdkafka's, with secrets.
        rules: how topics are made.
        timeout_s: how long brokers have to answer, in seconds.
    """

    def __init__(self, settings: Mapping[str, str], rules: TopicRules, timeout_s: float = TIMEOUT_S) -> None:
        self._settings = settings
        self._rules = rules
        self._timeout_s = timeout_s
        self._known: set[str] = set()

    def require(self, topics: Iterable[str]) -> None:
        """Make topics that aren't there. Each is looked up once: one that is deleted later isn't made again.

        Args:
            topics: their names.

        Raises:
            ConfigError: the brokers refuse what the options say of a topic.
            TargetError: a topic can't be made, or the brokers don't answer.
        """
        wanted = sorted(set(topics) - self._known)
        if not wanted:
            return
        brokers = Brokers(self._settings, self._timeout_s)
        there = brokers.names()
        self._make(brokers, [topic for topic in wanted if topic not in there])
        self._known.update(wanted)

    def _make(self, brokers: Brokers, topics: list[str]) -> None:
        if not topics:
            return
        from confluent_kafka import KafkaException
        from confluent_kafka.cimpl import NewTopic

        settings = {topic: self._rules.settings(topic) for topic in topics}
        new = [
            NewTopic(name, one.partitions, one.replication, config=dict(one.config)) for name, one in settings.items()
        ]
        for topic, made in brokers.admin.create_topics(new, request_timeout=brokers.timeout_s).items():
            try:
                made.result()
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                # Another task has made it meanwhile, or it is one that this user isn't shown.
                if cause.name() != _EXISTS:
                    raise _refused(brokers, topic, settings[topic], cause) from None
            else:
                log.info("kafka_topic_made", topic=topic, settings=str(settings[topic]))


def _refused(brokers: Brokers, topic: str, settings: TopicSettings, cause: KafkaError) -> ConfigError | TargetError:
    return not_made(topic, settings, cause.name(), brokers.shown(cause))
