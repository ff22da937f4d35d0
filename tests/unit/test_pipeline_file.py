"""pipeline.yaml: what is read from it, and what is said about mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter

from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.errors import ConfigError
from floodmark.spark.pipelines.file import load_file
from floodmark.spark.pipelines.model import Pipeline, parse_pipeline
from floodmark.spark.pipelines.query import triggered
from tests.support.options import REQUIRED


def content(**changes: Any) -> dict[str, Any]:
    return {"source": REQUIRED, "sink": {"type": "noop"}, "checkpoint": "/checkpoint", **changes}


def problem(**changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_pipeline(content(**changes), {})
    message = str(caught.value)
    assert "\n" not in message
    return message


def write(directory: Path, text: str) -> Path:
    file = directory / "pipeline.yaml"
    file.write_text(text, encoding="utf-8")
    return file


class Writer:
    """Notes the trigger that it is given, in place of Spark's writer."""

    def __init__(self) -> None:
        self.arguments: dict[str, Any] = {}

    def trigger(self, **arguments: Any) -> Writer:
        self.arguments = arguments
        return self


def trigger_arguments(pipeline: Pipeline) -> dict[str, Any]:
    """Return the arguments of Spark's ``DataStreamWriter.trigger``."""
    writer = Writer()
    assert cast(object, triggered(cast(DataStreamWriter, writer), pipeline.trigger)) is writer
    return writer.arguments


def test_minimal_file_has_the_documented_defaults(tmp_path: Path) -> None:
    source = "\n".join(f"  {key}: {value}" for key, value in REQUIRED.items())
    pipeline = load_file(write(tmp_path, f"source:\n{source}\nsink: {{type: noop}}\ncheckpoint: /c\n"), {}).only
    assert pipeline.title == "shop"
    assert pipeline.master == "local[*]"
    assert pipeline.is_local
    assert trigger_arguments(pipeline) == {}
    assert isinstance(pipeline.options, PostgresOptions)
    assert pipeline.options.slot_name == "debezium"


def test_scalars_stay_the_text_in_the_file(tmp_path: Path) -> None:
    source = "\n".join(f"  {key}: {value}" for key, value in REQUIRED.items())
    text = f"""
source:
{source}
  database.password: 0123
  tombstones.on.delete: no
  max.batch.rows: 1_000
  table.include.list: [public.orders, 'public.t{{1,2}}']
sink: {{type: noop}}
checkpoint: /c
"""
    pipeline = load_file(write(tmp_path, text.replace("1_000", "1000")), {}).only
    assert pipeline.source["database.password"] == "0123"
    assert pipeline.options.tombstones_on_delete is False
    assert pipeline.options.max_batch_rows == 1000
    assert [pattern.pattern for pattern in pipeline.options.table_include_list] == ["public.orders", "public.t{1,2}"]


def test_what_is_no_variable_is_an_error_and_can_be_written() -> None:
    for text in ("${NAME:-its-secret}", "its-secret${", "${its-secret}", "${}"):
        message = problem(source={**REQUIRED, "database.password": text})
        assert "Key 'source.database.password' has a '${' that isn't followed by" in message
        assert "its-secret" not in message
        pipeline = parse_pipeline(content(source={**REQUIRED, "database.user": text.replace("${", "$${")}), {})
        assert pipeline.source["database.user"] == text


def test_variables_come_from_the_environment() -> None:
    source = {**REQUIRED, "database.password": "${SECRET}x", "database.user": "$${SECRET}"}
    pipeline = parse_pipeline(
        content(source=source, spark={"spark.app.name": "${NAME}"}), {"SECRET": "a: #b", "NAME": "n"}
    )
    assert pipeline.source["database.password"] == "a: #bx"
    assert pipeline.source["database.user"] == "${SECRET}"
    assert pipeline.spark == {"spark.app.name": "n"}
    assert "a: #b" not in repr(pipeline)


def test_missing_variable_is_named() -> None:
    message = problem(source={**REQUIRED, "database.password": "${NOT_THERE}"})
    assert "source.database.password" in message
    assert "NOT_THERE" in message


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"sorce": {}}, "Unknown key 'sorce' in the pipeline file. Did you mean 'source'?"),
        (
            {"sink": {"type": "noop", "pth": "x"}},
            "Unknown key 'sink.pth' in the pipeline file. Did you mean 'sink.path'?",
        ),
        ({"trigger": {"availablenow": "true"}}, "Did you mean 'trigger.availableNow'?"),
        ({"zzz": "1"}, "Allowed: name, source, sink, checkpoint, trigger, spark."),
        (
            {"sink": {"type": "csv"}},
            "Key 'sink.type' has the value 'csv', which is not allowed: it must be one of console, json, parquet, "
            "kafka, mirror, jdbc, noop.",
        ),
        ({"sink": {"type": "parqet"}}, "Did you mean 'parquet'?"),
        (
            {"trigger": {"once": "perhaps"}},
            "Key 'trigger.once' has the value 'perhaps', which is not allowed: it must be true or false.",
        ),
        ({"sink": {"type": "json"}}, "Key 'sink.path' is required for the sink 'json'."),
        ({"sink": {"type": "noop", "path": "/x"}}, "Key 'sink.path' is not allowed for the sink 'noop'."),
        ({"sink": {"type": "kafka"}}, "Key 'sink.options' needs 'kafka.bootstrap.servers' for the sink 'kafka'."),
        ({"sink": "noop"}, "Key 'sink' in the pipeline file must be a mapping."),
        ({"trigger": {"processingTime": "soon"}}, "it must be an interval such as '10 seconds'."),
        ({"trigger": {"once": "true", "availableNow": "true"}}, "exclude each other"),
        ({"spark": {"master": "local"}}, "'master' is not a Spark property"),
        ({"source": {**REQUIRED, "slot.nam": "x"}}, "Unknown option 'slot.nam'. Did you mean 'slot.name'?"),
        (
            {"source": {**REQUIRED, "database.port": "x"}},
            "Option 'database.port' has the value 'x', which is not allowed",
        ),
        ({"source": {**REQUIRED, "table.include.list": "a("}}, "is not a regular expression"),
        ({"source": {"connector": "postgers"}}, "Did you mean 'postgres'?"),
        ({"source": {**REQUIRED, "a": ["b", {}]}}, "Key 'source' must be a list of plain values."),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], expected: str) -> None:
    if "a" in changes.get("source", {}):
        expected = expected.replace("'source'", "'source.a'")
    assert expected in problem(**changes)


