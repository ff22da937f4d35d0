"""Tables of mirrors that Spark's ``MERGE`` writes, beside what every writer must do (``test_mirror_engines.py``)."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from floodmark.errors import TargetError, TargetUnfitError
from floodmark.sinks.delta.parts import Part
from tests.conftest import Source as Database
from tests.conftest import drop, make_source
from tests.integration.test_mirror import rows_of
from tests.support.delta_mirror import Mirror, in_order, typed
from tests.support.delta_spark import DeltaSpark
from tests.support.driver import Driver
from tests.support.merging import Target, merge
from tests.support.mysql import MysqlServer
from tests.support.patience import within
from tests.unit.test_last_changes import Source

pytestmark = pytest.mark.slow
KEY = ("id",)


def operations(mirror: Mirror) -> list[str]:
    """Return what the commits of a table did, the first one first."""
    logs = sorted(Path(mirror.path, "_delta_log").glob("*.json"))
    lines = (json.loads(line) for path in logs for line in path.read_text().splitlines())
    return [line["commitInfo"]["operation"] for line in lines if "commitInfo" in line]


@pytest.fixture
def shop(delta_spark: DeltaSpark) -> Iterator[str]:
    """Return a schema of Spark's catalogue, without what others leave in it."""
    delta_spark.run("CREATE SCHEMA shop")
    yield "shop"
    delta_spark.run("DROP SCHEMA shop CASCADE")


@pytest.mark.long
def test_a_table_in_a_catalogue(tmp_path: Path, delta_spark: DeltaSpark, shop: str) -> None:
    options = {"catalog.schema": f"spark_catalog.{shop}", "compact.files": "0"}
    source, mirror = Source(KEY), Mirror(tmp_path / "t", KEY, delta_spark, **options)
    expected: Target = {}
    for batch in range(2):
        first = len(source.told)
        for number in range(4):
            source.change("insert", 4 * batch + number, 0, batch, False)
        source.change("delete", 4 * batch, 0, 0, False)
        merge(expected, source.told[first:])
        assert mirror.write(batch, source.told[first:])
        found = delta_spark.rows(f"SELECT id, v, big FROM {shop}.t").to_pylist()
        assert in_order(found) == mirror.rows() == in_order(expected.values())
    assert operations(mirror) == ["CREATE TABLE", "WRITE", "MERGE"]
    # A target that is taken back: its folder was removed, but not its name.
    shutil.rmtree(mirror.path)
    mirror.start()
    assert mirror.write(2, source.told)
    assert in_order(delta_spark.rows(f"SELECT id, v, big FROM {shop}.t").to_pylist()) == in_order(expected.values())
    folder = tmp_path / "other"
    folder.mkdir()
    other = Mirror(folder / "t", KEY, delta_spark, **options)
    with pytest.raises(
        TargetError, match=r"The catalogue has another table with the name `spark_catalog`\.`shop`\.`t`"
    ):
        other.write(0, source.told[:1])


def test_engines_take_turns(tmp_path: Path, delta_spark: DeltaSpark) -> None:
    source, mirror = Source(KEY), Mirror(tmp_path / "t", KEY, delta_spark)
    by_spark, by_floodmark = mirror.writer, Mirror(tmp_path / "t", KEY).writer
    expected: Target = {}
    for batch, writer in enumerate([by_floodmark, by_spark, by_floodmark]):
        first = len(source.told)
        source.change("insert", batch, 0, batch, False)
        source.change("update", 0, 0, batch, True)
        merge(expected, source.told[first:])
        for mirror.writer, changes in ((writer, True), (by_spark, False), (by_floodmark, False)):
            assert mirror.write(batch, source.told[first:]) == changes
            assert mirror.rows() == in_order(expected.values())


def test_small_files_are_rewritten(tmp_path: Path, delta_spark: DeltaSpark) -> None:
    source, mirror = Source(KEY), Mirror(tmp_path / "t", KEY, delta_spark, **{"compact.files": "2"})
    for batch in range(3):
        source.change("insert", batch, 0, batch, False)
        assert mirror.write(batch, source.told[-1:])
    assert "OPTIMIZE" in operations(mirror)
    assert len(DeltaTable(mirror.path).file_uris()) < 3
    # What Spark has read its changes from is gone; files of its own have longer names.
    assert not [path for path in Path(mirror.path).glob("*.parquet") if re.fullmatch(r"part-[0-9a-f-]{36}", path.stem)]


@pytest.mark.parametrize(
    ("alteration", "reason"),
    [
        ("ADD CONSTRAINT small CHECK (v < 2)", "CHECK constraint small"),
        ("SET TBLPROPERTIES ('delta.appendOnly' = 'true')", "only allow appends"),
    ],
)
def test_rows_that_a_table_refuses(tmp_path: Path, delta_spark: DeltaSpark, alteration: str, reason: str) -> None:
    source, mirror = Source(KEY), Mirror(tmp_path / "t", KEY, delta_spark)
    source.change("insert", 1, 0, 1, False)
    source.change("update", 1, 0, 2, False)
    assert mirror.write(0, source.told[:1])
    delta_spark.run(f"ALTER TABLE delta.`{mirror.path}` {alteration}")
    with pytest.raises(TargetUnfitError, match=rf"Spark can't write the Delta table 'db\.t': .*{reason}"):
        mirror.write(1, source.told[1:])


