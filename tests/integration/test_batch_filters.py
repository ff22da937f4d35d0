"""Filters that the server evaluates for a batch read: it decides as Spark would."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import datasource as sf

from floodmark.connectors.load import load_batch_options
from floodmark.connectors.postgres.batch import table
from floodmark.connectors.postgres.options import PostgresBatchOptions
from floodmark.errors import ConfigError, SourceStateError
from floodmark.spark.batch.filters import condition_of
from tests.conftest import Source
from tests.support.batch import HELD, batch_options, count, fails, load, wait_for

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def options(source: Source) -> dict[str, str]:
    return batch_options(source)


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.unset(PUSHDOWN)


VALUES: dict[str, list[str | None]] = {
    "i": ["-5", "0", "3", "7", None],
    "small": ["-1", "0", "3", "300", None],
    "big": ["-9223372036854775808", "0", "3", "9223372036854775807", None],
    "o": ["0", "3", "4294967295", None],
    "b": ["t", "f", None],
    "r": ["NaN", "Infinity", "-Infinity", "-0", "0", "0.1", "1.5", None],
    "f": ["NaN", "Infinity", "-Infinity", "-0", "0", "0.1", "1.5", None],
    "n": ["NaN", "-1.50", "0", "0.1", "1.5", "99999999.99", None],
    "d": ["infinity", "-infinity", "0001-01-01", "1500-02-28", "2024-02-29", "10000-01-01", None],
    "ts": ["infinity", "-infinity", "0999-01-01", "2024-02-29 12:00:00.000001", "20000-01-01", None],
    "tz": ["infinity", "-infinity", "2024-02-29 12:00:00+00", "2024-02-29 12:00:00.5+05:30", None],
    "t": ["", "a", "A", "b", "ab", "aB ", "é", "e\u0301", "Z", "z", "😀x", "x\\y", "it's", "100%", "a_b", " a", None],
    "vc": ["", "a", "A", "b", "ab", "é", "e\u0301", None],
    "c": ["a", "ab", "b", " ", None],
    "u": ["00000000-0000-0000-0000-00000000000a", "F0000000-0000-0000-0000-000000000000", None],
    "m": ["sad", "glad", None],
    "dom": ["-5", "3", None],
    "x": ["\\x00", "\\xff", None],
}
TYPES = {
    "i": "integer",
    "small": "smallint",
    "big": "bigint",
    "o": "oid",
    "b": "boolean",
    "r": "real",
    "f": "double precision",
    "n": "numeric(10,2)",
    "d": "date",
    "ts": "timestamp",
    "tz": "timestamptz",
    "t": "text",
    "vc": "varchar(20)",
    "c": "char(3)",
    "u": "uuid",
    "m": "mood",
    "dom": "small_number",
    "x": "bytea",
}
UTC = dt.UTC
LITERALS: dict[str, list[tuple[Any, str]]] = {
    "i": [(3, "3"), (-5, "-5")],
    "small": [(300, "300S")],
    "big": [(-(1 << 63), "-9223372036854775808"), (3, "3L")],
    "o": [(-1, "-1L"), (4294967295, "4294967295L")],
    "b": [(True, "true")],
    "r": [(float("nan"), "float('NaN')"), (0.10000000149011612, "float('0.1')"), (0.0, "float('0')")],
    "f": [(float("nan"), "double('NaN')"), (0.1, "0.1D"), (-0.0, "double('-0')"), (float("inf"), "double('Infinity')")],
    "n": [(Decimal("1.5"), "1.5BD"), (Decimal("99999999.99"), "99999999.99BD"), (0, "0BD")],
    "d": [(dt.date(2024, 2, 29), "date'2024-02-29'"), (dt.date(1500, 2, 28), "date'1500-02-28'")],
    "ts": [(dt.datetime(2024, 2, 29, 12, 0, 0, 1), "timestamp_ntz'2024-02-29 12:00:00.000001'")],
    "tz": [(dt.datetime(2024, 2, 29, 6, 30, 0, 500000, UTC), "timestamp'2024-02-29 06:30:00.5 UTC'")],
    "t": [(v, "'{}'".format(v.replace("\\", "\\\\").replace("'", "\\'"))) for v in VALUES["t"] if v is not None],
    "vc": [("a", "'a'"), ("é", "'é'"), ("", "''")],
    "c": [("a", "'a'"), ("a  ", "'a  '")],
    "u": [("f0000000-0000-0000-0000-000000000000", "'f0000000-0000-0000-0000-000000000000'")],
    "m": [("glad", "'glad'")],
    "dom": [(3, "3")],
    "x": [],
}
COMPARISONS: list[tuple[type[Any], str]] = [
    (sf.EqualTo, "{} = {}"),
    (sf.EqualNullSafe, "{} <=> {}"),
    (sf.GreaterThan, "{} > {}"),
    (sf.GreaterThanOrEqual, "{} >= {}"),
    (sf.LessThan, "{} < {}"),
    (sf.LessThanOrEqual, "{} <= {}"),
]
SUBSTRINGS: list[tuple[type[Any], str]] = [
    (sf.StringStartsWith, "startswith({}, {})"),
    (sf.StringEndsWith, "endswith({}, {})"),
    (sf.StringContains, "contains({}, {})"),
]
NOT_DECIDED = {"c", "x"}


def _cases() -> Iterator[tuple[sf.Filter, str]]:
    """Yield filters and what they mean in Spark's SQL."""
    for name, literals in LITERALS.items():
        path = (name,)
        yield sf.IsNull(path), f"{name} IS NULL"
        yield sf.IsNotNull(path), f"{name} IS NOT NULL"
        for value, text in literals:
            for kind, form in COMPARISONS + (SUBSTRINGS if isinstance(value, str) else []):
                yield kind(path, value), form.format(name, text)
        if literals:
            yield sf.In(path, tuple(value for value, _ in literals)), f"{name} IN ({', '.join(t for _, t in literals)})"
            yield sf.In(path, (literals[0][0], None)), f"{name} IN ({literals[0][1]}, NULL)"
            yield sf.EqualNullSafe(path, None), f"{name} <=> NULL"


