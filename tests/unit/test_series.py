"""Partitions that one task reads in the log's order, while those behind are read in other threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition

from floodmark.changes.event_blocks import IN_SERIES, in_order
from floodmark.connectors.load import load_options
from floodmark.errors import LogGoneError
from floodmark.events.columns import EVENT_SCHEMA
from floodmark.spark.stream import readers
from floodmark.spark.stream.partitions import AnnouncementPartition, SeriesPartition

GIVEN = {
    "connector": "postgres",
    "database.hostname": "h",
    "database.user": "u",
    "database.password": "p",
    "database.dbname": "d",
    "topic.prefix": "t",
    "state.dir": "/tmp/unused",
}


def announced(number: int, rows: int = 3) -> AnnouncementPartition:
    return AnnouncementPartition(
        [{"topic": "t", "op": "m", "position": f"{number:04}-{row:02}", "value": f"{number}"} for row in range(rows)]
    )


def blocks(partitions: list[InputPartition], **options: str) -> Iterator[pa.RecordBatch]:
    given = {**GIVEN, **{name.replace("_", "."): value for name, value in options.items()}}
    return readers.read_partition(load_options(given), EVENT_SCHEMA, SeriesPartition(partitions))


@pytest.mark.parametrize("parts", ["1", "2", "7"])
def test_blocks_are_in_the_order_of_their_partitions(parts: str) -> None:
    made = [row for batch in blocks([announced(n) for n in range(20)], event_blocks=parts) for row in batch.to_pylist()]
    assert {row["part"] for row in made} == {IN_SERIES}
    found = in_order((row["first"], row["last"], pa.py_buffer(row["events"])) for row in made)
    positions = [one for table in found for one in table["position"].to_pylist()]
    assert positions == [f"{number:04}-{row:02}" for number in range(20) for row in range(3)]


@pytest.mark.parametrize(("given", "threads"), [({}, 2), ({"converters": "mine", "mine.type": "geometry"}, 1)])
def test_few_are_read_ahead(given: dict[str, str], threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the sink is; and an error comes after the blocks before it."""
    begun: list[int] = []
    both = threading.Barrier(threads)
    read = readers._read_partition

    def reading(options: Any, schema: pa.Schema, partition: AnnouncementPartition) -> Iterator[pa.RecordBatch]:
        number = int(partition.rows[0]["value"])
        begun.append(number)
        if number < threads:
            both.wait(30)
        if number == 5:
            raise LogGoneError("gone", "cure")
        return read(options, schema, partition)

    monkeypatch.setattr(readers, "_read_partition", reading)
    made = blocks([announced(n) for n in range(10)], event_blocks="2", **given)
    for number in range(5):
        (row,) = next(made).to_pylist()
        assert row["first"] == f"{number:04}-00"
        assert max(begun) <= number + threads
    with pytest.raises(LogGoneError):
        next(made)
