"""The helper that reduces micro-batches of typed rows for a MERGE."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from floodmark.embedded import EmbeddedPostgres
from floodmark.spark.merging import merged_rows
from tests.conftest import drop_slots, make_source
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
    schema = query.reader._schema
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
    drop_slots(source)


def _held(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*schema.field("after").type, ("_position", pa.string())])