def test_missing_keys_are_named() -> None:
    with pytest.raises(ConfigError, match="Key 'checkpoint' is required"):
        parse_pipeline({"source": REQUIRED, "sink": {"type": "noop"}}, {})


def test_rows_do_not_go_to_kafka() -> None:
    sink = {"type": "kafka", "options": {"kafka.bootstrap.servers": "k:9092"}}
    assert "needs the source's option 'format'" in problem(source={**REQUIRED, "format": "rows"}, sink=sink)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [", "is not YAML: line 1"),
        ("- a", "must hold a mapping"),
        ("", "must hold a mapping"),
        ("a: 1\nb: 2\na: 3", "has the key 'a' twice, in lines 1 and 3"),
        ("source:\n  slot.name: x\n  slot.name: x\n", "has the key 'source.slot.name' twice, in lines 2 and 3"),
        ("sink: {options: {a: 1, a: 2}}", "has the key 'sink.options.a' twice, in lines 1 and 1"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_file(write(tmp_path, text), {})


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.yaml: No such file"):
        load_file(tmp_path / "nothing.yaml", {})


@pytest.mark.parametrize(
    ("trigger", "arguments"),
    [
        ({"processingTime": "5 seconds"}, {"processingTime": "5 seconds"}),
        ({"processingTime": "1 minute 30 seconds"}, {"processingTime": "1 minute 30 seconds"}),
        ({"availableNow": "true"}, {"availableNow": True}),
        ({"once": "true"}, {"once": True}),
        ({"once": "false"}, {}),
    ],
)
def test_triggers(trigger: dict[str, str], arguments: dict[str, Any]) -> None:
    assert trigger_arguments(parse_pipeline(content(trigger=trigger), {})) == arguments


@pytest.mark.parametrize(
    ("master", "is_local"),
    [
        ("local", True),
        ("local[4]", True),
        ("spark://host:7077", False),
        ("yarn", False),
        ("local-cluster[2,1,1024]", False),
    ],
)
def test_local_masters(master: str, is_local: bool) -> None:
    pipeline: Pipeline = parse_pipeline(content(spark={"spark.master": master}), {})
    assert pipeline.is_local is is_local


def test_a_mirror_chooses_the_source_s_format() -> None:
    options = parse_pipeline(content(sink={"type": "mirror", "path": "/lake"}), {}).options
    assert options.format == "arrow"
    assert tuple(options.skipped_operations) == ("none",)


@pytest.mark.parametrize(("name", "value"), [("format", "rows"), ("FORMAT", "events"), ("skipped.operations", "t")])
def test_a_mirror_needs_options_of_the_source(name: str, value: str) -> None:
    message = problem(source={**REQUIRED, name: value}, sink={"type": "mirror", "path": "/lake"})
    assert f"The sink 'mirror' needs the source's option '{name.lower()}' to be" in message


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"sink": {"type": "mirror"}}, "Key 'sink.path' is required for the sink 'mirror'."),
        ({"sink": {"type": "mirror", "path": "/l", "format": "hudi"}}, "'sink.format' has the value 'hudi'"),
        ({"sink": {"type": "mirror", "path": "/l", "format": "iceberg"}}, "which needs catalog.schema="),
        (
            {"sink": {"type": "mirror", "path": "/l", "options": {"format": "iceberg"}}},
            "'sink.options' must not have 'format': write the key 'sink.format' instead.",
        ),
        ({"sink": {"type": "jdbc"}}, "Key 'sink.options': Option 'connection.url' is required"),
        (
            {"sink": {"type": "jdbc", "path": "/l", "options": {}}},
            "Key 'sink.path' is not allowed for the sink 'jdbc'.",
        ),
        ({"sink": {"type": "mirror", "path": "/l", "options": {"a": "b"}}}, "'sink.options': Unknown option 'a'"),
        ({"sink": {"type": "parquet", "path": "/l", "format": "delta"}}, "'sink.format' is not allowed"),
    ],
)
def test_mistakes_of_mirrors(sections: dict[str, Any], message: str) -> None:
    assert message in problem(**sections)
