"""``spark.read.format("floodmark")``: one table, one snapshot, the server's own columns."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import threading
from decimal import Decimal
from functools import partial

import psutil
import psycopg
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.version import __version__ as spark_version

from floodmark.connectors.load import load_batch_options
from floodmark.connectors.postgres.batch import table
from floodmark.connectors.postgres.options import PostgresBatchOptions
from floodmark.errors import ConfigError, SourceStateError
from floodmark.spark.versions import minor_version
from tests.conftest import Source
from tests.support.batch import HELD, batch_options, count, fails, load, wait_for


@pytest.fixture
def options(source: Source) -> dict[str, str]:
    return batch_options(source)


class Transfers:
    """Moves money between accounts, and rows between pages, until it is stopped; the sum stays the same."""

    def __init__(self, conninfo: str, accounts: int) -> None:
        self._conninfo = conninfo
        self._accounts = accounts
        self._over = threading.Event()
        self.done = 0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Transfers:
        self._thread.start()
        wait_for(lambda: self.done > 0, "the writer did not begin")
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._conninfo, autocommit=True) as conn:
            while not self._over.is_set():
                first, second = self.done * 7919 % self._accounts, self.done * 104729 % self._accounts
                with conn.transaction():
                    conn.execute("UPDATE accounts SET balance = balance - 5 WHERE id = %s", [first])
                    conn.execute("UPDATE accounts SET balance = balance + 5 WHERE id = %s", [second])
                    conn.execute(
                        "WITH gone AS (DELETE FROM accounts WHERE id = %s RETURNING *) "
                        "INSERT INTO accounts SELECT * FROM gone RETURNING id",
                        [-1 - self.done % 50],
                    )
                self.done += 1
                # Slow enough that the held snapshot, which keeps old rows, doesn't let the table grow without end.
                self._over.wait(0.005)


def test_consistent_while_the_table_is_written(spark: SparkSession, source: Source, options: dict[str, str]) -> None:
    source.execute(
        "CREATE TABLE accounts (id integer PRIMARY KEY, balance bigint NOT NULL, filler text)",
        "INSERT INTO accounts SELECT i, 100, repeat('x', 300) FROM generate_series(-50, 1999) i",
    )
    with Transfers(source.conninfo, 2000) as writer:
        for _ in range(2):
            before = writer.done
            frame = load(spark, options)
            assert frame.rdd.getNumPartitions() >= 8
            for _ in range(2):
                found = frame.selectExpr("sum(balance)", "count(*)", "count(DISTINCT id)").first()
                assert tuple(found or ()) == (205_000, 2050, 2050)
            assert writer.done > before


def test_a_dataframe_is_one_snapshot(spark: SparkSession, source: Source, options: dict[str, str]) -> None:
    source.execute("CREATE TABLE t (id integer)", "INSERT INTO t SELECT generate_series(1, 100)")
    frame = load(spark, options)
    assert frame.count() == 100
    source.execute("DELETE FROM t WHERE id <= 10", "INSERT INTO t VALUES (1000)")
    assert frame.agg({"id": "max"}).collect() == [(100,)]
    assert frame.union(frame).count() == 200
    assert load(spark, options).count() == 91


def test_columns_and_values(spark: SparkSession, source: Source, options: dict[str, str]) -> None:
    source.execute(
        'CREATE SCHEMA "My Shop"',
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        'CREATE TABLE "My Shop"."Order Items" ("Id" bigint, "no""te" text, amount numeric(12,3), day date, '
        "at timestamptz, plain timestamp, ok boolean, ratio double precision, how mood, fixed char(5), data bytea, "
        "tags text[], gone integer)",
        'ALTER TABLE "My Shop"."Order Items" DROP COLUMN gone',
        'INSERT INTO "My Shop"."Order Items" VALUES '
        "(1, E'tab\\tnewline\\nback\\\\slash \\'quoted\\' äöü', 1234.5, '2024-02-29', '2024-02-29 12:00:00.123456+02', "
        "'2024-02-29 12:00', true, 'NaN', 'glad', 'ab', '\\x0001ff', '{a,b}')",
        'INSERT INTO "My Shop"."Order Items" DEFAULT VALUES',
    )
    options["table.include.list"] = "My Shop\\.Order Items"
    frame = load(spark, options)
    rows = spark.readStream.format("floodmark").options(
        **{**source.options, "table.include.list": "My Shop\\.Order Items", "format": "rows"}
    )
    assert frame.schema == rows.load().schema["after"].dataType
    first, second = sorted(frame.collect(), key=lambda row: row["Id"] is None)
    values = first.asDict()
    assert values.pop("ratio") != values.get("ratio", 0.0)
    assert values == {
        "Id": 1,
        'no"te': "tab\tnewline\nback\\slash 'quoted' äöü",
        "amount": Decimal("1234.500"),
        "day": dt.date(2024, 2, 29),
        "at": dt.datetime(2024, 2, 29, 10, 0, 0, 123456),
        "plain": dt.datetime(2024, 2, 29, 12, 0),
        "ok": True,
        "how": "glad",
        "fixed": "ab   ",
        "data": bytearray(b"\x00\x01\xff"),
        "tags": ["a", "b"],
    }
    assert set(second) == {None}


def test_an_empty_table(spark: SparkSession, source: Source, options: dict[str, str]) -> None:
    source.execute("CREATE TABLE t (id integer, v text)")
    frame = load(spark, options)
    assert frame.columns == ["id", "v"]
    assert frame.collect() == []


def test_a_partitioned_table(spark: SparkSession, source: Source, options: dict[str, str]) -> None:
    source.execute(
        "CREATE TABLE events (id integer, day date, v text) PARTITION BY RANGE (day)",
        "CREATE TABLE events_2023 PARTITION OF events FOR VALUES FROM ('2023-01-01') TO ('2024-01-01') "
        "PARTITION BY HASH (id)",
        "CREATE TABLE events_2023_0 PARTITION OF events_2023 FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
        "CREATE TABLE events_2023_1 PARTITION OF events_2023 FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
        "CREATE TABLE events_2024 (v text, gone integer, day date, id integer)",
        "ALTER TABLE events_2024 DROP COLUMN gone",
        "ALTER TABLE events ATTACH PARTITION events_2024 FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')",
        "INSERT INTO events SELECT i, '2023-01-01'::date + i, 'v' || i FROM generate_series(0, 700) i",
    )
    for pattern, expected in (("public.events", 701), ("public.events.*", 701), ("public.events_2024", 336)):
        found = load(spark, {**options, "table.include.list": pattern}).select("id", "day", "v").collect()
        assert len(found) == expected
        assert all(row.v == f"v{row.id}" and row.day == dt.date(2023, 1, 1) + dt.timedelta(row.id) for row in found)


def test_the_given_schema_chooses_columns(spark: SparkSession, source: Source, options: dict[str, str]) -> None:
    source.execute(
        "CREATE TABLE t (id integer, other text, v text)", "INSERT INTO t VALUES (1, 's', 'a'), (2, 's', 'b')"
    )
    assert sorted(load(spark, options, "v string, id int").collect()) == [("a", 1), ("b", 2)]
    parsed = load_batch_options(options)
    assert isinstance(parsed, PostgresBatchOptions)
    schema = table.table_schema(parsed)
    (chunk,) = table.plan(parsed, source.dbname, schema.remove(1), [])
    assert [column.name for column in chunk.table.structure.columns] == ["id", "v"]
    fails(load(spark, options, "w string").collect, ConfigError, "'w'", "id, other, v")
    fails(load(spark, options, "id string").collect, ConfigError, "'id' as string", "int32")


def has_rows(frame: DataFrame, rows: int) -> bool:
    """Return whether a DataFrame has so many rows; not while the process that held its snapshot is still ending."""
    try:
        return frame.count() == rows
    except AnalysisException:
        return False


def test_nothing_is_left_at_the_server(spark: SparkSession, source: Source, options: dict[str, str]) -> None:
    source.execute(
        "CREATE TABLE t (id integer, v text)",
        "INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(1, 50000) i",
        f"CREATE ROLE reader_{source.dbname} LOGIN",
        f"GRANT SELECT ON t TO reader_{source.dbname}",
    )
    options.update({"database.user": f"reader_{source.dbname}", "snapshot.chunk.bytes": str(4 << 20)})
    frame = load(spark, {**options, "batch.snapshot.idle.ms": "12000"})
    assert len(frame.limit(3).collect()) == 3
    wait_for(lambda: count(source, HELD) <= 1, "a reader's connection is left")
    assert count(source, "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()") == 0
    assert count(source, "SELECT count(*) FROM pg_publication") == 0
    wait_for(lambda: count(source, HELD) == 0, "the snapshot is held for ever")
    if minor_version(spark_version) >= (4, 1):
        lost = ("snapshot of public.t", "batch.snapshot.idle.ms", "Load the DataFrame again")
        fails(frame.count, SourceStateError, *lost)
    else:
        wait_for(partial(has_rows, frame, 50_000), "Spark 4.0, which plans each query anew, takes no new snapshot")


DRIVER = """
import json, sys, time
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = session.read.format("floodmark").options(**json.loads(sys.argv[1])).load()
frame._jdf.queryExecution().executedPlan().execute().getNumPartitions()
print("planned", flush=True)
if sys.argv[2] == "stay":
    time.sleep(600)
