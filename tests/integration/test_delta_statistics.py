"""Readers skip files by the statistics that Floodmark writes, and no file that has what they look for."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from obstore.store import LocalStore

from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.parts import make_parts
from tests.support.delta_mirror import Mirror
from tests.support.delta_spark import DeltaSpark
from tests.support.readers import duckdb_session
from tests.unit.test_last_changes import schema

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LONG = "x" * 32
TEXTS = ["", "a", LONG, LONG + "a", LONG + "\U0010ffff" * 2, LONG + "\U0010ffffa", "\U0010ffff" * 40, "é" * 40, "z\0"]
MOMENTS = [
    dt.datetime(1, 1, 1),
    dt.datetime(1883, 11, 18, 17, 0, 0, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2026, 1, 1, 0, 0, 0, 500_500),
    dt.datetime(2026, 1, 1, 0, 0, 0, 500_499),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_000),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2026, 1, 1),
    dt.datetime(2026, 1, 1, 0, 0, 0, 1),
]
KIND = pa.struct(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("instant", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
    ]
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a file for each row, and one that has lost its greatest and its least row."""
    path = tmp_path_factory.mktemp("statistics") / "t"
    mirror = Mirror(path, ("id",), **{"compact.files": "0"})
    rows = [
        {"id": number, "text": text, "instant": at.replace(tzinfo=dt.UTC), "local": at, "day": at.date()}
        for number, (text, at) in enumerate(zip(TEXTS, MOMENTS, strict=True))
    ]
    more = [{"id": number, "text": None, "instant": None, "local": None, "day": None} for number in range(-9, 0)]
    batches: list[list[dict[str, Any]]] = [[event("c", row)] for row in rows]
    batches += [[event("c", row) for row in more], [event("d", more[0]), event("d", more[-1])]]
    kinds = [field.with_type(KIND) if field.name in ("before", "after") else field for field in schema(("id",))]
    for number, batch in enumerate(batches):
        told = [{**one, "position": f"{number:04d}-{at:04d}"} for at, one in enumerate(batch)]
        parts = make_parts(DataFiles(LocalStore(str(path)), "db.t"), [pa.Table.from_pylist(told, pa.schema(kinds))])
        assert mirror.writer.write(number, parts)
    return path


def event(op: str, row: dict[str, Any]) -> dict[str, Any]:
    return {"op": op, "key": ["id"], "before": row if op == "d" else None, "after": None if op == "d" else row}


def conditions() -> Iterator[tuple[str, int]]:
    """Yield conditions, each of which one row fulfils, and the row's id."""
    for number, (text, at) in enumerate(zip(TEXTS, MOMENTS, strict=True)):
        if "\0" not in text:
            yield f"text = '{text}'", number
        yield f"instant = TIMESTAMP '{at.isoformat(' ', 'microseconds')}+00:00'", number
        if at.microsecond:
            moment = f"TIMESTAMP '{at.isoformat(' ', 'microseconds')}'"
            yield f"day = DATE '{at.date()}' AND local >= {moment}", number


def answers(reader: str, table: Path, spark: DeltaSpark, query: str) -> list[Any]:
    """Return the first column of what a query finds; ``t`` is the table."""
    if reader == "deltalake":
        found = pa.table(QueryBuilder().register("t", DeltaTable(str(table))).execute(query).read_all())
    elif reader == "polars":
        found = pl.SQLContext(t=pl.scan_delta(str(table))).execute(query, eager=True).to_arrow()
    elif reader == "DuckDB":
        with duckdb_session() as session:
            found = session.execute(query.replace(" t", " delta_scan(?)", 1), [str(table)]).to_arrow_table()
    else:
        found = spark.rows(query.replace(" t", f" delta.`{table}`", 1))
    return [value.as_py() for value in found.columns[0]]


@pytest.mark.parametrize("reader", ["deltalake", "polars", "DuckDB", pytest.param("Spark", marks=pytest.mark.long)])
def test_no_file_is_skipped_that_has_the_row(table: Path, delta_spark: DeltaSpark, reader: str) -> None:
    for condition, number in conditions():
        if reader == "deltalake" and MOMENTS[number].year in (1, 9999) and "TIMESTAMP" in condition:
            # Its SQL counts nanoseconds, in 64 bits.
            continue
        if reader == "polars":
            # Its SQL has no such literals.
            condition = condition.replace("TIMESTAMP ", "").replace("DATE ", "")
        found = answers(reader, table, delta_spark, f"SELECT id FROM t WHERE {condition}")
        assert number in found, condition


@pytest.mark.parametrize("reader", ["deltalake", "polars", "DuckDB", "Spark"])
def test_deleted_rows_are_not_the_least_or_greatest(table: Path, delta_spark: DeltaSpark, reader: str) -> None:
    for query, expected in (
        ("SELECT min(id) FROM t", -8),
        ("SELECT max(id) FROM t WHERE id < 0", -2),
        ("SELECT count(*) FROM t", len(TEXTS) + 7),
        ("SELECT count(text) FROM t", len(TEXTS)),
    ):
        assert answers(reader, table, delta_spark, query) == [expected], query
