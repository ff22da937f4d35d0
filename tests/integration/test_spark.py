"""The data source in a real Spark session: triggers, progress, columns, ordering."""

from __future__ import annotations

import ast
import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.spark.ordering import order_by_key
from floodmark.spark.versions import GIVES_START
from tests.conftest import Source, drop, make_source
from tests.support.available_now import ENDING, start_to_end
from tests.support.patience import within

WAIT_S = int(within(120))


@pytest.fixture
def orders(pg18: EmbeddedPostgres, tmp_path: Path) -> Any:
    source = make_source(pg18, tmp_path / "state")
    source.execute(
        "CREATE TABLE orders (id integer PRIMARY KEY, note text)",
        "INSERT INTO orders SELECT g, 'note' FROM generate_series(1, 100) g",
    )
    yield source
    drop(source)


def start(spark: SparkSession, source: Source, work: Path, **trigger: Any) -> StreamingQuery:
    ends = trigger == {"availableNow": True}
    options = {**source.options, **(ENDING if ends else {})}
    stream = spark.readStream.format("floodmark").options(**options).load()
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(work / "cp"))
    out = str(work / "out")
    return start_to_end(writer, out) if ends else writer.trigger(**trigger).start(out)


def operations(spark: SparkSession, work: Path) -> dict[str, int]:
    rows = spark.read.parquet(str(work / "out")).groupBy("op").count().collect()
    return {row["op"]: row["count"] for row in rows}


def offset_of(text: str) -> Any:
    """Return an offset of a progress report, where PySpark 4.0 prints it as Python does."""
    return json.loads(text) if text.startswith('{"') else ast.literal_eval(text)


def wait_until(condition: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + within(seconds)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_available_now_goes_on_where_it_ended(spark: SparkSession, orders: Source, tmp_path: Path) -> None:
    start(spark, orders, tmp_path, availableNow=True).awaitTermination(WAIT_S)
    assert operations(spark, tmp_path) == {"r": 100}
    orders.execute("UPDATE orders SET note = 'new' WHERE id <= 10", "DELETE FROM orders WHERE id = 50")
    start(spark, orders, tmp_path, availableNow=True).awaitTermination(WAIT_S)
    assert operations(spark, tmp_path) == {"r": 100, "u": 10, "d": 2}


def test_what_a_stream_holds_beside_rows(spark: SparkSession, orders: Source, tmp_path: Path) -> None:
    orders.options |= {"heartbeat.interval.ms": "1", "provide.transaction.metadata": "true"}
    start(spark, orders, tmp_path, availableNow=True).awaitTermination(WAIT_S)
    orders.execute("SELECT pg_logical_emit_message(true, 'outbox', 'x')", "DELETE FROM orders WHERE id = 50")
    start(spark, orders, tmp_path, availableNow=True).awaitTermination(WAIT_S)
    rows = spark.read.parquet(str(tmp_path / "out")).groupBy("topic").count().collect()
    found = {row["topic"]: row["count"] for row in rows}
    assert found.pop("__debezium-heartbeat.test") >= 1
    assert found == {"test.public.orders": 102, "test.message": 1, "test.transaction": 4}


def test_once(spark: SparkSession, orders: Source, tmp_path: Path) -> None:
    start(spark, orders, tmp_path, once=True).awaitTermination(WAIT_S)
    assert operations(spark, tmp_path) == {"r": 100}
    orders.execute("INSERT INTO orders VALUES (200, 'x')")
    start(spark, orders, tmp_path, once=True).awaitTermination(WAIT_S)
    start(spark, orders, tmp_path, once=True).awaitTermination(WAIT_S)
    assert operations(spark, tmp_path) == {"r": 100, "c": 1}


@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"once": True}])
def test_always_takes_one_snapshot_a_start(
    spark: SparkSession, orders: Source, tmp_path: Path, trigger: dict[str, bool]
) -> None:
    statement = "snapshot.select.statement.overrides"
    orders.options |= {
        "snapshot.mode": "always",
        statement: "public.orders",
        f"{statement}.public.orders": "SELECT * FROM orders WHERE id > 90",
    }
    start(spark, orders, tmp_path, **trigger).awaitTermination(WAIT_S)
    if trigger == {"once": True}:
        # Once is one micro-batch: the second one ends the snapshot, which is not a new one.
        start(spark, orders, tmp_path, **trigger).awaitTermination(WAIT_S)
    assert operations(spark, tmp_path) == {"r": 10}
    orders.execute("UPDATE orders SET note = 'new' WHERE id = 100")
    start(spark, orders, tmp_path, availableNow=True).awaitTermination(WAIT_S)
    assert operations(spark, tmp_path) == {"r": 20, "u": 1}