def test_conditions_agree_with_spark(spark: SparkSession, source: Source, options: dict[str, str]) -> None:
    """What the server decides is what Spark decides on the rows that it is given."""
    longest = max(len(values) for values in VALUES.values())
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    source.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE DOMAIN small_number AS integer",
        f"CREATE TABLE t (id integer, {columns})",
    )
    with psycopg.connect(source.conninfo, autocommit=True) as conn:
        for row in range(longest):
            values = [list(VALUES[name])[row % len(VALUES[name])] for name in TYPES]
            conn.execute(f"INSERT INTO t VALUES (%s{', %s' * len(values)})", [row, *values])
    cases = list(_cases())
    cases += [(sf.Not(given), f"NOT ({meant})") for given, meant in cases]
    parsed = load_batch_options(options)
    assert isinstance(parsed, PostgresBatchOptions)
    translated = table.sql_conditions(parsed, [condition_of(given) for given, _ in cases])
    decided = [(meant, sql) for (_, meant), sql in zip(cases, translated, strict=True) if sql is not None]
    with psycopg.connect(source.conninfo) as conn:
        listed = ", ".join(f"coalesce({sql.sql}, false)" for _, sql in decided)
        server = conn.execute(f"SELECT {listed} FROM t ORDER BY id").fetchall()
    frame = spark.createDataFrame(load(spark, options).orderBy("id").toArrow()).coalesce(1).sortWithinPartitions("id")
    engine = frame.selectExpr(*(f"coalesce({meant}, false) AS c{n}" for n, (meant, _) in enumerate(decided))).collect()
    assert len(server) == len(engine) == longest
    for at, (meant, sql) in enumerate(decided):
        for there, here in zip(server, engine, strict=True):
            if sql.exact:
                assert there[at] == here[at], (meant, sql)
            else:
                assert there[at] or not here[at], (meant, sql)
    left = {given.attribute[0] for (given, _), sql in zip(_cases(), translated, strict=False) if sql is None}  # type: ignore[attr-defined]
    assert left == NOT_DECIDED | {"r", "f", "n", "d", "ts", "tz"}


