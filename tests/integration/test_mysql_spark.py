"""MySQL and MariaDB through Spark's own engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from floodmark.spark.pipelines.file import parse_file
from floodmark.spark.pipelines.query import start_query
from tests.support.available_now import ENDING, start_to_end
from tests.support.mysql import MysqlServer
from tests.support.patience import within

ROWS = 500


@pytest.fixture
def shop(binlog_server: MysqlServer) -> Iterator[MysqlServer]:
    binlog_server.execute(
        "CREATE DATABASE spark_shop",
        "CREATE TABLE spark_shop.orders (id INT PRIMARY KEY, note VARCHAR(40), amount DECIMAL(10,2))",
        "INSERT INTO spark_shop.orders VALUES "
        + ",".join(f"({number}, 'note {number}', {number}.25)" for number in range(ROWS)),
    )
    yield binlog_server
    binlog_server.execute("DROP DATABASE spark_shop")


def run(spark: SparkSession, options: dict[str, str], place: Path) -> None:
    frame = spark.readStream.format("floodmark").options(**options, **ENDING).load()
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    start_to_end(writer, str(place / "events")).awaitTermination()


def options(server: MysqlServer, place: Path, **more: str) -> dict[str, str]:
    return {
        **server.options(),
        "topic.prefix": "shop",
        "table.include.list": "spark_shop.orders",
        "state.dir": str(place / "state"),
        "include.schema.changes": "false",
        **more,
    }


def test_a_snapshot_and_what_follows(spark: SparkSession, shop: MysqlServer, tmp_path: Path) -> None:
    given = options(shop, tmp_path)
    run(spark, given, tmp_path)
    shop.execute(
        "UPDATE spark_shop.orders SET note = 'changed' WHERE id < 10",
        "DELETE FROM spark_shop.orders WHERE id >= 490",
        "INSERT INTO spark_shop.orders VALUES (1000, 'late', 1)",
    )
    run(spark, given, tmp_path)
    events = spark.read.parquet(str(tmp_path / "events")).orderBy("position").collect()
    assert [sum(event.op == op for event in events) for op in "rud"] == [ROWS, 10, 20]
    held: dict[int, str] = {}
    for event in events:
        key = json.loads(event.key)["id"]
        if event.value is None or event.op == "d":
            held.pop(key, None)
        else:
            held[key] = json.loads(event.value)["after"]["note"]
    with shop.connect() as session, session.cursor() as cursor:
        cursor.execute("SELECT id, note FROM spark_shop.orders")
        assert held == dict(cursor.fetchall())


def test_typed_rows(spark: SparkSession, shop: MysqlServer, tmp_path: Path) -> None:
    run(spark, options(shop, tmp_path, format="rows"), tmp_path)
    rows = spark.read.parquet(str(tmp_path / "events"))
    assert rows.schema["after"].dataType.simpleString() == "struct<id:int,note:string,amount:decimal(10,2)>"
    total = rows.selectExpr("sum(after.amount) AS total").collect()[0].total
    assert float(total) == sum(range(ROWS)) + ROWS * 0.25


def test_several_sinks_at_once(spark: SparkSession, shop: MysqlServer, tmp_path: Path) -> None:
    """Two mirrors in one Spark application, each a client of its own for the server."""
    given = options(shop, tmp_path)
    file = parse_file(
        {
            "source": dict(given),
            "sinks": {name: {"type": "mirror", "path": str(tmp_path / name)} for name in ("one", "two")},
            "trigger": {"availableNow": "true"},
            "checkpoint": str(tmp_path / "checkpoint"),
        },
        {},
    )
    assert len({one.options.owner for one in file.pipelines}) == 2
    for rows in (ROWS, ROWS - 10):
        queries = [start_query(spark, one) for one in file.pipelines]
        for query in queries:
            assert query.awaitTermination(int(within(60)))
        for name in ("one", "two"):
            table = DeltaTable(str(tmp_path / name / "spark_shop.orders"))
            found = QueryBuilder().register("t", table).execute("SELECT id FROM t").read_all()
            assert pa.table(found).num_rows == rows
        shop.execute("DELETE FROM spark_shop.orders WHERE id < 10")
