"""The schema by which editors check pipeline files, beside what Floodmark itself makes of them."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from typer.testing import CliRunner

from floodmark.cli.main import app
from floodmark.cli.pages.schema import render
from floodmark.config.model import Options
from floodmark.connectors.registry import CONNECTORS
from floodmark.errors import FloodmarkError
from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.spark.pipelines.file import parse_file
from floodmark.spark.pipelines.model import KEYS, Sink, Trigger
from tests.support.mistakes import FILE, SECTIONS
from tests.support.options import REQUIRED, REQUIRED_MYSQL

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = json.loads(render())
VALIDATOR = Draft7Validator(SCHEMA)
UNSEEN = (
    "two documents",
    "an alias",
    "a thousand brackets",
    "a tab",
    "`source: [`",
    "a path",
    "a directory",
    "an empty file",
    "`slot.name` twice",
    "Spark 4.3",
    "a file for Iceberg",
    # What needs another key, and what a server says.
    "`sink.options: {catalog.uri: http://lake}`",
    "catalog.type: res",
    # The environment, and what values mean.
    "${NOT_SET}",
    "${PASSWORD:-x}",
    "${USER",
    "connection.url",
    "table.name.format: t",
    "collection.name.format: all",
    "cluster.by",
    "partition.by",
    "table.properties",
    "catalog.schema",
    "deletes: soft",
    "compact.files: 1",
    "engine: spark, history: on",
    "format: iceberg",
    "sink.options: {format",
    "checkpointLocation: x",
    "kafka.key.serializer",
    "kafka.transactional.id",
    "kafka.acks",
    "kafka.ssl.keystore.key",
    "topic.creation.",
    # What several sinks mean together.
    "`slot.nam: x` in `sinks.events.source`",
    "`sinks.a.source` and `sinks.b.source: {slot.name: x}`",
    "`sinks.a.path: x`, `sinks.b.path: x/y`",
    "`sinks` of MySQL with `database.server.id: 5`",
)
"""Mistakes that aren't about the structure of the file."""


class CoreLoader(yaml.SafeLoader):
    """Reads scalars as YAML 1.2 does, and so editors: `on` is text."""


CoreLoader.yaml_implicit_resolvers = {}
for tag, pattern, first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("null", r"^(?:~|null|)$", ["~", "n", ""]),
):
    CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


def problems(content: object) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(content)]


def examples() -> Iterator[Any]:
    """Yield each example in the documentation that is a whole file, or sections of one."""
    for page in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]:
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            content = yaml.load(block, CoreLoader)
            if set(content) <= set(KEYS):
                yield pytest.param(content, id=f"{page.stem}-{'-'.join(content)}")


def whole(**changes: Any) -> dict[str, Any]:
    source = {**REQUIRED, "state.dir": "/s"}
    sink = {} if "sinks" in changes else {"sink": {"type": "noop"}}
    return {"source": source, **sink, "checkpoint": "/c", **changes}


def source(name: str, value: Any, base: dict[str, str] = REQUIRED) -> dict[str, Any]:
    return whole(source={**base, "state.dir": "/s", name: value})


def test_the_committed_schema_is_up_to_date() -> None:
    command = "python -m floodmark.cli.pages.schema docs/pipeline.schema.json"
    assert (DOCS / "pipeline.schema.json").read_text(encoding="utf-8") == render(), f"run: {command}"
    Draft7Validator.check_schema(SCHEMA)


def test_every_key_and_every_option_is_in_it() -> None:
    for section, found in (
        (Sink, SCHEMA["properties"]["sink"]["properties"]),
        (Trigger, SCHEMA["properties"]["trigger"]["properties"]),
    ):
        assert set(found) == {field.alias or name for name, field in section.model_fields.items()}
        assert all(one["description"] for one in found.values())
    assert set(SCHEMA["properties"]) == set(KEYS)
    assert all(one["description"] for one in SCHEMA["properties"].values())
    models: dict[str, type[Options]] = {name: spec.option_model for name, spec in CONNECTORS.items()}
    models |= {"mirror": MirrorOptions, "jdbc": JdbcOptions, "kafka": KafkaOptions}
    for name, model in models.items():
        options = SCHEMA["definitions"][name]["properties"]
        assert {option for option in model.names() if "<" not in option} <= set(options)


def test_the_command_prints_it_with_all_connectors() -> None:
    printed = json.loads(CliRunner().invoke(app, ["schema"]).stdout)
    assert set(CONNECTORS) <= set(printed["definitions"])


@pytest.mark.parametrize("content", list(examples()))
def test_the_documentations_examples_are_right(content: dict[str, Any]) -> None:
    assert problems(whole(**content)) == []


