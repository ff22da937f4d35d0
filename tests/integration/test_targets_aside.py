"""Targets that can't take their rows are set aside, while the others go on, and taken back when they are removed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import Source, drop, make_source
from tests.integration.test_mirror import pipeline_of, rows_of, run
from tests.support.cli import CLI

pytestmark = pytest.mark.slow

CONFLICT = ("ALTER TABLE a ALTER v TYPE bigint USING v::bigint", "INSERT INTO a VALUES (2, 2)")


@pytest.fixture
def shop(pg18: EmbeddedPostgres, tmp_path: Path) -> Any:
    source = make_source(pg18, tmp_path / "state")
    source.execute("CREATE TABLE a (id integer PRIMARY KEY, v text)", "CREATE TABLE b (id integer PRIMARY KEY)")
    source.execute("INSERT INTO a VALUES (1, '1')", "INSERT INTO b VALUES (1)")
    yield source
    drop(source)


class Lake:
    """A source's mirror."""

    def __init__(self, source: Source, folder: Path) -> None:
        self.source, self.folder = source, folder
        self.table = folder / "lake" / "public.a"
        self.mark = self.table / "_floodmark" / "set_aside.json"

    def run(self, spark: SparkSession, *statements: str, **options: str) -> None:
        """Execute statements, and run the query to the end of the log."""
        self.source.execute(*statements)
        run(spark, pipeline_of(self.source, self.folder, **options))

    def ids(self, table: str) -> list[int]:
        """Return the keys in a target."""
        return [row["id"] for row in rows_of(self.folder / "lake" / f"public.{table}", "id")]

    def status(self) -> dict[str, Any]:
        """Return what ``floodmark status`` tells, which must be the same for people."""
        file = self.folder / "pipeline.yaml"
        sink = {"type": "mirror", "path": str(self.folder / "lake")}
        content = {"source": self.source.options, "sink": sink, "checkpoint": str(self.folder / "checkpoint")}
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        told = [
            subprocess.run([*CLI, "status", str(file), *more], capture_output=True, text=True, check=True).stdout
            for more in ((), ("--json",))
        ]
        found: dict[str, Any] = json.loads(told[1])
        for table in found["set_aside"]:
            assert f"{table['name']} is set aside (target" in told[0]
        return found

    def keeps_aside(self, spark: SparkSession, number: int) -> None:
        """Prove that the query goes on, and that the table gets no rows."""
        self.run(spark, f"INSERT INTO a VALUES ({number}, 0)", f"INSERT INTO b VALUES ({number})")
        assert number not in self.ids("a")
        assert number in self.ids("b")
        assert [one["name"] for one in self.status()["set_aside"]] == ["public.a"]


@pytest.fixture
def lake(shop: Source, tmp_path: Path) -> Lake:
    return Lake(shop, tmp_path)


def test_a_table_is_set_aside_and_taken_back(spark: SparkSession, lake: Lake) -> None:
    lake.run(spark)
    assert lake.status()["set_aside"] == []
    files = set(lake.table.glob("*.parquet"))
    lake.run(spark, *CONFLICT, "INSERT INTO b VALUES (2)")
    assert (lake.ids("a"), lake.ids("b")) == ([1], [1, 2])
    (told,) = lake.status()["set_aside"]
    assert told["part"] == "target"
    assert told["error"].startswith("The column 'v' of the Delta table 'public.a' is string")
    assert told["resume"] == f"remove the folder {lake.table}; the table is read again with the next micro-batch"
    lake.keeps_aside(spark, 3)
    lake.run(spark, "DELETE FROM a WHERE id = 1")
    # What tasks had written of it is gone, too.
    assert set(lake.table.glob("*.parquet")) == files
    shutil.rmtree(lake.table)
    lake.run(spark, "UPDATE a SET v = 33 WHERE id = 3")
    lake.run(spark, "INSERT INTO a VALUES (4, 4)")
    assert rows_of(lake.table, "id, v") == [{"id": 2, "v": 2}, {"id": 3, "v": 33}, {"id": 4, "v": 4}]
    assert lake.status()["set_aside"] == []


