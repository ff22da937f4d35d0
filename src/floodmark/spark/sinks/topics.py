"""Makes topics with the Java client of Spark's connector, which takes the same settings as its producer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from floodmark.config.kafka_clients import kafka_secrets, without_secrets
from floodmark.errors import ConfigError, TargetError
from floodmark.logger import get_logger
from floodmark.sinks.kafka.topics import TopicRules, TopicSettings
from floodmark.spark.java import java_exceptions, java_map

log = get_logger(__name__)

CLOSE_S = 5
JAVA_ERRORS = (Py4JJavaError, PySparkException)
"""What an exception of Java's is in Python: PySpark makes its own of some of them."""
_EXISTS = "TopicExistsException"
_GO_ON = "Start the query again then; nothing is lost."
_MAKE = "Make the topic yourself, or correct"
_RIGHTS = f"Give the right to create topics, make the topic yourself, or set topic.creation.enable=false. {_GO_ON}"
_CURES = {
    "TopicAuthorizationException": _RIGHTS,
    "ClusterAuthorizationException": _RIGHTS,
    "InvalidReplicationFactorException": f"{_MAKE} its topic.creation.….replication.factor. {_GO_ON}",
    "InvalidPartitionsException": f"{_MAKE} its topic.creation.….partitions. {_GO_ON}",
    "InvalidConfigurationException": f"{_MAKE} its settings topic.creation.…. {_GO_ON}",
    "PolicyViolationException": f"{_MAKE} its settings topic.creation.…, as the brokers' policy wants them. {_GO_ON}",
    "InvalidTopicException": f"Choose another topic.prefix or topic.naming.strategy. {_GO_ON}",
    "ThrottlingQuotaExceededException": f"Raise the quota for new topics (controller_mutation_rate), or wait. {_GO_ON}",
}
"""What to do about the client's errors, by their class."""
_AWAY = f"See to the brokers of kafka.bootstrap.servers, and to the other settings kafka.…. {_GO_ON}"


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
        kind = ConfigError if name.startswith(("Invalid", "Policy")) else TargetError
        what = f"Kafka doesn't make the topic '{topic}' ({settings}): {self._shown(name, reason)}."
        return kind(what, _CURES.get(name, _AWAY))

    def _away(self, error: Exception) -> TargetError:
        name, reason = _cause(error)
        return TargetError(f"The topics that Kafka has can't be read: {self._shown(name, reason)}.", _AWAY)

    def _shown(self, name: str, reason: str) -> str:
        text = " ".join(reason.split()).rstrip(".") or name
        return without_secrets(self._secrets, text)


def _cause(error: Exception) -> tuple[str, str]:
    """Return the name of the innermost exception's class, and its message."""
    found = [*java_exceptions(error)]
    if not found:
        return type(error).__name__, str(error)
    return str(found[-1].getClass().getSimpleName()), str(found[-1].getMessage() or "")
