"""Batch reads in tests: loading, and expecting errors."""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession

from floodmark.errors import FloodmarkError
from floodmark.spark.failures import floodmark_error
from tests.conftest import Source
from tests.support.patience import within

HELD = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'floodmark' AND datname = current_database()"
"""How many connections of Floodmark's a database has."""

WAIT_S = within(60.0)


def batch_options(source: Source) -> dict[str, str]:
    """Return a source's options without a stream's; small chunks, and a snapshot that is not held for long."""
    kept = {name: value for name, value in source.options.items() if name not in ("topic.prefix", "state.dir")}
    return {**kept, "snapshot.chunk.bytes": str(64 << 10), "batch.snapshot.idle.ms": "30000"}


def load(spark: SparkSession, options: dict[str, str], schema: str = "") -> DataFrame:
    """Return the DataFrame of a batch read."""
    reader = spark.read.format("floodmark").options(**options)
    return (reader.schema(schema) if schema else reader).load()


def fails(action: Callable[[], object], error: type[FloodmarkError], *words: str) -> None:
    """Expect one error that has all the words, in what Spark raises."""
    with pytest.raises(Exception) as raised:
        action()
    found = floodmark_error(raised.value)
    assert type(found) is error, raised.value
    for word in words:
        assert word in str(found)


def count(source: Source, query: str) -> int:
    """Return the number that a query returns."""
    with psycopg.connect(source.conninfo) as conn:
        row = conn.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds; fail if it takes too long."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)