"""


@pytest.mark.parametrize("end", ["leave", "stay"])
def test_the_snapshot_ends_with_the_driver(source: Source, options: dict[str, str], end: str) -> None:
    """Planned but never run: the driver ends, or it and its JVM are killed."""
    source.execute("CREATE TABLE t (id integer)", "INSERT INTO t VALUES (1)")
    given = json.dumps({**options, "batch.snapshot.idle.ms": "3600000"})
    with subprocess.Popen([sys.executable, "-c", DRIVER, given, end], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "planned\n"
        assert count(source, HELD) == 1 or end == "leave"
        if end == "stay":
            for victim in [*psutil.Process(driver.pid).children(), psutil.Process(driver.pid)]:
                victim.kill()
    wait_for(lambda: count(source, HELD) == 0, "the snapshot is held without a driver")


def test_where(spark: SparkSession, source: Source, options: dict[str, str]) -> None:
    source.execute(
        "CREATE TABLE t (id integer, v text)", "INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 5000) i"
    )

    def ids(where: str) -> list[int]:
        return sorted(row.id for row in load(spark, {**options, "batch.where": where}).collect())

    assert ids("id % 1000 = 0 OR v = 'v7'") == [7, 1000, 2000, 3000, 4000, 5000]
    assert ids("id = 7 -- not eight") == [7]
    fails(lambda: ids("id = 7) OR (id = 8"), SourceStateError, "batch.where", "syntax error")
    fails(lambda: ids("idd = 7"), SourceStateError, "batch.where", "idd")


def test_wrong_options_and_tables(spark: SparkSession, source: Source, options: dict[str, str]) -> None:
    fails(lambda: load(spark, options), ConfigError, "exactly one table", "(none)")
    source.execute("CREATE TABLE a (id integer)", "CREATE TABLE b (id integer)")
    fails(lambda: load(spark, options), ConfigError, "exactly one table", "public.a, public.b", "table.include.list")
    one = {**options, "table.include.list": "public.a"}
    fails(lambda: load(spark, {**options, "table.include.list": "public.c"}), ConfigError, "match 0")
    fails(lambda: load(spark, {**one, "batch.were": "x"}), ConfigError, "batch.were", "batch.where")
    fails(
        lambda: load(spark, {**one, "batch.snapshot.idle.ms": "no"}),
        ConfigError,
        "batch.snapshot.idle.ms",
        "whole number",
    )
    source.execute("CREATE TABLE bare ()")
    fails(load(spark, {**options, "table.include.list": "public.bare"}).collect, ConfigError, "no columns")
    stream = {**source.options, "table.include.list": "public.a"}
    fails(load(spark, stream).collect, ConfigError, "topic.prefix", "spark.readStream")


def test_a_table_that_changes_under_a_dataframe(spark: SparkSession, source: Source, options: dict[str, str]) -> None:
    source.execute("CREATE TABLE t (id integer, v text)", "INSERT INTO t VALUES (1, 'a')")
    stale = load(spark, options)
    source.execute("ALTER TABLE t ALTER COLUMN id TYPE bigint")
    fails(stale.collect, ConfigError, "'id'", "int64", "Load the DataFrame again")
    frame = load(spark, options)
    assert frame.count() == 1
    source.execute("TRUNCATE t")
    fails(frame.count, SourceStateError, "public.t", "truncated", "Load the DataFrame again")
