"""Which release of Delta goes with which Spark, and what is said where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from floodmark.cli.checks.environment import check_delta
from floodmark.errors import ConfigError
from floodmark.spark.delta.runtime import SETTINGS, delta_package
from floodmark.spark.pipelines import query as pipeline
from floodmark.spark.pipelines.model import parse_pipeline
from tests.support.options import REQUIRED

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"


def properties(spark: dict[str, str], engine: str = "spark") -> dict[str, str]:
    sink: dict[str, Any] = {"type": "mirror", "path": "/lake", "options": {"engine": engine}}
    content: dict[str, Any] = {"source": REQUIRED, "sink": sink, "checkpoint": "/c", "spark": spark}
    return pipeline.spark_properties(parse_pipeline(content, {}))


@pytest.mark.parametrize(("version", "name"), [("4.0.5", "4.0"), ("4.1.4", "4.1"), ("4.2.1", "4.2")])
def test_a_release_for_each_spark(version: str, name: str) -> None:
    assert delta_package(version) == f"io.delta:delta-spark_{name}_2.13:4.4.0"


def test_a_spark_without_a_release() -> None:
    with pytest.raises(ConfigError, match=r"has no release for Spark 4\.3\.0 yet\. Use Spark 4\.2"):
        delta_package("4.3.0")


@pytest.mark.parametrize(
    ("given", "package"),
    [
        ({}, PACKAGE),
        ({"spark.jars.packages": "a:b:1"}, f"a:b:1,{PACKAGE}"),
        ({"spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.1"}, "io.delta:delta-spark_4.2_2.13:4.4.1"),
        ({"spark.jars": "/jars/delta-spark_4.2_2.13-4.4.0.jar"}, None),
    ],
)
def test_a_pipeline_gets_the_runtime(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], package: str | None
) -> None:
    monkeypatch.setattr(pipeline, "delta_package", lambda: PACKAGE)
    found = properties(given)
    assert found.get("spark.jars.packages") == package
    assert found.items() >= SETTINGS.items()


def test_a_pipeline_that_brings_its_own_runtime() -> None:
    found = properties({"spark.sql.extensions": "org.example.Extensions"})
    assert "spark.jars.packages" not in found
    assert found["spark.sql.extensions"] == "org.example.Extensions"


def test_floodmark_needs_no_runtime() -> None:
    assert not properties({}, engine="floodmark").keys() & {*SETTINGS, "spark.jars.packages"}


@pytest.mark.parametrize(
    ("running", "given", "message"),
    [
        ("4.2.1", {}, None),
        ("4.2.1", {"spark.jars.packages": f"a:b:1, {PACKAGE}"}, None),
        ("4.1.4", {"spark.jars.packages": PACKAGE}, "but this is Spark 4.1.4, with Scala 2.13"),
        ("4.2.1", {"spark.jars": "/j/delta-spark_4.2_2.12-4.4.0.jar"}, "but this is Spark 4.2.1, with Scala 2.13"),
        ("4.3.0", {"spark.jars.packages": PACKAGE}, "has no release for Spark 4.3.0"),
    ],
)
def test_the_check_of_a_pipeline(
    monkeypatch: pytest.MonkeyPatch, running: str, given: dict[str, str], message: str | None
) -> None:
    monkeypatch.setattr("floodmark.cli.checks.environment.version", lambda _: running)
    (found,) = check_delta(given)
    assert (found.status == "ok") == (message is None)
    assert message is None or message in found.finding
