"""Checks the topics of the sink ``kafka``: whether they are there, or would be made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from floodmark.config.common import CommonOptions
from floodmark.config.kafka_clients import connection_settings, kafka_secrets, without_secrets
from floodmark.connectors.contract.findings import Finding
from floodmark.connectors.registry import connector_module
from floodmark.errors import ConfigError
from floodmark.events.topics import table_topic
from floodmark.sinks.kafka.brokers import Brokers
from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.sinks.kafka.topics import TopicRules
from floodmark.spark.pipelines.model import Pipeline
from floodmark.verification.source import reading_options

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

CHECK = "topics"
TIMEOUT_S = 5.0
SHOWN = 5
"""How many topics a finding names."""
_AUTOMATIC = "auto.create.topics.enable"


def check_topics(pipeline: Pipeline) -> list[Finding]:
    """Check that the topics of the captured tables are there, or that brokers or the sink would make them.

    The source and a broker must answer.

    Raises:
        FloodmarkError: the source doesn't name its tables.
    """
    if find_spec("confluent_kafka") is None:
        return [Finding(CHECK, "ok", "not checked: 'confluent_kafka' is not installed (floodmark[kafka])")]
    options = KafkaOptions.parse(pipeline.sink.options)
    try:
        settings = connection_settings(options.settings)
    except ConfigError as error:
        return [Finding(CHECK, "ok", f"not checked: {error.what}")]
    return [_check(_topics(pipeline, options), settings, options.rules)]


def _topics(pipeline: Pipeline, options: KafkaOptions) -> list[str]:
    """Return the topics of the tables that are captured now."""
    if options.topic is not None:
        return [options.topic]
    return captured_topics(reading_options(pipeline.source))


def captured_topics(options: CommonOptions) -> list[str]:
    """Return the topics of the tables that a source captures now."""
    source = connector_module(options.connector, "connector").make_source(options)
    try:
        names = [name.partition(".") for name in source.tables.names()]
    finally:
        source.close()
    return sorted({table_topic(options, schema, table) for schema, _, table in names})


def _check(topics: Sequence[str], settings: Mapping[str, str], rules: TopicRules | None) -> Finding:
    from confluent_kafka import KafkaException

    brokers: Brokers | None = None
    try:
        brokers = Brokers(settings, TIMEOUT_S)
        admin = brokers.admin
        found = admin.list_topics(timeout=TIMEOUT_S)
        missing = [topic for topic in topics if topic not in found.topics]
        if not missing:
            return Finding(CHECK, "ok", f"{len(topics)} are there")
        if rules is not None:
            return _would_make(admin, missing, rules, len(topics))
        automatic = _makes_topics(admin, next(iter(found.brokers)))
    except (KafkaException, TypeError, ValueError) as exc:
        if isinstance(exc, KafkaException) and brokers is not None:
            reason = brokers.reason(exc.args[0])
        else:
            reason = without_secrets(kafka_secrets(settings), str(exc))
        text = f"The topics can't be read: {reason}."
        return Finding(CHECK, "error", text, "Correct the options kafka.… of the sink, or start the brokers.")
    if automatic:
        return Finding(CHECK, "ok", f"{_some(missing)} will be made by the brokers ({_AUTOMATIC})")
    fix = "Create them, or let the sink make them: topic.creation.default.partitions and ….replication.factor."
    if automatic is None:
        text = f"{_some(missing)} must be made by the brokers, whose {_AUTOMATIC} can't be read."
        return Finding(CHECK, "warning", text, fix)
    return Finding(CHECK, "error", f"Kafka has no {_some(missing)}, and doesn't make topics ({_AUTOMATIC}).", fix)


def _would_make(admin: AdminClient, missing: Sequence[str], rules: TopicRules, total: int) -> Finding:
    """Let the brokers check whether they would make topics."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.cimpl import NewTopic

    settings = {topic: rules.settings(topic) for topic in missing}
    new = [NewTopic(topic, one.partitions, one.replication, config=dict(one.config)) for topic, one in settings.items()]
    for topic, made in admin.create_topics(new, validate_only=True, request_timeout=TIMEOUT_S).items():
        try:
            made.result(TIMEOUT_S)
        except KafkaException as exc:
            if exc.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                continue
            text = f"Kafka would not make the topic '{topic}' ({settings[topic]}): {exc.args[0].str().rstrip('.')}."
            return Finding(CHECK, "error", text, "Correct topic.creation.…, or give the right to create topics.")
    return Finding(CHECK, "ok", f"{total - len(missing)} are there, {len(missing)} will be made")


def _makes_topics(admin: AdminClient, broker: int) -> bool | None:
    """Return whether brokers make topics when they are used; None if this user may not know."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin._config import ConfigResource

    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
    read: Callable[[float], Mapping[str, object]] = admin.describe_configs([resource])[resource].result
    try:
        entry = read(TIMEOUT_S).get(_AUTOMATIC)
    except KafkaException:
        return None
    value = getattr(entry, "value", None)
    return None if value is None else value == "true"


def _some(topics: Sequence[str]) -> str:
    rest = len(topics) - SHOWN
    names = ", ".join(f"'{topic}'" for topic in topics[:SHOWN])
    return f"topic{'s' if len(topics) > 1 else ''} {names}{f' and {rest} more' if rest > 0 else ''}"
