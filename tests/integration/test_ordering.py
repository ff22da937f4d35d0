"""Spark puts what belongs together into the partitions that Floodmark means."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from floodmark.spark.ordering import numbers_of_partitions


@pytest.mark.parametrize("partitions", [1, 2, 3, 8, 50])
def test_numbers_go_to_their_partitions(partitions: int, spark: SparkSession) -> None:
    numbers = numbers_of_partitions(partitions)
    rows = spark.createDataFrame([(number,) for number in numbers], "number int")
    found = rows.repartition(partitions, "number").select("number", F.spark_partition_id().alias("at")).collect()
    assert {row["number"]: row["at"] for row in found} == {number: at for at, number in enumerate(numbers)}
