"""Options of the sink ``kafka``: what writes, the producer's settings, and how topics are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import model_validator

from floodmark.config.model import OWN, Advise, Family, Options, SecretFamily, nearest, option
from floodmark.sinks.kafka.producer_settings import producer_settings
from floodmark.sinks.kafka.topics import TopicRules, topic_rules

PRODUCER = "kafka."
_BYTES = "keys and values are bytes already"
_REFUSED = {
    "key.serializer": f"leave it out, since {_BYTES}",
    "value.serializer": f"leave it out, since {_BYTES}",
    "transactional.id": "leave it out, since events aren't written in transactions",
}
"""Settings of the producer that can't be given, and what to do instead."""
_ACKS = ("acks", "request.required.acks")
"""Names of one setting: the Java client's, and librdkafka's other one."""
_DEFAULTS = {"compression.type": "lz4"}
"""Settings of the producer where none are given: a task writes many events, and those of a table are much alike."""
_OF_JAVA = {"batch.size": "262144"}
"""The same, for the Java client only. It takes all of a batch's memory when it begins one."""


def _advise(model: type[Options], key: str) -> tuple[str, str]:
    others = f"Settings of the producer begin with '{PRODUCER}': '{PRODUCER}{key}'. docs/kafka.md has the others."
    return "", nearest(key, model.names(), 0.8) or others


class KafkaOptions(Options):
    """How events are written to Kafka."""

    engine: Literal["floodmark", "spark"] = option(
        "engine",
        "floodmark",
        "What writes. `floodmark`: Floodmark itself, by librdkafka, with every Spark and without jars. `spark`: "
        "Spark's connector for Kafka, with the Java client and all of its settings.",
        OWN,
    )
    producer: SecretFamily = option(
        "kafka.<option>", {}, "A setting of Kafka's producer, by the Java client's name.", OWN
    )
    topic: str | None = option("topic", None, "The topic of all events, instead of each one's own.", OWN)
    headers: bool = option("includeHeaders", True, "Whether records have the events' headers.", OWN)
    lost_events: Literal["fail", "warn"] = option(
        "lost.events",
        "fail",
        "When a topic lacks events that the query has written, or is another one of the same name: `fail` ends the "
        "query. `warn` logs it, and goes on. Only with `engine=floodmark`.",
        OWN,
    )
    creation: Family = option("topic.creation.<setting>", {}, "How topics are made; see docs/kafka.md.")

    @classmethod
    def parse(cls, options: Mapping[str, str], advise: Advise = _advise) -> Self:
        """Parse options; see ``Options.parse``."""
        return super().parse(options, advise)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.producer:
            if name.lower() in _REFUSED:
                raise ValueError(f"Option '{PRODUCER}{name}' is not allowed: {_REFUSED[name.lower()]}.")
        if weak := next((name for name in _ACKS if self.settings.get(name) == "0"), None):
            raise ValueError(
                f"Option '{PRODUCER}{weak}' is '0', with which events that a broker loses or refuses would be missing "
                "without an error: it must be all or 1."
            )
        if self.topic is not None and not self.topic.strip():
            raise ValueError("Option 'topic' is empty: name a topic, or leave it out.")
        topic_rules(self.creation)
        if self.engine == "floodmark":
            producer_settings(self.settings)
        return self

    @property
    def settings(self) -> dict[str, str]:
        """The producer's settings by Kafka's names, with secrets in plain text."""
        return {name.lower(): value.get_secret_value() for name, value in self.producer.items()}

    @property
    def writer(self) -> dict[str, str]:
        """The options of Spark's sink."""
        producer = {f"{PRODUCER}{name}": value for name, value in (_DEFAULTS | _OF_JAVA | self.settings).items()}
        return {**producer, "includeHeaders": str(self.headers).lower()}

    @property
    def librdkafka(self) -> dict[str, str]:
        """The producer's settings by librdkafka's names, with secrets in plain text."""
        return producer_settings(_DEFAULTS | self.settings)

    @property
    def rules(self) -> TopicRules | None:
        """How topics are made; None if they aren't."""
        return topic_rules(self.creation)
