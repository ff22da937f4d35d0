"""Makes topics with the Java client of Spark's connector, which takes the same settings as its producer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from floodmark.config.kafka_clients import kafka_secrets, without_secrets
from floodmark.errors import ConfigError, TargetError
from floodmark.logger import get_logger
from floodmark.sinks.kafka.failures import no_topics, not_made
from floodmark.sinks.kafka.topics import TopicRules, TopicSettings
from floodmark.spark.java import java_exceptions, java_map

log = get_logger(__name__)

CLOSE_S = 5
JAVA_ERRORS = (Py4JJavaError, PySparkException)
"""What an exception of Java's is in Python: PySpark makes its own of some of them."""
_EXISTS = "TopicExistsException"
_NAMES = {
    "TopicAuthorizationException": "TOPIC_AUTHORIZATION_FAILED",
    "ClusterAuthorizationException": "CLUSTER_AUTHORIZATION_FAILED",
    "InvalidReplicationFactorException": "INVALID_REPLICATION_FACTOR",
    "InvalidPartitionsException": "INVALID_PARTITIONS",
    "InvalidConfigurationException": "INVALID_CONFIG",
    "PolicyViolationException": "POLICY_VIOLATION",
    "InvalidTopicException": "TOPIC_EXCEPTION",
    "ThrottlingQuotaExceededException": "THROTTLING_QUOTA_EXCEEDED",
}
"""The client's errors by their class, and their names in Kafka's protocol."""


class KafkaTopics:
    """Makes the topics that events go to, unless they are there; those that are there stay as they are.

    Args:
        settings: the producer's settings, by Kafka's names.
        rules: how topics are made.
    """

    def __init__(self, settings: Mapping[str, str], rules: TopicRules) -> None:
        self._settings = settings
        self._rules = rules
        self._secrets = kafka_secrets(settings)
        self._known: set[str] = set()

    def require(self, jvm: Any, topics: Iterable[str]) -> None:
        """Make topics that aren't there. Each is looked up once: one that is deleted later isn't made again.

        Args:
            jvm: Spark's.
            topics: their names.

        Raises:
            ConfigError: the brokers refuse what the options say of a topic.
            TargetError: a topic can't be made, or the brokers don't answer.
        """
        wanted = sorted(set(topics) - self._known)
        if not wanted:
            return
        try:
            client = self._client(jvm)
        except JAVA_ERRORS as error:
            raise self._away(error) from None
        try:
            for topic, made in self._create(jvm, client, self._missing(jvm, client, wanted)):
                self._await(topic, made)
        finally:
            client.close(jvm.java.time.Duration.ofSeconds(CLOSE_S))
        self._known.update(wanted)

    def _client(self, jvm: Any) -> Any:
        return jvm.org.apache.kafka.clients.admin.AdminClient.create(java_map(jvm, self._settings))

    def _missing(self, jvm: Any, client: Any, topics: Iterable[str]) -> list[str]:
        """Return the topics that aren't there."""
        missing = jvm.java.util.TreeSet()
        for topic in topics:
            missing.add(topic)
        try:
            missing.removeAll(client.listTopics().names().get())
        except JAVA_ERRORS as error:
            raise self._away(error) from None
        return [str(topic) for topic in missing]

    def _create(self, jvm: Any, client: Any, topics: list[str]) -> list[tuple[str, Any]]:
        """Ask for topics; return the future of each."""
        if not topics:
            return []
        new = jvm.java.util.ArrayList()
        for topic in topics:
            settings = self._rules.settings(topic)
            one = jvm.org.apache.kafka.clients.admin.NewTopic(topic, settings.partitions, settings.replication)
            new.add(one.configs(java_map(jvm, dict(settings.config))))
        futures = client.createTopics(new).values()
        return [(topic, futures.get(topic)) for topic in topics]

    def _await(self, topic: str, made: Any) -> None:
        settings = self._rules.settings(topic)
        try:
            made.get()
        except JAVA_ERRORS as error:
            name, reason = _cause(error)
            # Another query has made it meanwhile, or it is one that this user isn't shown.
            if name != _EXISTS:
                raise self._error(topic, settings, name, reason) from None
        else:
            log.info("kafka_topic_made", topic=topic, settings=str(settings))

    def _error(self, topic: str, settings: TopicSettings, name: str, reason: str) -> ConfigError | TargetError:
        return not_made(topic, settings, _NAMES.get(name, name), self._shown(name, reason))

    def _away(self, error: Exception) -> TargetError:
        return no_topics(self._shown(*_cause(error)))

    def _shown(self, name: str, reason: str) -> str:
        text = " ".join(reason.split()).rstrip(".") or name
        return without_secrets(self._secrets, text)


def _cause(error: Exception) -> tuple[str, str]:
    """Return the name of the innermost exception's class, and its message."""
    found = [*java_exceptions(error)]
    if not found:
        return type(error).__name__, str(error)
    return str(found[-1].getClass().getSimpleName()), str(found[-1].getMessage() or "")
