"""What ``floodmark check`` and ``floodmark.check`` find without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import floodmark
from floodmark.cli.checks import environment
from floodmark.cli.checks.environment import (
    check_channels,
    check_checkpoint,
    check_machine,
    check_packages,
    check_query,
)
from floodmark.connectors.contract.findings import Finding
from floodmark.connectors.load import load_options
from floodmark.demo.embedded import free_port
from floodmark.errors import ConfigError
from floodmark.signals.table import signal_table_finding
from floodmark.spark.pipelines.model import parse_pipeline
from floodmark.spark.pipelines.places import check_places
from tests.support.options import REQUIRED, REQUIRED_MYSQL

PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_{}:{}"


@pytest.fixture(autouse=True)
def without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java takes a second to tell its version, and is nothing to be found out here."""
    monkeypatch.setattr(environment, "check_java", lambda: Finding("Java", "ok", "Java 17"))


@pytest.fixture
def spark_43(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "version", lambda _: "4.3.0")


@pytest.mark.usefixtures("spark_43")
@pytest.mark.parametrize(
    ("properties", "wrong"),
    [
        ({}, False),
        ({"spark.jars.packages": PACKAGE.format("2.13", "4.3.0")}, False),
        ({"spark.jars.packages": PACKAGE.format("2.13", "4.3.1")}, False),
        ({"spark.jars.packages": "a:b:1, " + PACKAGE.format("2.12", "3.5.1")}, True),
        ({"spark.jars.packages": PACKAGE.format("2.13", "4.1.0")}, True),
        ({"spark.jars.packages": PACKAGE.format("2.12", "4.3.0")}, True),
        ({"spark.jars": "/jars/spark-sql-kafka-0-10_2.13-4.3.0.jar"}, False),
        ({"spark.jars.packages": PACKAGE.format("2.13", "4.2.0")}, False),
        ({"spark.jars": "/jars/a.jar,/jars/spark-sql-kafka-0-10_2.13-4.1.3.jar"}, True),
    ],
)
def test_the_connector_for_kafka_is_made_for_this_spark(properties: dict[str, str], wrong: bool) -> None:
    found = check_packages(properties)
    assert [item.status for item in found] == ["error"] * wrong
    for item in found:
        assert "this is Spark 4.3.0, with Scala 2.13" in item.finding
        assert PACKAGE.format("2.13", "4.2.0") in item.fix


def test_directories_are_apart(tmp_path: Path) -> None:
    state, sink = str(tmp_path / "state"), str(tmp_path / "events")
    (tmp_path / "link").symlink_to(tmp_path / "state")
    for checkpoint, words in {
        str(tmp_path / "checkpoint"): None,
        str(tmp_path / "state-2"): None,
        str(tmp_path): None,
        state: "is state.dir",
        f"{state}/": "is state.dir",
        f"file://{state}/cp": "is inside state.dir",
        f"file:{state}": "is state.dir",
        str(tmp_path / "link" / "cp"): "is inside state.dir",
        sink: "is the sink's path",
        f"{sink}/_cp": "is inside the sink's path",
    }.items():
        found = check_places(state, checkpoint, sink)
        assert [(item.check, item.status) for item in found] == [("checkpoint", "error")] * (words is not None)
        assert not found or str(words) in found[0].finding
    assert [item.check for item in check_places(f"{sink}/state", None, sink)] == ["state.dir"]
    assert check_places(state, None, None) == []
    assert "is inside" in check_places("s3://b/state", "s3://b/state/cp", None)[0].finding
    assert check_places("s3://b/state", "/b/state/cp", "s3://c/state") == []


