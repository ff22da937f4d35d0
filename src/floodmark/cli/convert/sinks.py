"""What becomes of where events go: Kafka Connect's producer, and the sinks of Debezium Server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec

from floodmark.cli.convert.draft import Draft
from floodmark.config.debezium import accept, find
from floodmark.config.model import Options, nearest
from floodmark.errors import ConfigError
from floodmark.sinks.kafka.options import PRODUCER, KafkaOptions
from floodmark.sinks.kafka.producer_settings import check_settings
from floodmark.sinks.kafka.topics import TOPIC_CREATION
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.spark.pipelines.text import as_texts

BROKERS = f"{PRODUCER}bootstrap.servers"
OVERRIDE = "producer.override."
_OTHER_CLIENTS = ("consumer.override.", "admin.override.")
_OF_WORKER = "producer."
_ELSEWHERE = ("schema.history.internal.kafka.bootstrap.servers", "database.history.kafka.bootstrap.servers")
"""Properties of a connector that name brokers, where the worker's aren't known."""
_SERIALIZERS = ("key.serializer", "value.serializer")
_TABLES = "collection.name.format"
_SPARK = "set engine=spark"
_ONLY_HERE = (
    "there is no sink '{}': the pipeline writes JSON files. Choose another sink, or write the events in a program"
)
_QUOTED = re.compile(r"'([^']+)'")


def write_to_kafka(
    draft: Draft, properties: Mapping[str, str], origins: Mapping[str, str], worker: Mapping[str, str] | None
) -> dict[str, str]:
    """Let the pipeline write where Kafka Connect's producer does.

    Args:
        draft: the pipeline file.
        properties: the connector's.
        origins: the names that they have in the configuration.
        worker: the worker's properties; None: they aren't known.

    Returns:
        The properties that have nothing to do with it.
    """
    rest = {}
    for name, value in (worker or {}).items():
        if name == "bootstrap.servers":
            draft.put_into_sink(BROKERS, value, f"worker: {name}", KafkaOptions)
        elif name.startswith(_OF_WORKER):
            _put_setting(draft, name.removeprefix(_OF_WORKER), value, f"worker: {name}")
        elif name == f"{TOPIC_CREATION}enable":
            draft.put_into_sink(name, value, f"worker: {name}", KafkaOptions)
    for name, value in properties.items():
        if name.startswith(OVERRIDE):
            _put_setting(draft, name.removeprefix(OVERRIDE), value, origins[name])
        elif name.startswith(_OTHER_CLIENTS):
            draft.say(origins[name], "no effect", "the sink has one client, which takes producer.override.*")
        elif name.startswith(TOPIC_CREATION):
            draft.put_into_sink(name, value, origins[name], KafkaOptions)
        else:
            rest[name] = value
    if BROKERS not in draft.sink.options:
        _find_brokers(draft, properties, origins)
    return rest


def write_as_server(draft: Draft, sink: Mapping[str, str], origins: Mapping[str, str], directory: str) -> None:
    """Let the pipeline write where Debezium Server does.

    Args:
        draft: the pipeline file.
        sink: the properties that begin with ``debezium.sink.``, by the rest of their names.
        origins: the names that they have in the configuration.
        directory: where the pipeline's files are, which take the events if Floodmark lacks the sink.
    """
    kind = sink.get("type", "").strip()
    own = {name: value for name, value in sink.items() if name.startswith(f"{kind}.")}
    for name in sink:
        if name != "type" and name not in own:
            draft.say(origins[name], "no effect", f"it is not of the sink '{kind}'")
    if kind == "kafka":
        draft.say(origins["type"], "mapped", "sink.type: kafka")
        _server_kafka(draft, own, origins)
    elif kind == "jdbc":
        draft.say(origins["type"], "mapped", "sink.type: jdbc")
        _server_jdbc(draft, own, origins)
    else:
        draft.sink.type, draft.sink.path = "json", f"{directory}/events"
        draft.say(origins.get("type", "debezium.sink.type"), "not supported", _ONLY_HERE.format(kind))
        for name in own:
            draft.say(origins[name], "not supported", "see debezium.sink.type")


def settle_sink(draft: Draft) -> None:
    """Take back what the sink's model refuses, and add what it requires, until it is right."""
    models: Mapping[str, type[Options]] = {"kafka": KafkaOptions, "jdbc": JdbcOptions}
    model = models.get(draft.sink.type)
    while model is not None:
        # Each round takes an option away, or adds one.
        error = _error(draft, model)
        if error is None:
            break
        options = draft.sink.options
        named = _QUOTED.findall(error.what)
        given = [name for name in named if name in options]
        if _SPARK in str(error) and "engine" not in options:
            options["engine"] = "spark"
            draft.notes.append(f"{error.what} So Spark's connector writes (engine: spark).")
        elif given:
            draft.withdraw_from_sink(given[0], str(error))
        elif named and named[0].startswith(TOPIC_CREATION):
            for name in [name for name in options if name.startswith(TOPIC_CREATION)]:
                draft.withdraw_from_sink(name, str(error))
        elif named and (declared := model.field_of(named[0])) is not None and named[0] not in options:
            options[declared[0]] = draft.references.missing(declared[0])
            draft.say(declared[0], "missing", error.what)
        else:
            raise error


