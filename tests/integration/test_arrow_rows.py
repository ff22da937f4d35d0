"""``format=arrow``: rows of any tables as Arrow data, also of tables that are new or altered while the query runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from floodmark.changes.arrow_tables import unpacked
from tests.chaos.conftest import place
from tests.support.available_now import ENDING, start_to_end
from tests.support.databases import Database
from tests.support.patience import within

__all__ = ["place"]


@pytest.mark.slow
def test_rows_have_the_columns_of_their_time(
    spark: SparkSession, place: tuple[Database, dict[str, str]], tmp_path: Path
) -> None:
    database, options = place
    wanted = {**options, "format": "arrow", "skipped.operations": "none", **ENDING}
    told: list[tuple[str, dict[str, Any]]] = []

    def keep(batch: DataFrame, number: int) -> None:
        for table, count, rows in batch.collect():
            found = unpacked(bytes(rows)).to_pylist()
            assert len(found) == count
            told.extend((table, row) for row in found)

    def run(*statements: str) -> list[tuple[str, dict[str, Any]]]:
        told.clear()
        with database.session() as session:
            for statement in statements:
                session.execute(statement)
            session.commit()
        stream = spark.readStream.format("floodmark").options(**wanted).load()
        assert stream.columns == ["table", "count", "rows"]
        writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
        start_to_end(writer, None).awaitTermination(int(within(120)))
        return sorted(told, key=lambda one: str(one[1]["position"]))

    schema = database.schema
    first = run("CREATE TABLE a (id integer PRIMARY KEY, v varchar(9))", "INSERT INTO a VALUES (1, 'one')")
    assert [(table, row["op"], row["after"]) for table, row in first] == [(f"{schema}.a", "r", {"id": 1, "v": "one"})]
    second = run(
        "INSERT INTO a VALUES (2, 'two')",
        "ALTER TABLE a ADD n integer",
        "UPDATE a SET n = 5 WHERE id = 1",
        "CREATE TABLE b (id integer PRIMARY KEY)",
        "DELETE FROM a WHERE id = 2",
        "INSERT INTO b VALUES (1)",
    )
    assert [row["unavailable"] for _, row in second if row["op"] == "u"] == [[] if schema == "public" else ["v"]]
    shown = [(table, row["op"], row["key"], row["after"]) for table, row in second if table == f"{schema}.a"]
    assert shown == [
        (f"{schema}.a", "c", ["id"], {"id": 2, "v": "two"}),
        # MySQL's log has only what was set.
        (f"{schema}.a", "u", ["id"], {"id": 1, "v": "one" if schema == "public" else None, "n": 5}),
        (f"{schema}.a", "d", ["id"], None),
    ]
    assert [row["after"] for table, row in second if table == f"{schema}.b"] == [{"id": 1}]