@pytest.mark.parametrize(
    "content",
    [
        whole(name="shop", trigger={"processingTime": "10 seconds"}, spark={"spark.master": "local[2]"}),
        whole(name=7, trigger={"availableNow": True}, spark={"spark.sql.shuffle.partitions": 4}),
        whole(trigger={"once": "true", "availableNow": False}),
        whole(trigger={"processingTime": "${INTERVAL}"}, checkpoint="${DIR}/c", sink={"type": "noop"}),
        source("connector", "${CONNECTOR}"),
        source("database.port", "${PORT}"),
        source("database.port", 5433),
        source("database.port", "5433"),
        source("snapshot.mode", "${MODE}"),
        source("slot.name", "shop_${STAGE}"),
        source("tombstones.on.delete", "${TOMBSTONES}"),
        source("tombstones.on.delete", "off"),
        source("table.include.list", [r"public\.orders", r"public\.a{1,2}"]),
        source("skipped.operations", "none"),
        source("column.mask.hash.SHA-256.with.salt.abc1", r"public\.a\.b"),
        whole(
            source={
                **REQUIRED,
                "state.dir": "/s",
                "snapshot.select.statement.overrides": "public.orders",
                "snapshot.select.statement.overrides.public.orders": "SELECT 1",
            }
        ),
        source("tasks.max", 1),
        source("queue.whatever", "x"),
        source("key.converter", "org.apache.kafka.connect.json.JsonConverter"),
        whole(
            source={
                **REQUIRED,
                "state.dir": "/s",
                "value.converter": "io.confluent.connect.avro.AvroConverter",
                "value.converter.schema.registry.url": "http://registry:8081",
            }
        ),
        source("header.converter.schemas.enable", False),
        source("database.server.id", 7, REQUIRED_MYSQL),
        whole(source={**REQUIRED, "state.dir": "/s", "converters": "isbn", "isbn.type": "mine"}),
        whole(sink={"type": "parquet", "path": "/e", "options": {"compression": "zstd", "maxRecordsPerFile": 5}}),
        whole(sink={"type": "mirror", "path": "/e", "options": {"history": "on", "vacuum.hours": 24}}),
        whole(sink={"type": "kafka", "options": {"kafka.bootstrap.servers": "${BROKERS}"}}),
        whole(sink={"type": "console", "transform": "SELECT topic, key, value FROM events"}),
        whole(sinks={"a": {"type": "noop"}, "b_2": {"type": "mirror", "path": "/e"}}, errors="isolate"),
        whole(
            sinks={
                "a": {"type": "noop", "source": {"table.include.list": ["public.a", "public.b"]}},
                "b": {"type": "noop", "trigger": {"once": True}, "source": {"slot.name": "mine"}},
            }
        ),
    ],
)
def test_what_floodmark_accepts_is_right(content: dict[str, Any]) -> None:
    names = ("CONNECTOR", "PORT", "MODE", "STAGE", "TOMBSTONES", "BROKERS", "DIR", "INTERVAL")
    values = ("postgres", "5433", "initial", "test", "true", "k:9092", "/d", "1 second")
    parse_file(content, dict(zip(names, values, strict=True)))
    assert problems(content) == []


@pytest.mark.parametrize(
    "content",
    [
        source("connector", "postgers"),
        source("database.port", 0),
        source("database.port", "5432x"),
        source("slot.nam", "x"),
        source("slot.name", "My-Slot"),
        source("snapshot.mode", "intial"),
        source("tombstones.on.delete", "maybe"),
        source("database.server.id", 7),
        source("slot.name", "shop", REQUIRED_MYSQL),
        source("isbn.type", "x"),
        source("post.processors", "reselector"),
        source("key.converter", "io.confluent.connect.avro.Avro"),
        whole(source={"connector": "postgres"}),
        whole(source={"database.hostname": "db"}),
        whole(sink={"type": "jdbc"}),
        whole(errors="stop"),
        whole(sinks={}),
        whole(sinks={"A": {"type": "noop"}}),
        whole(sinks={"a": {"type": "noop"}}, errors="ignore"),
        whole(sinks={"a": {"type": "noop", "source": {"database.hostname": "db"}}}),
        whole(sinks={"a": {"type": "noop"}}, sink={"type": "noop"}),
        whole(sinks={"a": {"type": "noop", "triger": {}}}),
        whole(sink={"type": "mirror", "path": "/e", "transform": "SELECT 1"}),
    ],
)
def test_what_floodmark_refuses_is_wrong(content: dict[str, Any]) -> None:
    with pytest.raises(FloodmarkError):
        parse_file(content, {})
    assert problems(content)


@pytest.mark.parametrize("mistake", dict(SECTIONS)["The pipeline file"], ids=lambda mistake: mistake.written)
def test_mistakes_in_the_structure_are_wrong(mistake: Any, tmp_path: Path) -> None:
    if any(part in mistake.written for part in UNSEEN):
        return
    with contextlib.chdir(tmp_path):
        assert mistake.message()
        content = yaml.load(FILE.read_text(encoding="utf-8"), CoreLoader)
    assert problems(content)