def _error(draft: Draft, model: type[Options]) -> ConfigError | None:
    texts = as_texts(draft.sink.options, "sink.options", draft.references.environment)
    assert isinstance(texts, dict), "it was made of a mapping"
    try:
        parsed = model.parse({name: str(value) for name, value in texts.items()})
        if isinstance(parsed, KafkaOptions) and parsed.engine == "floodmark" and find_spec("confluent_kafka"):
            check_settings(parsed.settings)
    except ConfigError as exc:
        return exc
    return None


def _put_setting(draft: Draft, name: str, value: str, origin: str) -> None:
    """Give the sink a setting of the producer."""
    if name in _SERIALIZERS:
        draft.say(origin, "no effect", "keys and values are bytes already")
    else:
        draft.put_into_sink(f"{PRODUCER}{name}", value, origin, KafkaOptions)


def _find_brokers(draft: Draft, properties: Mapping[str, str], origins: Mapping[str, str]) -> None:
    name = next((name for name in _ELSEWHERE if name in properties), None)
    if name is None:
        draft.sink.options[BROKERS] = draft.references.missing(BROKERS)
        draft.say(BROKERS, "missing", "the brokers that the worker writes to; its file, given with --worker, has them")
        return
    draft.sink.options[BROKERS] = draft.references.written(BROKERS, properties[name], origins[name], secret=False)
    draft.notes.append(f"The sink's brokers are those of '{name}', as the worker's aren't known (--worker).")


def _server_kafka(draft: Draft, own: Mapping[str, str], origins: Mapping[str, str]) -> None:
    for name, value in own.items():
        setting = name.removeprefix("kafka.")
        if setting.startswith(_OF_WORKER):
            _put_setting(draft, setting.removeprefix(_OF_WORKER), value, origins[name])
        else:
            draft.say(origins[name], "no effect", "Spark waits until a micro-batch is written")
    if BROKERS not in draft.sink.options:
        draft.sink.options[BROKERS] = draft.references.missing(BROKERS)
        draft.say(BROKERS, "missing", "the brokers to write to")


def _server_jdbc(draft: Draft, own: Mapping[str, str], origins: Mapping[str, str]) -> None:
    draft.sink.type = "jdbc"
    for name, value in own.items():
        option, origin = name.removeprefix("jdbc."), origins[name]
        try:
            known = accept(option, value, JdbcOptions.accepted, JdbcOptions.refused)
        except ConfigError as exc:
            draft.say(origin, "not supported", exc.what)
            continue
        if known:
            draft.say(origin, "no effect", JdbcOptions.accepted[str(find(JdbcOptions.accepted, option))].reason)
        elif JdbcOptions.knows(option):
            draft.put_into_sink(option, value, origin, JdbcOptions)
        else:
            hint = nearest(option, JdbcOptions.names())
            draft.say(origin, "not supported", f"the sink jdbc does not have it. {hint}".strip())
    if _TABLES not in draft.sink.options:
        # What Debezium's sink takes if it isn't given.
        draft.sink.options[_TABLES] = "$${topic}"
    draft.notes.append(
        "Tables that Debezium's sink has made have rows that the query hasn't written: set existing.tables=empty, so "
        "that it fills them again, or give it new ones."
    )
