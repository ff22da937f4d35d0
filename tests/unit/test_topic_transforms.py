"""Transforms that rename topics, of rows and of other records."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from floodmark.config.java_patterns import Renaming, java_pattern
from floodmark.config.patterns import PatternError
from floodmark.config.transforms.kinds import TRANSFORMS
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.errors import ConfigError, SourceStateError
from floodmark.events.heartbeats import heartbeat_batch
from floodmark.notifications.records import Notification, notification_batch
from floodmark.transforms.chain import Chain
from floodmark.transforms.other_records import HEARTBEATS, NOTIFICATIONS, transformed_batch, transformed_rows
from tests.support.options import REQUIRED
from tests.support.records import chain, changes

REGEX = "org.apache.kafka.connect.transforms.RegexRouter"
LOGICAL = "io.debezium.transforms.ByLogicalTableRouter"
EXTRACT = "io.debezium.transforms.ExtractNewRecordState"


def options(*transforms: dict[str, str], **others: str) -> PostgresOptions:
    """Return the options of transforms, named by their numbers."""
    given = {f"transforms.t{n}.{name}": value for n, own in enumerate(transforms) for name, value in own.items()}
    names = ",".join(f"t{n}" for n in range(len(transforms)))
    every = {**REQUIRED, "transforms": names, **given, **{k.replace("__", "."): v for k, v in others.items()}}
    return PostgresOptions.parse(every)


def test_every_type_has_its_class() -> None:
    for kind in TRANSFORMS:
        needed = {
            "regex": "a", "replacement": "b", "topic.regex": "a", "topic.replacement": "b", "static.field": "a",
            "static.value": "b", "fields": "a", "field": "a", "spec": "string", "headers": "a", "operation": "copy",
            "converted.timezone": "UTC", "partition.payload.fields": "a", "partition.topic.num": "2",
            "language": "sql", "condition": "TRUE", "topic.expression": "'a'",
        }  # fmt: skip
        known = TRANSFORMS[kind].options.names()
        assert chain(kind, {name: value for name, value in needed.items() if name in known})


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        (REGEX, {"regex": "a"}, ("transforms.one.replacement", "required")),
        (REGEX, {"regex": "(", "replacement": "b"}, ("transforms.one.regex", "(")),
        (REGEX, {"regex": "(a)", "replacement": "$2"}, ("no group '2'",)),
        (REGEX, {"regex": "(a)", "replacement": "b$"}, ("'$' must be followed",)),
        (REGEX, {"regex": "(?=a)a", "replacement": "b"}, ("linear time",)),
        (REGEX, {"regex": "[a-z&&[^b]]", "replacement": "b"}, ("'&&'", "Java reads")),
        (LOGICAL, {"topic.regex": "a"}, ("transforms.one.topic.replacement", "required")),
        (LOGICAL, {"topic.regex": "a", "topic.replacement": " "}, ("topic.replacement", "empty")),
        (
            LOGICAL,
            {"topic.regex": "a", "topic.replacement": "b", "key.field.regex": "x"},
            ("key.field.replacement", "required"),
        ),
        (LOGICAL, {"topic.regex": "a", "topic.replacement": "b", "key.enforce": "true"}, ("key.enforce.uniqueness",)),
    ],
)
def test_wrong_options(kind: str, given: dict[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        chain(kind, given)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("regex", "replacement", "topic", "renamed"),
    [
        (r"a|ab", "x", "ab", "xb"),
        (r"(\w+)\.(.*)", r"$2\$$1", "a.b", "b$a"),
        (r"\w+", "x", "é", None),
        (r"(?i)\w+", "x", "AB", "x"),
        (r"(?<one>.)(?<two>.)", "${two}${one}", "ab", "ba"),
        (r"\(?<x", "y", "<x", "y"),
        ("(.)" * 12, "$12$1", "abcdefghijkl", "la"),
        ("(a)", "$12", "a", "a2"),
        ("b", "x", "a", None),
    ],
)
def test_replacements_are_javas(regex: str, replacement: str, topic: str, renamed: str | None) -> None:
    assert Renaming(regex, replacement)(topic) == renamed


def test_a_hostile_expression_takes_no_time() -> None:
    assert Renaming("(a+)+b", "x")("a" * 10_000) is None
    with pytest.raises(PatternError):
        java_pattern("(" * 5000)


def test_topics_of_some_records_are_renamed() -> None:
    columns = chain(REGEX, {"regex": r"shop\.(.*)", "replacement": "$1"}).columns(
        changes(pa.array(["shop.a", "other", "shop.a"]), "x", "y", "z")
    )
    assert columns["topic"].to_pylist() == ["a", "other", "a"]
    with pytest.raises(SourceStateError, match=r"'one' can't be applied to rows of s\.t by 'transforms\.one\.repl"):
        chain(REGEX, {"regex": "shop", "replacement": ""}).columns(changes("shop", "x"))


def test_keys_tell_where_rows_come_from() -> None:
    own = {"topic.regex": "t_(.*)", "topic.replacement": "all", "key.field.name": "n2"}
    made = chain(LOGICAL, own, schemas__enable="true").columns(changes(pa.array(["t_1", "u", 't_"é']), "x", "y", "z"))
    rows = zip(made["topic"].to_pylist(), made["key"].to_pylist(), made["value"].to_pylist(), strict=True)
    found = {json.loads(key)["payload"]["n"]: (topic, key, value) for topic, key, value in map(_read, rows)}
    assert [found[n][0] for n in (0, 1, 2)] == ["all", "u", "all"]
    assert json.loads(found[2][1])["payload"] == {"n": 2, "n2": 't_"é'}
    assert json.loads(found[0][1])["schema"]["name"] == "all.Key"
    assert json.loads(found[1][1])["schema"]["name"] == "t.Key"
    names = [field.get("name") for field in json.loads(found[0][2])["schema"]["fields"][:2]]
    assert names == ["all.Value", "all.Value"]


def _read(row: tuple[Any, Any, Any]) -> tuple[str, str, str]:
    topic, key, value = row
    return str(topic), str(key), str(value)


def test_a_name_that_keys_have_is_an_error() -> None:
    own = {"topic.regex": "t", "topic.replacement": "all", "key.field.name": "n"}
    with pytest.raises(SourceStateError, match=r"transforms\.one\.key\.field\.name.*'n'"):
        chain(LOGICAL, own).columns(changes("t", "x"))


def test_a_topic_without_a_name_stays() -> None:
    columns = chain(LOGICAL, {"topic.regex": "(t)(u?)", "topic.replacement": "$2"}).columns(changes("t", "x"))
    assert columns["topic"].to_pylist() == ["t"]


@pytest.mark.parametrize("schemas", ["true", "false"])
def test_heartbeats_and_notifications_are_transformed(schemas: str) -> None:
    own = {"type": LOGICAL, "topic.regex": "(.*)", "topic.replacement": "all.$1", "key.field.name": "of"}
    given = options({"type": EXTRACT}, own, schemas__enable=schemas, notification__sink__topic__name="notes")
    beat = transformed_batch(heartbeat_batch(7, given, "p"), HEARTBEATS, given)
    (row,) = beat.to_pylist()
    key, value = (json.loads(row[name]) for name in ("key", "value"))
    payloads = (key["payload"], value["payload"]) if schemas == "true" else (key, value)
    topic = f"__debezium-heartbeat.{REQUIRED['topic.prefix']}"
    assert payloads == ({"serverName": REQUIRED["topic.prefix"], "of": topic}, {"ts_ms": 7})
    assert (row["topic"], row["position"], row["headers"]) == (f"all.{topic}", "p", [])
    if schemas == "true":
        assert key["schema"]["name"] == f"all.{topic}.Key"
        assert value["schema"]["name"] == "io.debezium.connector.common.Heartbeat"
    note = Notification("i", "STARTED", "Initial Snapshot", {"a": "b"}, 5)
    (row,) = transformed_batch(notification_batch([note], given, "q"), NOTIFICATIONS, given).to_pylist()
    assert '"id":"i","of":' in row["key"]
    assert '"additional_data":{"a":"b"}' in row["value"]


def test_announcements_stay_rows() -> None:
    given = options({"type": REGEX, "regex": "a", "replacement": "b"})
    rows = [{"topic": topic, "key": '{"serverName":"s"}', "value": '{"ts_ms":1}', "position": "p"} for topic in "ac"]
    assert [row["topic"] for row in transformed_rows(rows, HEARTBEATS, given)] == ["b", "c"]
    assert transformed_rows(rows, HEARTBEATS, PostgresOptions.parse(REQUIRED)) == rows


def test_tombstones_of_unwrapped_deletes_are_tombstones() -> None:
    given = options(
        {"type": EXTRACT},
        {"type": REGEX, "regex": "(.*)", "replacement": "gone.$1", "predicate": "null"},
        predicates="null",
        predicates__null__type="org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    )
    made = Chain(given)
    assert made.columns(changes("t", "x", op="d"))["topic"].to_pylist() == ["gone.t"]
    assert made.columns(changes("t", "x"))["topic"].to_pylist() == ["t"]


@pytest.mark.parametrize(
    ("following", "taken", "option"),
    [
        ({"type": EXTRACT}, "before", "type"),
        ({"type": EXTRACT, "add.fields": "lsn"}, "source", "add.fields"),
        ({"type": EXTRACT, "add.headers": "transaction.id"}, "transaction", "add.headers"),
        ({"type": "io.debezium.transforms.ExtractChangedRecordState"}, "after", "type"),
        ({"type": LOGICAL, "topic.regex": "t", "topic.replacement": "u"}, "before", "topic.regex"),
    ],
)
def test_envelopes_without_their_fields(following: dict[str, str], taken: str, option: str) -> None:
    given = options({"type": "org.apache.kafka.connect.transforms.ReplaceField$Value", "exclude": taken}, following)
    with pytest.raises(SourceStateError, match=rf"'transforms\.t1\.{option}': an earlier transform .* '{taken}'"):
        Chain(given).columns(changes("t", "x"))