def test_pushed_filters(spark: SparkSession, source: Source, options: dict[str, str], pushing: None) -> None:
    """Values come from Spark to SQL: a query's filters, on every type, give what Spark gives by itself."""
    source.execute(
        "CREATE TABLE t (id integer, n numeric(10,2), f double precision, r real, d date, ts timestamp, tz timestamptz,"
        " t text, b boolean)",
        "INSERT INTO t SELECT i, i / 4.0, i / 8.0, i / 8.0, '2024-01-01'::date + i, '2024-01-01'::timestamp + i * "
        "'1 hour'::interval, '2024-01-01 00:00+02'::timestamptz + i * '1 minute'::interval, 'it''s ' || i, i % 2 = 0 "
        "FROM generate_series(1, 2000) i",
        "INSERT INTO t VALUES (NULL)",
    )
    where = (
        "id > 10 AND id IN (11, 12, 13, 14, 17, 20, 1000) AND n >= 2.75 AND f < 100.5D AND r <= float('100.5') "
        "AND d > date'2024-01-05' AND ts < timestamp_ntz'2024-03-01 00:00:00' "
        "AND tz > timestamp'2023-12-31 22:11:00 UTC' AND t LIKE 'it\\'s %' "
        "AND b IS NOT NULL AND NOT (id = 17) AND b = true"
    )
    own = load(spark, options).filter(where)
    pushed = load(spark, {**options, "batch.filter.pushdown": "true"}).filter(where)
    assert sorted(own.collect()) == sorted(pushed.collect())
    assert [row.id for row in pushed.collect()] == [12, 14, 20]
    plan = load(spark, {**options, "batch.filter.pushdown": "true"}).filter("id > 10 AND t >= 'a' AND n > 3")
    explained = plan._jdf.queryExecution().executedPlan().toString()
    assert "id#" in explained
    condition = next(line for line in explained.splitlines() if "Filter" in line)
    assert "n#" in condition
    assert "id#" not in condition
    assert "t#" not in condition


def test_push_down_needs_sparks_switch(spark: SparkSession, source: Source, options: dict[str, str]) -> None:
    source.execute("CREATE TABLE t (id integer)", "INSERT INTO t VALUES (1)")
    frame = load(spark, {**options, "batch.filter.pushdown": "true"})
    with pytest.raises(Exception, match=PUSHDOWN.replace(".", r"\.")):
        frame.collect()


def test_queries_that_are_planned_anew_share_the_snapshot(
    spark: SparkSession, source: Source, options: dict[str, str], pushing: None
) -> None:
    source.execute("CREATE TABLE t (id integer)", "INSERT INTO t SELECT generate_series(1, 10)")
    frame = load(spark, {**options, "batch.snapshot.idle.ms": "600000"})
    for low in range(4):
        assert frame.filter(f"id > {low}").count() == 10 - low
        source.execute("DELETE FROM t WHERE id = (SELECT max(id) FROM t)")
    assert frame.count() == 10
    assert frame.filter("id = 1").union(frame.filter("id = 2")).orderBy("id").collect() == [(1,), (2,)]
    # The connections of the readers close a little later than Spark has their rows.
    wait_for(lambda: count(source, HELD) == 1, "more than one snapshot is held")


def test_a_table_that_is_truncated_between_two_queries(
    spark: SparkSession, source: Source, options: dict[str, str], pushing: None
) -> None:
    """The snapshot of the first query sees an empty table then, which it wasn't."""
    source.execute(
        "CREATE TABLE t (id integer) PARTITION BY LIST (id)",
        "CREATE TABLE one PARTITION OF t FOR VALUES IN (1)",
        "CREATE TABLE two PARTITION OF t FOR VALUES IN (2)",
        "INSERT INTO t VALUES (1), (2)",
    )
    frame = load(spark, {**options, "table.include.list": r"public\.t"})
    assert frame.filter("id > 0").count() == 2
    source.execute("TRUNCATE one")
    fails(frame.filter("id > 1").count, SourceStateError, "public.one", "truncated", "Load the DataFrame again")
    assert load(spark, {**options, "table.include.list": r"public\.t"}).count() == 1


def test_two_filters_on_one_pushing_dataframe(
    spark: SparkSession, source: Source, options: dict[str, str], pushing: None
) -> None:
    """Spark 4.3.0 keeps one plan for all scans of a DataFrame: both would read what the last one pushed."""
    source.execute("CREATE TABLE t (id integer)", "INSERT INTO t SELECT generate_series(1, 10)")
    frame = load(spark, {**options, "batch.filter.pushdown": "true"})
    assert frame.filter("id = 1").collect() == [(1,)]
    assert frame.filter("id = 1").count() == 1
    fails(frame.filter("id = 1").union(frame.filter("id = 2")).collect, ConfigError, "two different filters")
