"""A pipeline file that a program starts in its own session."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import floodmark
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.spark.targets.sessions import settings
from tests.conftest import Source, drop, make_source
from tests.support.patience import within

CHECK, SHUFFLES = "spark.sql.streaming.unsupportedOperationCheck", "spark.sql.shuffle.partitions"


@pytest.fixture
def small(pg18: EmbeddedPostgres, tmp_path: Path) -> Iterator[Source]:
    made = make_source(pg18, tmp_path / "state")
    made.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 20)")
    yield made
    drop(made)


def content(source: Source, directory: Path, **changes: Any) -> dict[str, Any]:
    return {
        "source": dict(source.options),
        "sink": {"type": "parquet", "path": str(directory / "events")},
        "checkpoint": str(directory / "checkpoint"),
        "trigger": {"availableNow": True},
        **changes,
    }


def keys(directory: Path) -> list[int]:
    tables = [pq.read_table(file) for file in (directory / "events").glob("part-*.parquet")]
    return sorted(json.loads(row["key"])["id"] for table in tables for row in table.to_pylist())


def test_a_program_starts_a_file_and_goes_on(spark: SparkSession, small: Source, tmp_path: Path) -> None:
    password = small.options.get("database.password", "")
    written = content(small, tmp_path, name="shop", spark={SHUFFLES: "3"})
    written["source"]["database.password"] = "${SHOP_PASSWORD}"
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(written), encoding="utf-8")
    pipeline = floodmark.Pipeline.from_yaml(file, {"SHOP_PASSWORD": password})
    before = spark.conf.get(SHUFFLES), spark.conf.get(CHECK)
    query = pipeline.start(spark)
    assert query.name == pipeline.name == "shop"
    assert query.awaitTermination(int(within(60)))
    assert keys(tmp_path) == list(range(1, 21))
    settings_of_batch = json.loads((tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()[1])["conf"]
    assert settings_of_batch[SHUFFLES] == "3"
    assert (spark.conf.get(SHUFFLES), spark.conf.get(CHECK)) == before
    small.execute("INSERT INTO t VALUES (21)")
    again = floodmark.Pipeline.from_yaml(str(file), {"SHOP_PASSWORD": password}).start(spark)
    assert again.awaitTermination(int(within(60)))
    assert keys(tmp_path) == list(range(1, 22))


def test_the_master_is_the_files_or_the_programs(small: Source, tmp_path: Path) -> None:
    made = content(small, tmp_path)
    assert "spark.master" not in floodmark.Pipeline.from_dict(made).spark_properties
    made["spark"] = {"spark.master": "local[3]"}
    assert floodmark.Pipeline.from_dict(made).spark_properties["spark.master"] == "local[3]"


def test_several_sinks(spark: SparkSession, small: Source, tmp_path: Path) -> None:
    made = content(small, tmp_path)
    del made["sink"]
    made["sinks"] = {name: {"type": "parquet", "path": str(tmp_path / name / "events")} for name in ("one", "two")}
    made["sinks"]["two"]["transform"] = "SELECT key FROM events WHERE key <> '{\"id\":7}'"
    pipeline = floodmark.Pipeline.from_dict(made)
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    (tmp_path / "checkpoint" / "metadata").write_text("{}")
    with pytest.raises(floodmark.ConfigError, match="is the checkpoint of a pipeline with one sink"):
        pipeline.start_all(spark)
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(floodmark.ConfigError, match=r"several sinks.*: one, two\..*start_all"):
        pipeline.start(spark)
    queries = pipeline.start_all(spark)
    assert {label: query.name for label, query in queries.items()} == {"one": "test.one", "two": "test.two"}
    assert all(query.awaitTermination(int(within(60))) for query in queries.values())
    assert [len(keys(tmp_path / name)) for name in queries] == [20, 19]
    assert spark.sparkContext.getLocalProperty("spark.scheduler.pool") is None


def test_what_a_session_can_no_longer_take_is_said(
    spark: SparkSession, small: Source, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    properties = {"spark.executor.memory": "7g", "spark.hadoop.fs.s3a.secret.key": "hunter2", SHUFFLES: "3"}
    made = content(small, tmp_path, sink={"type": "noop"}, spark=properties)
    query = floodmark.Pipeline.from_dict(made).start(spark)
    assert query.awaitTermination(int(within(60)))
    said = capfd.readouterr().err
    line = next(json.loads(line) for line in said.splitlines() if "was started without" in line)
    assert {"spark.executor.memory", "spark.hadoop.fs.s3a.secret.key"} <= set(line["properties"])
    assert SHUFFLES not in line["properties"]
    assert "hunter2" not in said
    assert "spark_properties" in line["cure"]


def test_a_mistake_is_one_error_of_floodmark(spark: SparkSession, small: Source, tmp_path: Path) -> None:
    inside = content(small, tmp_path, checkpoint=str(tmp_path / "events" / "checkpoint"))
    with pytest.raises(floodmark.ConfigError, match="is inside the sink's path"):
        floodmark.Pipeline.from_dict(inside).start(spark)
    kafka = {"type": "kafka", "options": {"kafka.bootstrap.servers": "127.0.0.1:1", "engine": "spark"}}
    with pytest.raises(floodmark.ConfigError, match=r"spark\.jars\.packages=org\.apache\.spark:spark-sql-kafka"):
        floodmark.Pipeline.from_dict(content(small, tmp_path, sink=kafka)).start(spark)
    rows = content(small, tmp_path)
    rows["source"] |= {"format": "rows", "table.include.list": r"public\.nothing"}
    with pytest.raises(floodmark.FloodmarkError, match="needs exactly one captured table"):
        floodmark.Pipeline.from_dict(rows).start(spark)
    with pytest.raises(floodmark.ConfigError, match="of the type str"):
        floodmark.Pipeline.from_dict("pipeline.yaml")  # type: ignore[arg-type]


def test_settings_end_with_their_block(spark: SparkSession) -> None:
    name, unset = "spark.sql.session.timeZone", "spark.sql.sources.bucketing.enabled"
    with settings(spark, {name: "Asia/Tokyo", unset: "false"}):
        assert (spark.conf.get(name), spark.conf.get(unset)) == ("Asia/Tokyo", "false")
    assert (spark.conf.get(name), spark.conf.get(unset)) == ("UTC", "true")
    refused = {name: "Asia/Tokyo", "spark.sql.warehouse.dir": "/x"}
    with pytest.raises(AnalysisException), settings(spark, refused):
        pass
    assert spark.conf.get(name) == "UTC"
