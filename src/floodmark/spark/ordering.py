"""Orders events: all events of a key in one task, sorted by position."""

from __future__ import annotations

from functools import lru_cache
from itertools import count

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


@lru_cache(maxsize=8)
def numbers_of_partitions(partitions: int) -> tuple[int, ...]:
    """Return, for each partition of a ``repartition`` by a column of integers, a number that Spark puts into it.

    Args:
        partitions: how many there are.
    """
    found: dict[int, int] = {}
    for number in count():
        found.setdefault(_murmur3(number) % partitions, number)
        if len(found) == partitions:
            break
    return tuple(found[partition] for partition in range(partitions))


_BITS = 0xFFFFFFFF
_SPARKS_SEED = 42


def _murmur3(number: int) -> int:
    """Return a number's hash as Spark has it, with its sign: MurmurHash3, x86, 32 bits, of 4 bytes.

    The function is described at https://github.com/aappleby/smhasher.
    """
    part = _rotated(number * 0xCC9E2D51 & _BITS, 15) * 0x1B873593 & _BITS
    state = (_rotated(_SPARKS_SEED ^ part, 13) * 5 + 0xE6546B64) & _BITS
    state ^= 4
    state = (state ^ state >> 16) * 0x85EBCA6B & _BITS
    state = (state ^ state >> 13) * 0xC2B2AE35 & _BITS
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> (32 - bits)) & _BITS