def test_the_query_ends_instead_if_it_has_no_other_table(spark: SparkSession, lake: Lake) -> None:
    lake.run(spark, "DROP TABLE b")
    with pytest.raises(StreamingQueryException, match=r"'v' of the Delta table 'public\.a' is string"):
        lake.run(spark, *CONFLICT)
    # So what the error says to do loses nothing.
    assert lake.status()["set_aside"] == []
    assert not lake.mark.exists()


@pytest.mark.long
def test_it_stays_aside_without_the_state_directory(spark: SparkSession, lake: Lake) -> None:
    lake.run(spark)
    lake.run(spark, *CONFLICT, "INSERT INTO b VALUES (2)")
    shutil.rmtree(lake.folder / "state")
    lake.keeps_aside(spark, 3)


@pytest.mark.long
@pytest.mark.parametrize("gone", ["mark", "log"])
def test_it_stays_aside_when_only_a_part_of_it_is_removed(spark: SparkSession, lake: Lake, gone: str) -> None:
    lake.run(spark)
    lake.run(spark, *CONFLICT, "INSERT INTO b VALUES (2)")
    if gone == "mark":
        shutil.rmtree(lake.mark.parent)
        lake.keeps_aside(spark, 3)
    else:
        shutil.rmtree(lake.table / "_delta_log")
        lake.run(spark, "INSERT INTO a VALUES (3, 3)", "INSERT INTO b VALUES (3)")
        assert not DeltaTable.is_deltatable(str(lake.table))
        assert len(lake.status()["set_aside"]) == 1


@pytest.mark.long
def test_a_table_that_never_had_a_target(spark: SparkSession, lake: Lake) -> None:
    lake.run(spark, "ALTER TABLE a ADD _position text", "ALTER TABLE a DROP v")
    assert not lake.table.joinpath("_delta_log").exists()
    lake.run(spark, "INSERT INTO a VALUES (2)", "INSERT INTO b VALUES (2)")
    assert lake.ids("b") == [1, 2]
    (told,) = lake.status()["set_aside"]
    assert "'_position' of the table 'public.a' can't be in a mirror" in told["error"]
    lake.run(spark, "ALTER TABLE a DROP _position")
    shutil.rmtree(lake.table)
    for number in (3, 4):
        lake.run(spark, f"INSERT INTO b VALUES ({number})")
    assert lake.ids("a") == [1, 2]


def test_a_damaged_table_is_set_aside(spark: SparkSession, lake: Lake) -> None:
    lake.run(spark)
    lake.run(spark, "DELETE FROM a WHERE id = 1", "INSERT INTO a VALUES (2, '2')")
    lake.run(spark, "INSERT INTO a VALUES (3, '3')")
    commit = max((lake.table / "_delta_log").glob("*.json"))
    commit.write_bytes(commit.read_bytes() + b"{")
    lake.run(spark, "UPDATE a SET v = '4'", "INSERT INTO b VALUES (2)")
    assert lake.ids("b") == [1, 2]
    (told,) = lake.status()["set_aside"]
    assert "holds a line that is no JSON" in told["error"]


@pytest.mark.long
def test_another_query_empties_it(spark: SparkSession, lake: Lake) -> None:
    lake.run(spark)
    lake.run(spark, *CONFLICT, "INSERT INTO b VALUES (2)")
    shutil.rmtree(lake.folder / "checkpoint")
    lake.run(spark, **{"existing.tables": "empty"})
    assert rows_of(lake.table, "id, v") == [{"id": 1, "v": 1}, {"id": 2, "v": 2}]
    assert lake.status()["set_aside"] == []


def test_the_option_fail(spark: SparkSession, lake: Lake) -> None:
    lake.source.options["errors.tables"] = "fail"
    lake.run(spark)
    with pytest.raises(StreamingQueryException, match=r"'v' of the Delta table 'public\.a' is string"):
        lake.run(spark, *CONFLICT, "INSERT INTO b VALUES (2)")
    assert lake.ids("b") == [1, 2]
    assert not lake.mark.exists()
