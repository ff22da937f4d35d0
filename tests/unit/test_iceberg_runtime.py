"""Which release of Iceberg goes with which Spark, and what is said where there is none, or another one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from floodmark.cli.checks.environment import check_iceberg
from floodmark.errors import ConfigError
from floodmark.spark.iceberg import runtime
from floodmark.spark.iceberg.failures import reason_of
from floodmark.spark.iceberg.runtime import CATALOG_CLASS, iceberg_package, require_iceberg
from floodmark.spark.pipelines import query as pipeline
from floodmark.spark.pipelines.model import parse_pipeline
from tests.support.options import REQUIRED

PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
CATALOGUE = {"spark.sql.catalog.lake": CATALOG_CLASS}
SINK: dict[str, Any] = {
    "type": "mirror",
    "path": "/staged",
    "format": "iceberg",
    "options": {"engine": "spark", "catalog.schema": "lake.shop"},
}


@pytest.mark.parametrize(
    ("version", "package"),
    [("4.0.5", "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0"), ("4.1.4", PACKAGE)],
)
def test_a_release_for_each_spark(version: str, package: str) -> None:
    assert iceberg_package(version) == package


@pytest.mark.parametrize("version", ["4.2.1", "4.3.0"])
def test_a_spark_without_a_release(version: str) -> None:
    with pytest.raises(ConfigError, match=rf"has no release for Spark {version}\. Use Spark 4\.0 or 4\.1; or name the"):
        iceberg_package(version)


@pytest.mark.parametrize(
    ("given", "package"),
    [
        ({}, PACKAGE),
        ({"spark.jars.packages": "a:b:1"}, f"a:b:1,{PACKAGE}"),
        ({"spark.jars.packages": PACKAGE.replace("1.12.0", "1.12.1")}, PACKAGE.replace("1.12.0", "1.12.1")),
        ({"spark.jars": "/jars/iceberg-spark-runtime-4.1_2.13-1.12.0.jar"}, None),
    ],
)
def test_a_pipeline_gets_the_runtime(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], package: str | None
) -> None:
    monkeypatch.setattr(runtime, "iceberg_package", lambda: PACKAGE)
    content: dict[str, Any] = {"source": REQUIRED, "sink": SINK, "checkpoint": "/c", "spark": {**CATALOGUE, **given}}
    found = pipeline.spark_properties(parse_pipeline(content, {}))
    assert found.get("spark.jars.packages") == package
    assert "spark.sql.extensions" not in found


@pytest.mark.parametrize(
    ("running", "given", "message"),
    [
        ("4.1.4", CATALOGUE, None),
        ("4.1.4", {**CATALOGUE, "spark.jars.packages": f"a:b:1, {PACKAGE}"}, None),
        ("4.1.4", {}, "the file has no Iceberg catalogue 'lake'"),
        ("4.0.5", {**CATALOGUE, "spark.jars.packages": PACKAGE}, "but this is Spark 4.0.5, with Scala 2.13"),
        ("4.3.0", CATALOGUE, "has no release for Spark 4.3.0"),
    ],
)
def test_the_check_of_a_pipeline(
    monkeypatch: pytest.MonkeyPatch, running: str, given: dict[str, str], message: str | None
) -> None:
    monkeypatch.setattr("floodmark.cli.checks.environment.version", lambda _: running)
    (found,) = check_iceberg(given, "lake.shop")
    assert (found.status == "ok") == (message is None)
    assert message is None or message in found.finding


@pytest.mark.parametrize(
    ("place", "catalogue", "exists", "message"),
    [
        (None, CATALOG_CLASS, True, rf"this Spark doesn't have\. Start Spark with spark\.jars\.packages={PACKAGE}"),
        ("jar:file:/j/iceberg-spark-runtime-4.0_2.13-1.11.0.jar!/x", CATALOG_CLASS, True, r"for Spark 4\.0, but it is"),
        ("jar:file:/j/iceberg-spark-runtime-4.1_2.13-1.12.0.jar!/x", "", True, "Spark has no Iceberg catalogue 'lake'"),
        ("jar:file:/j/all-in-one.jar!/x", CATALOG_CLASS, False, "which Spark doesn't find. Create it with CREATE"),
        ("jar:file:/j/all-in-one.jar!/x", CATALOG_CLASS, True, None),
    ],
)
def test_what_a_session_lacks(
    monkeypatch: pytest.MonkeyPatch, place: str | None, catalogue: str, exists: bool, message: str | None
) -> None:
    monkeypatch.setattr(runtime, "class_location", lambda *_: place)
    spark: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(version="4.1.4"),
        conf=SimpleNamespace(get=lambda *_: catalogue),
        catalog=SimpleNamespace(databaseExists=lambda _: exists),
    )
    if message is None:
        require_iceberg(spark, "lake.shop")
    else:
        with pytest.raises(ConfigError, match=message):
            require_iceberg(spark, "lake.shop")


@pytest.mark.parametrize(
    "text",
    [
        "Failed to connect: jdbc:postgresql://db/c?user=me&password=hidden",
        "Failed to connect to jdbc:postgresql://me:hidden@db/c",
        "Bad options {token=hidden, a=b}",
        "credential: hidden",
    ],
)
def test_reasons_have_no_secrets(text: str) -> None:
    assert "hidden" not in reason_of(RuntimeError(text))
    assert reason_of(RuntimeError(f"{text}\nrow: 1")).count("\n") == 0
