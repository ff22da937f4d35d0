"""The helper that reduces micro-batches of typed rows for a MERGE."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.spark.merging import merged_rows
from tests.conftest import drop, make_source
from tests.integration.test_typed_rows import rows_of
from tests.integration.test_typed_rows_converge import COLUMNS, Work
from tests.support.merging import Target, merge

KEY = ["part", "id"]


def as_merge_does(target: Target, rows: list[dict[str, Any]]) -> Target:
    """Apply reduced rows, as the documentation's MERGE does."""
    result = dict(target)
    for row in rows:
        at = tuple(row[name] for name in KEY)
        if at in result and row["_position"] <= result[at]["_position"]:
            continue
        if row.pop("_deleted"):
            result.pop(at, None)
        else:
            result[at] = row
    return result


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_reduced_rows_make_the_same_target(
    spark: SparkSession, pg18: EmbeddedPostgres, tmp_path: Any, identity: str
) -> None:
    source = make_source(pg18, tmp_path / "state")
    source.execute(
        "CREATE TABLE t (id integer, part integer, v integer, note text, big text, PRIMARY KEY (part, id))",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        f"ALTER TABLE t REPLICA IDENTITY {identity}",
    )
    query = rows_of(source, skipped_operations="none")
    schema = query.schema
    target: Target = {}
    expected: Target = {}
    with source.database.session() as session:
        work = Work(session, 7)
        for step in range(4):
            work.run(COLUMNS[0])
            if step == 2:
                work.truncate()
                work.run(COLUMNS[0])
            batch = query.drain()
            merge(expected, batch)
            if any(row["op"] == "t" for row in batch):
                target = {}
            events = spark.createDataFrame(pa.Table.from_pylist(batch, schema=schema))
            for _ in range(2):
                # A micro-batch that is delivered again changes nothing.
                held = pa.Table.from_pylist(list(target.values()), schema=_held(schema))
                rows = merged_rows(events, KEY, spark.createDataFrame(held)).collect()
                assert len({(row.part, row.id) for row in rows}) == len(rows)
                target = as_merge_does(target, [row.asDict() for row in rows])
                bare = {at: {n: v for n, v in row.items() if n != "_position"} for at, row in target.items()}
                assert bare == expected
    query.stop()
    drop(source)


def _held(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*schema.field("after").type, ("_position", pa.string())])


SCHEMA = """op string, position string, key array<string>, unavailable array<string>,
    before struct<id: int, at: timestamp, tags: array<string>, price: decimal(10, 2)>,
    after struct<id: int, at: timestamp, tags: array<string>, price: decimal(10, 2)>"""
# Twice that night in Berlin.
NIGHT = [datetime(2024, 10, 27, hour, 30, tzinfo=UTC) for hour in (0, 1)]
PRICE = Decimal("1.50")


def row(op: str, position: str, before: int | None, after: Any, *unavailable: str) -> tuple[Any, ...]:
    old = None if before is None else (before, None, None, None)
    return (op, position, ["id"], list(unavailable), old, after)


def test_what_becomes_of_single_rows(spark: SparkSession) -> None:
    target = [
        (1, NIGHT[0], ["one"], PRICE, "00"),
        (2, NIGHT[1], ["two"], PRICE, "00"),
        (3, NIGHT[0], ["three"], PRICE, "00"),
        (4, NIGHT[1], ["four"], PRICE, "00"),
    ]
    batch = [
        # An insert leaves a default to the server: it isn't that of the row that was there before.
        row("d", "10", 1, None, "at"),
        row("c", "11", None, (1, None, ["new"], PRICE), "at"),
        # A change, then one of the key, twice; what no change says is the target's.
        row("u", "20", None, (2, None, ["changed"], None), "at", "price"),
        row("d", "21-00", 2, None),
        row("c", "21-02", 2, (12, None, None, Decimal("7.00")), "at", "tags"),
        row("d", "22-00", 12, None),
        row("c", "22-02", 12, (22, None, None, None), "at", "tags", "price"),
        # Its key is used again, by a row that comes from elsewhere with all that it has.
        row("c", "23", None, (2, NIGHT[0], None, None)),
        row("u", "30", None, (3, None, None, PRICE), "at"),
        row("r", "40", None, (4, NIGHT[0], None, None), "tags"),
        row("c", "50", None, (5, NIGHT[1], [], PRICE)),
        row("d", "51", 5, None),
    ]
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        events = spark.createDataFrame(batch, SCHEMA)
        row_type = "id int, at timestamp, tags array<string>, price decimal(10, 2), _position string"
        rows = merged_rows(events, ["id"], spark.createDataFrame(target, row_type)).withColumn(
            "at", F.unix_seconds("at")
        )
        alone = merged_rows(events, ["id"]).where("id IN (3, 22)").withColumn("at", F.unix_seconds("at"))
        first, second = (int(at.timestamp()) for at in NIGHT)
        assert sorted(map(tuple, rows.collect())) == [
            (1, None, ["new"], PRICE, "11", False),
            (2, first, None, None, "23", False),
            (3, first, None, PRICE, "30", False),
            (4, first, ["four"], None, "40", False),
            (5, None, None, None, "51", True),
            (12, None, None, None, "22-00", True),
            (22, second, ["changed"], Decimal("7.00"), "22-02", False),
        ]
        assert sorted(map(tuple, alone.collect())) == [
            (3, None, None, PRICE, "30", False),
            (22, None, ["changed"], Decimal("7.00"), "22-02", False),
        ]
        emptied = events.union(spark.createDataFrame([row("t", "35", None, None)], SCHEMA))
        assert sorted(one.id for one in merged_rows(emptied, ["id"]).collect()) == [4, 5]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
