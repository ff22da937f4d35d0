"""Orders events: all events of a key in one task, sorted by position."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812


def order_by_key(events: DataFrame, partitions: int | None = None) -> DataFrame:
    """Return a micro-batch with all events of a key in one partition, sorted by position.

    A sink that writes each partition row by row then keeps each key's order. Events without a key
    (tables without one, truncates) are grouped by topic. Use it on a micro-batch, inside ``foreachBatch``, or
    on the stream itself with ``spark.sql.streaming.unsupportedOperationCheck=false``: a sort within
    partitions needs nothing beyond its micro-batch, but Spark's check refuses every sort.

    Args:
        events: a DataFrame with the columns ``topic``, ``key`` and ``position``.
        partitions: how many partitions; Spark's ``spark.sql.shuffle.partitions`` if not given.
    """
    return partition_by_key(events, partitions).sortWithinPartitions("position")


def partition_by_key(events: DataFrame, partitions: int | None = None) -> DataFrame:
    """Return a micro-batch with all events of a key in one partition; see ``order_by_key``."""
    owner = F.coalesce(F.col("key"), F.lit(""))
    if partitions is None:
        return events.repartition(F.col("topic"), owner)
    return events.repartition(partitions, F.col("topic"), owner)