def test_progress_tells_phase_snapshot_and_lag(spark: SparkSession, orders: Source, tmp_path: Path) -> None:
    query = start(spark, orders, tmp_path, processingTime="100 milliseconds")
    try:
        wait_until(lambda: any(progress["numInputRows"] for progress in query.recentProgress))
        orders.execute("INSERT INTO orders VALUES (200, 'x')")
        wait_until(lambda: sum(progress["numInputRows"] for progress in query.recentProgress) == 101)
    finally:
        query.stop()
    offsets = [offset_of(p["sources"][0]["endOffset"]) for p in query.recentProgress if p["numInputRows"]]
    assert offsets[0]["snapshot"]["progress"][0]["name"] == "public.orders"
    assert offsets[0]["snapshot"]["progress"][0]["done"] == offsets[0]["snapshot"]["progress"][0]["units"]
    assert offsets[-1]["snapshot"] is None
    if GIVES_START:
        latest = json.loads(query.recentProgress[-1]["sources"][0]["latestOffset"])
        assert {"log", "lag_bytes", "lag_seconds", "phase"} <= set(latest)


def test_typed_rows(spark: SparkSession, orders: Source, tmp_path: Path) -> None:
    orders.options["format"] = "rows"
    start(spark, orders, tmp_path, availableNow=True).awaitTermination(WAIT_S)
    out = spark.read.parquet(str(tmp_path / "out"))
    assert out.schema["after"].dataType.simpleString() == "struct<id:int,note:string>"
    assert out.selectExpr("sum(after.id)").collect()[0][0] == 5050


def test_a_query_of_typed_rows_goes_on_with_an_altered_table(
    spark: SparkSession, orders: Source, tmp_path: Path
) -> None:
    orders.options["format"] = "rows"
    start(spark, orders, tmp_path, availableNow=True).awaitTermination(120)
    query = start(spark, orders, tmp_path, processingTime="0 seconds")
    orders.execute(
        "UPDATE orders SET note = 'before' WHERE id = 1",
        "ALTER TABLE orders ADD more integer DEFAULT 7",
        "DELETE FROM orders",
    )
    with pytest.raises(StreamingQueryException, match=r"SchemaChangeError: The table public\.orders .* 'more'"):
        query.awaitTermination(120)
    orders.execute("INSERT INTO orders VALUES (200, 'x')")
    start(spark, orders, tmp_path, availableNow=True).awaitTermination(120)
    assert operations(spark, tmp_path) == {"r": 100, "u": 1, "d": 100, "c": 1}
    rows = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "out"))
    found = rows.where("op = 'c'").selectExpr("after.more", "key", "unavailable").collect()
    assert [row.asDict() for row in found] == [{"more": 7, "key": ["id"], "unavailable": []}]


def test_events_of_a_key_stay_in_order(spark: SparkSession, orders: Source, tmp_path: Path) -> None:
    orders.options["segment.bytes"] = "65536"
    start(spark, orders, tmp_path, availableNow=True).awaitTermination(WAIT_S)
    orders.execute(*[f"UPDATE orders SET note = '{i}' || repeat('n', 500)" for i in range(10)])
    seen: list[list[tuple[str, str]]] = []

    def collect(batch: DataFrame, number: int) -> None:
        ordered = order_by_key(batch, 4)
        seen.extend(ordered.rdd.glom().map(lambda part: [(row["key"], row["position"]) for row in part]).collect())

    stream = spark.readStream.format("floodmark").options(**orders.options, **ENDING).load()
    query = stream.writeStream.foreachBatch(collect).option("checkpointLocation", str(tmp_path / "cp"))
    start_to_end(query).awaitTermination(WAIT_S)
    owners: dict[str, int] = {}
    for number, part in enumerate(seen):
        for key in {key for key, _ in part}:
            assert owners.setdefault(key, number % 4) == number % 4
            positions = [position for other, position in part if other == key]
            assert positions == sorted(positions)
    assert sum(map(len, seen)) == 1000


def test_a_wrong_option_is_told_before_the_query_starts(spark: SparkSession, orders: Source, tmp_path: Path) -> None:
    orders.options["snapshot.mode"] = "intial"
    with pytest.raises(Exception, match="Did you mean 'initial'") as raised:
        start(spark, orders, tmp_path, availableNow=True)
    assert "Traceback" not in str(raised.value)
