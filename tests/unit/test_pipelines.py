"""Pipeline files with several sinks: the query that each gets, and what is said about mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from floodmark.errors import ConfigError
from floodmark.spark.pipelines.file import PipelineFile, below, parse_file
from floodmark.spark.pipelines.query import spark_properties
from tests.support.options import REQUIRED, REQUIRED_MYSQL

POSTGRES = {**REQUIRED, "state.dir": "/state"}
LAKE = {"type": "mirror", "path": "/lake"}
EVENTS: dict[str, Any] = {"type": "kafka", "options": {"kafka.bootstrap.servers": "k:9092"}}


def parsed(sinks: Any = None, source: Any = POSTGRES, **changes: Any) -> PipelineFile:
    content = {"source": source, "sinks": sinks or {"lake": LAKE, "events": EVENTS}, "checkpoint": "/c", **changes}
    return parse_file(content, {})


def problem(sinks: Any = None, source: Any = POSTGRES, **changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        parsed(sinks, source, **changes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_each_sink_has_a_place_of_its_own() -> None:
    file = parsed()
    lake, events = file.pipelines
    assert (file.several, file.title, file.errors, file.checkpoint) == (True, "shop", "stop", "/c")
    assert [one.checkpoint for one in file.pipelines] == ["/c/lake", "/c/events"]
    assert [one.source["slot.name"] for one in file.pipelines] == ["debezium_lake", "debezium_events"]
    assert [one.options.state_dir for one in file.pipelines] == ["/state/lake", "/state/events"]
    assert [one.query_name for one in file.pipelines] == ["shop.lake", "shop.events"]
    assert (lake.options.format, events.options.format) == ("arrow", "events")
    # The publication is for all of them, so whichever creates it publishes what any of them needs.
    assert {one.source["publication.operations"] for one in file.pipelines} == {"c,u,d,t"}


def test_one_sink_is_what_it_was() -> None:
    file = parse_file({"source": POSTGRES, "sink": LAKE, "checkpoint": "/c"}, {})
    assert not file.several
    assert (file.only.checkpoint, file.only.query_name, file.only.options.state_dir) == ("/c", "shop", "/state")
    assert "slot.name" not in file.only.source
    assert "spark.scheduler.mode" not in spark_properties(file.only)


def test_one_named_sink_is_apart_too() -> None:
    file = parsed({"lake": LAKE})
    assert file.several
    assert file.only.checkpoint == "/c/lake"


def test_a_sink_s_options_override_those_of_all() -> None:
    source = {**POSTGRES, "Table.Include.List": "a", "publication.autocreate.mode": "filtered"}
    own = {"source": {"table.include.list": "b", "slot.name": "mine"}, "trigger": {"availableNow": "true"}}
    file = parsed({"lake": LAKE, "events": {**EVENTS, **own}}, source, trigger={"processingTime": "5 seconds"})
    lake, events = file.pipelines
    assert [pattern.pattern for pattern in events.options.table_include_list] == ["b"]
    assert events.source["slot.name"] == "mine"
    assert [one.source["publication.name"] for one in file.pipelines] == [
        "dbz_publication_lake",
        "dbz_publication_events",
    ]
    assert (lake.trigger.processing_time, events.trigger.available_now) == ("5 seconds", True)


def test_server_ids_differ() -> None:
    file = parsed({"a": LAKE, "b": EVENTS}, {**REQUIRED_MYSQL, "state.dir": "s3://b/x?region=eu"})
    assert [one.options.state_dir for one in file.pipelines] == ["s3://b/x/a?region=eu", "s3://b/x/b?region=eu"]
    assert len({one.options.owner for one in file.pipelines}) == 2


def test_spark_gets_what_each_sink_needs() -> None:
    assert "spark.jars.packages" not in spark_properties(*parsed().pipelines)
    by_spark = {"lake": LAKE, "events": {**EVENTS, "options": {**EVENTS["options"], "engine": "spark"}}}
    properties = spark_properties(*parsed(by_spark).pipelines)
    assert "kafka" in properties["spark.jars.packages"]
    assert properties["spark.executor.heartbeat.maxFailures"] == "6"
    assert properties["spark.app.name"] == "shop"
    assert properties["spark.scheduler.mode"] == "FAIR"


@pytest.mark.parametrize(
    ("directory", "expected"), [("/a/", "/a/n"), ("s3://b/a", "s3://b/a/n"), ("/what?", "/what?/n"), ("a", "a/n")]
)
def test_directories_below(directory: str, expected: str) -> None:
    assert below(directory, "n") == expected


def test_sinks_are_chosen_by_name() -> None:
    file = parsed()
    assert file.named(None) == file.pipelines
    assert [one.label for one in file.named("events")] == ["events"]
    with pytest.raises(ConfigError, match="no sink 'lakes': its sinks are lake, events"):
        file.named("lakes")
    with pytest.raises(ConfigError, match="--sink is for pipeline files with 'sinks'"):
        parse_file({"source": POSTGRES, "sink": LAKE, "checkpoint": "/c"}, {}).named("lake")


@pytest.mark.parametrize(
    ("sinks", "message"),
    [
        ({"Lake": LAKE}, "has the name 'Lake', which is not allowed"),
        ({"../x": LAKE}, "has the name '../x', which is not allowed"),
        ({"offsets": LAKE}, "has the name 'offsets', which is not allowed"),
        ({"a" * 31: LAKE}, "which is not allowed: it must be a letter, then up to 29"),
        ({"lake": "mirror"}, "Key 'sinks.lake' in the pipeline file must be a mapping."),
        ([LAKE], "Key 'sinks' in the pipeline file must be a mapping, not a list."),
        ({"lake": {**LAKE, "pth": "x"}}, "Unknown key 'sinks.lake.pth' in the pipeline file. Did you mean"),
        ({"lake": {"type": "mirror"}}, "Key 'sinks.lake.path' is required for the sink 'mirror'."),
        ({"lake": {"type": "mirrro"}}, "Key 'sinks.lake.type' has the value 'mirrro', which is not allowed"),
        ({"lake": {"path": "x"}}, "Key 'sinks.lake.type' is required"),
        ({"e": {"type": "kafka"}}, "Key 'sinks.e.options' needs 'kafka.bootstrap.servers'"),
        ({"lake": {**LAKE, "source": "x"}}, "Key 'sinks.lake.source' in the pipeline file must be a mapping."),
        (
            {"lake": {**LAKE, "source": {"Database.Hostname": "x"}}},
            "Key 'sinks.lake.source' must not have 'Database.Hostname': all sinks of a file have the same source.",
        ),
        ({"lake": {**LAKE, "source": {"slot.nam": "x"}}}, "Sink 'lake': Unknown option 'slot.nam'."),
        ({"lake": {**LAKE, "source": {"format": "rows"}}}, "Sink 'lake': The sink 'mirror' needs the source's option"),
        ({"lake": {**LAKE, "trigger": {"once": "true", "x": "y"}}}, "Unknown key 'sinks.lake.trigger.x'"),
        (
            {"a": {**LAKE, "source": {"slot.name": "x"}}, "b": {"type": "noop", "source": {"slot.name": "x"}}},
            "Sinks 'a' and 'b' both have 'slot.name' = 'x', which only one query can have.",
        ),
        ({"a": LAKE, "b": {"type": "json", "path": "/lake/x/"}}, "Key 'sinks.b.path' is inside key 'sinks.a.path'."),
        ({"a": LAKE, "b": {"type": "json", "path": "/lake/"}}, "Key 'sinks.a.path' is key 'sinks.b.path'."),
        (
            {"a": LAKE, "b": {"type": "json", "path": "/state/a"}},
            "The state.dir of the sink 'a' is key 'sinks.b.path'.",
        ),
        ({"a": LAKE, "b": {"type": "json", "path": "/c/a/x"}}, "is inside the checkpoint of the sink 'a'"),
        (
            {"lake": {**LAKE, "transform": "SELECT 1"}},
            "Key 'sinks.lake.transform' is not allowed for the sink 'mirror'",
        ),
        ({"e": {**EVENTS, "transform": " "}}, "Key 'sinks.e.transform' is empty."),
    ],
)
def test_mistakes_are_named(sinks: Any, message: str) -> None:
    assert message in problem(sinks)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sink": LAKE}, "Keys 'sink' and 'sinks' of the pipeline file exclude each other."),
        ({"errors": "isolat"}, "Key 'errors' has the value 'isolat', which is not allowed: it must be one of stop"),
        ({"errors": {"a": "b"}}, "Key 'errors' is not allowed: it must be one of stop, isolate."),
        ({"checkpoint": " "}, "Key 'checkpoint'"),
        ({"source": {**POSTGRES, "slot.nam": "x"}}, "Unknown option 'slot.nam'. Did you mean 'slot.name'?"),
        ({"trigger": {"never": "x"}}, "Unknown key 'trigger.never'"),
        ({"zzz": "x"}, "Allowed: name, source, sink, sinks, errors, checkpoint, trigger, spark."),
    ],
)
def test_mistakes_of_the_file_are_named(changes: dict[str, Any], message: str) -> None:
    assert problem(**changes).startswith(message) or message in problem(**changes)


def test_without_several_sinks_nothing_is_isolated() -> None:
    with pytest.raises(ConfigError, match="Key 'errors' is not allowed without 'sinks'"):
        parse_file({"source": POSTGRES, "sink": LAKE, "checkpoint": "/c", "errors": "stop"}, {})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("database.server.id", "5"),
        ("signal.enabled.channels", "file"),
        (
            "schema.history.internal",
            "io.debezium.storage.kafka.history.KafkaSchemaHistory",
        ),
    ],
)
def test_what_two_queries_cannot_share_is_refused(option: str, value: str) -> None:
    history = {
        "schema.history.internal.kafka.topic": "h",
        "schema.history.internal.kafka.bootstrap.servers": "k:9092",
    }
    source = {**REQUIRED_MYSQL, "state.dir": "/s", option: value, **(history if "history" in option else {})}
    assert "which only one query can have." in problem(source=source)


def test_a_common_consumer_group_would_skip_signals() -> None:
    channels = {"signal.enabled.channels": "kafka", "signal.kafka.bootstrap.servers": "k:9092"}
    file = parsed(source={**POSTGRES, **channels})
    assert [one.options.signal_kafka_group_id for one in file.pipelines] == ["kafka-signal_lake", "kafka-signal_events"]