def test_checkpoints_of_others(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    assert [item.status for item in check_checkpoint(str(tmp_path))] == ["ok"]
    offsets.mkdir()
    (offsets / "0").write_text('v1\n{}\n{"v": 99, "log": "0", "snapshot": null}\n')
    (found,) = check_checkpoint(str(tmp_path))
    assert (found.check, found.status) == ("checkpoint", "error")
    assert "format version 99" in found.finding
    (offsets / "1").write_text('v1\n{}\n{"topic": {"0": 5}}\n')
    (found,) = check_checkpoint(f"file://{tmp_path}")
    assert "is not the checkpoint of a Floodmark query" in found.finding
    assert found.fix


def test_a_pipeline_is_checked_for_all_of_that(tmp_path: Path) -> None:
    content: dict[str, Any] = {
        "source": {**REQUIRED, "state.dir": str(tmp_path / "state"), "notification.enabled.channels": "nowhere:f"},
        "sink": {
            "type": "kafka",
            "options": {"kafka.bootstrap.servers": f"127.0.0.1:{free_port()}", "engine": "spark"},
        },
        "checkpoint": str(tmp_path / "state" / "checkpoint"),
        "spark": {"spark.jars.packages": PACKAGE.format("2.12", "3.5.1")},
    }
    found = [*check_machine(), *check_query(parse_pipeline(content, {}))]
    errors = [item.check for item in found if item.status == "error"]
    assert errors == ["checkpoint", "sink", "Kafka connector", "notifications"]
    assert all(item.fix for item in found if item.status == "error")


@pytest.mark.parametrize(
    ("columns", "status", "words"),
    [
        ([], "error", "'public.signals' of signal.data.collection does not exist"),
        (["id", "type"], "error", "has only id, type; signals need id, type, data"),
        (["id", "type", "data"], "ok", ""),
        (["ID", "Type", "DATA", "at"], "ok", ""),
        (["name", "kind", "content"], "ok", ""),
        (["at", "id", "type", "data"], "error", "begins with at, id, type, but columns count by their places"),
    ],
)
def test_signal_tables(columns: list[str], status: str, words: str) -> None:
    found = signal_table_finding("public.signals", columns)
    assert (found.check, found.status) == ("signal table", status)
    assert words in found.finding
    assert ("CREATE TABLE public.signals (id" in found.fix) == (status == "error")


def test_brokers_of_the_schema_history() -> None:
    given = {
        **REQUIRED_MYSQL,
        "schema.history.internal": "io.debezium.storage.kafka.history.KafkaSchemaHistory",
        "schema.history.internal.kafka.topic": "history",
        "schema.history.internal.kafka.bootstrap.servers": f"127.0.0.1:{free_port()}",
    }
    (found,) = check_channels(load_options(given))
    assert (found.check, found.status) == ("schema history", "error")
    assert "Correct schema.history.internal.kafka.bootstrap.servers" in found.fix


def test_wrong_options_are_a_finding() -> None:
    (found,) = floodmark.check({**REQUIRED, "slot.nam": "x"})
    assert found == floodmark.Finding("options", "error", "Unknown option 'slot.nam'.", "Did you mean 'slot.name'?")
    (found,) = floodmark.check({})
    assert "'connector' is required" in found.finding


def test_a_source_that_is_not_there_is_one_finding(tmp_path: Path) -> None:
    place = {"database.hostname": "127.0.0.1", "database.port": str(free_port()), "state.dir": str(tmp_path)}
    for changes in ({}, {"format": "rows"}):
        found = floodmark.check({**REQUIRED, **place, **changes}, checkpoint=str(tmp_path / "checkpoint"))
        errors = [item for item in found if item.status == "error"]
        assert [item.check for item in errors] == ["checkpoint", "connection"]
        assert "Connection refused" in errors[1].finding
        assert "database.port" in errors[1].fix


def test_a_missing_driver_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(connector: str, name: str) -> None:
        raise ConfigError(f"The driver of connector '{connector}' is not installed.", "Install it.")

    monkeypatch.setattr("floodmark.cli.check.connector_module", missing)
    found = floodmark.check({**REQUIRED, "state.dir": str(tmp_path)})
    assert found[-1] == Finding(
        "connector", "error", "The driver of connector 'postgres' is not installed.", "Install it."
    )