def test_a_name_that_no_column_can_have(tmp_path: Path, delta_spark: DeltaSpark) -> None:
    mirror = Mirror(tmp_path / "t", KEY, delta_spark)
    columns = pa.schema([("id", pa.int64()), ("odd name", pa.int64())])
    part = Part(list(KEY), columns, pa.table({"id": [1], "_position": ["1"]}))
    with pytest.raises(TargetUnfitError, match="The column 'odd name' of the table"):
        mirror.writer.write(0, [part])


def test_a_clustered_table_stays_clustered(tmp_path: Path, delta_spark: DeltaSpark) -> None:
    options = {"cluster.by": r"db\.t:v", "compact.files": "0"}
    source, mirror = Source(KEY), Mirror(tmp_path / "t", KEY, delta_spark, **options)
    for number in range(2):
        source.change("insert", number, 0, number, False)
    assert mirror.writer.write(0, typed(mirror, source.told[:1], v=pa.int16()))
    assert mirror.writer.write(1, typed(mirror, source.told[1:], v=pa.int64()))
    (detail,) = delta_spark.rows(f"DESCRIBE DETAIL delta.`{mirror.path}`").to_pylist()
    assert detail["clusteringColumns"] == ["v"]
    assert mirror.rows() == in_order(source.rows.values())


@pytest.fixture
def database(pg18: Any, tmp_path: Path) -> Iterator[Database]:
    made = make_source(pg18, tmp_path / "state")
    made.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text, n numeric(10,2))",
        "INSERT INTO a SELECT g, 'v' || g, g / 4.0 FROM generate_series(1, 500) g",
        "CREATE TABLE b (id integer, v text)",
        "INSERT INTO b SELECT g, 'b' FROM generate_series(1, 50) g",
    )
    yield made
    drop(made)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_query_whose_tables_spark_writes(tmp_path: Path, database: Database) -> None:
    options = {**database.options, "format": "arrow", "skipped.operations": "none"}

    def run() -> None:
        driver = Driver(options, tmp_path, available_now=True, mirrors={"engine": "spark"})
        assert driver.wait(within(180)) == 0, driver.log()[-4000:]

    run()
    database.execute(
        "UPDATE a SET v = 'new' WHERE id % 3 = 0",
        "DELETE FROM a WHERE id % 7 = 0",
        "UPDATE a SET id = id + 1000 WHERE id < 20",
        "INSERT INTO b VALUES (51, 'b')",
    )
    run()
    with database.database.session() as session:
        rows = session.execute("SELECT id, v, n FROM a ORDER BY id").fetchall()
    assert [tuple(row.values()) for row in rows_of(tmp_path / "out" / "public.a", "id, v, n")] == rows
    assert [row["id"] for row in rows_of(tmp_path / "out" / "public.b", "id")] == list(range(1, 52))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("flavor", ["mysql", "mariadb"] if os.environ.get("FLOODMARK_FULL_MATRIX") else [])
def test_a_query_on_mysql_whose_tables_spark_writes(
    tmp_path: Path, request: pytest.FixtureRequest, flavor: str
) -> None:
    server: MysqlServer = request.getfixturevalue(flavor)
    name = "by_spark"
    server.execute(
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.a (id int PRIMARY KEY, v varchar(20), n decimal(10,2), t datetime(6))",
        *[f"INSERT INTO {name}.a VALUES ({g}, 'v{g}', {g / 4}, '2026-01-01 00:00:00.5')" for g in range(60)],
        f"CREATE TABLE {name}.b (id int, v varchar(20))",
        f"INSERT INTO {name}.b VALUES (1, 'b'), (2, 'b')",
    )
    options = {
        **server.options(),
        "topic.prefix": name,
        "state.dir": str(tmp_path / "state"),
        "database.include.list": name,
        "format": "arrow",
        "skipped.operations": "none",
    }

    def run() -> None:
        driver = Driver(options, tmp_path, available_now=True, mirrors={"engine": "spark"})
        assert driver.wait(within(180)) == 0, driver.log()[-4000:]

    run()
    server.execute(
        f"UPDATE {name}.a SET v = 'new' WHERE id % 3 = 0",
        f"DELETE FROM {name}.a WHERE id % 7 = 0",
        f"UPDATE {name}.a SET id = id + 1000 WHERE id < 20",
        f"ALTER TABLE {name}.a ADD extra int",
        f"INSERT INTO {name}.a VALUES (5000, 'late', 1.25, NULL, 7)",
        f"INSERT INTO {name}.b VALUES (3, 'b')",
    )
    run()
    # What the run before has asked for, because of the new column, this one reads.
    run()
    columns = "id, v, n, t, extra"
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {name}.a ORDER BY id")
        expected = list(cursor.fetchall())
    assert [tuple(row.values()) for row in rows_of(tmp_path / "out" / f"{name}.a", columns)] == expected
    assert [row["id"] for row in rows_of(tmp_path / "out" / f"{name}.b", "id")] == [1, 2, 3]
    server.execute(f"DROP DATABASE {name}")
