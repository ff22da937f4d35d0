"""What `floodmark convert` reads, and what it says of files that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.cli.convert.given import active, read_given, read_worker
from floodmark.cli.convert.java_properties import parse_properties
from floodmark.errors import ConfigError

CLASS = "io.debezium.connector.postgresql.PostgresConnector"
CONFIG = {"connector.class": CLASS, "database.port": 5432, "slot.drop.on.stop": False, "empty": None}
TEXTS = {"connector.class": CLASS, "database.port": "5432", "slot.drop.on.stop": "false"}
STRIMZI = f"""
apiVersion: v1
kind: Secret
metadata: {{name: other}}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata: {{name: shop}}
spec:
  class: {CLASS}
  tasksMax: 1
  config:
    database.port: 5432
    slot.drop.on.stop: false
"""
APPLICATION = f"""
debezium:
  sink:
    type: kafka
  source:
    connector.class: {CLASS}
    offset:
      storage:
        ~: FileStore
        file.filename: data/offsets.dat
quarkus: {{log.level: INFO}}
"""


def written(tmp_path: Path, text: str, name: str = "given") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (json.dumps({"name": "shop", "config": CONFIG}), "shop"),
        (json.dumps(CONFIG), None),
        (
            json.dumps(
                {"name": "shop", "config": CONFIG, "tasks": [{"connector": "shop", "task": 0}], "type": "source"}
            ),
            "shop",
        ),
        ("\ufeff" + json.dumps({"name": "shop", **CONFIG}), "shop"),
        ("\n".join(f"{name} = {value}" for name, value in {"name": "shop", **TEXTS}.items()), "shop"),
        (STRIMZI, "shop"),
    ],
)
def test_a_connector_is_read_in_all_forms(text: str, name: str | None, tmp_path: Path) -> None:
    found = read_given(written(tmp_path, text))
    assert (found.kind, found.name) == ("connector", name)
    assert {key: value for key, value in found.properties.items() if key in TEXTS} == TEXTS
    assert set(found.properties) - set(TEXTS) <= {"name", "tasks.max"}


def test_debezium_server_is_read(tmp_path: Path) -> None:
    found = read_given(written(tmp_path, f"debezium.source.connector.class={CLASS}\nquarkus.log.level=INFO\n"))
    assert found.kind == "server"
    assert found.properties == {"debezium.source.connector.class": CLASS, "quarkus.log.level": "INFO"}
    nested = read_given(written(tmp_path, APPLICATION))
    assert nested.properties == {
        "debezium.sink.type": "kafka",
        "debezium.source.connector.class": CLASS,
        "debezium.source.offset.storage": "FileStore",
        "debezium.source.offset.storage.file.filename": "data/offsets.dat",
    }


def test_a_profile_overrides_what_all_have() -> None:
    given = {"a": "1", "%prod.a": "2", "%dev.a": "3", "%dev.b": "4"}
    assert active(given, "prod") == ({"a": "2"}, ["%dev.a", "%dev.b"])
    assert active(given, "dev") == ({"a": "3", "b": "4"}, ["%prod.a"])


def test_a_worker_is_read(tmp_path: Path) -> None:
    text = (
        "apiVersion: kafka.strimzi.io/v1\nkind: KafkaConnect\nspec:\n  bootstrapServers: b:1\n  config: {group.id: g}\n"
    )
    assert read_worker(written(tmp_path, text)) == {"bootstrap.servers": "b:1", "group.id": "g"}
    assert read_worker(written(tmp_path, "bootstrap.servers=b:1")) == {"bootstrap.servers": "b:1"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"name": "a",\n  "config": {,}}', "is not JSON: line 2, column 14"),
        ("[]", "is a list"),
        ('{"database.port": 1}', "has no 'connector.class'"),
        ('{"name": "a", "config": {"a": {"b": 1}}}', "'config.a', which is no plain value"),
        ('{"name": "a", "config": {}, "password": "x"}', "has 'password' beside 'config'"),
        ('{"a": 1, "a": 2}', "has 'a' twice, with different values"),
        ("a=1\nb=2\na=3", "has 'a' twice, with different values, in lines 1 and 3"),
        ("database.port=1", "has neither 'connector.class' nor 'debezium.source.connector.class'"),
        ("bootstrap.servers=b:1\noffset.storage.topic=t", "configures a worker of Kafka Connect"),
        ("source: {connector: postgres}\nsink: {type: noop}\ncheckpoint: /c", "is a pipeline file already"),
        ("apiVersion: v1\nkind: Secret\nspec: {}", "has no resources of the kind 'KafkaConnector' (it has: Secret)"),
        ("kind: KafkaConnector\nspec: {config: {}}", "has no 'spec.class'"),
        ("kind: [", "is not YAML: line 1"),
    ],
)
def test_wrong_files_are_named(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_given(written(tmp_path, text))
    assert words in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Cannot read .*: No such file or directory"):
        read_given(tmp_path / "none.json")
    with pytest.raises(ConfigError, match=r"has no 'bootstrap.servers'"):
        read_worker(written(tmp_path, "group.id=g"))


def test_properties_are_read_as_java_does() -> None:
    text = "\n".join(
        [
            "# a comment that doesn't go on \\",
            "! another",
            "   indented = value with = and : ",
            "colon:value",
            "blank value",
            "alone",
            "escaped\\=name\\ here=a\\tb\\u00e9\\\\",
            "continued=one,\\",
            "    two,\\",
            "\\#three",
            "last=\\",
        ]
    )
    assert parse_properties(text, Path("given")) == {
        "indented": "value with = and : ",
        "colon": "value",
        "blank": "value",
        "alone": "",
        "escaped=name here": "a\tbé\\",
        "continued": "one,two,#three",
        "last": "",
    }


LETTERS = st.text(st.characters(codec="utf-8"), max_size=12)


def escaped(text: str, in_name: bool) -> str:
    """Write a text as `java.util.Properties.store` does."""
    special = {
        "\\": "\\\\",
        "\t": "\\t",
        "\n": "\\n",
        "\r": "\\r",
        "\f": "\\f",
        "=": "\\=",
        ":": "\\:",
        "#": "\\#",
        "!": "\\!",
    }
    parts = [special.get(letter, letter) for letter in text]
    blanks = [index for index, letter in enumerate(text) if letter == " " and (in_name or index == 0)]
    for index in blanks:
        parts[index] = "\\ "
    return "".join(parts)


@settings(max_examples=200)
@given(st.dictionaries(LETTERS.filter(bool), LETTERS, max_size=4))
def test_what_java_stores_is_read_again(properties: dict[str, str]) -> None:
    text = "".join(f"{escaped(name, True)}={escaped(value, False)}\n" for name, value in properties.items())
    assert parse_properties(text, Path("given")) == properties
