"""The reader of Spark 4.0 and 4.1, called as these versions call it, whatever the version that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.load import load_options
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import CheckpointError
from floodmark.spark.stream.older_reader import OlderStreamReader
from floodmark.spark.stream.readers import output_schema
from floodmark.spark.versions import GIVES_START
from tests.conftest import Source, drop, make_source
from tests.support.inprocess import InProcess

ROWS = 100


@pytest.fixture
def source(pg18: EmbeddedPostgres, tmp_path: Path) -> Iterator[Source]:
    made = make_source(pg18, tmp_path / "state")
    made.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, v integer)",
        f"INSERT INTO t SELECT g, 0 FROM generate_series(1, {ROWS}) g",
    )
    yield made
    drop(made)


class Calls:
    """Spark's calls of a reader, and what it delivered."""

    def __init__(self, source: Source, **options: str) -> None:
        self.options = {**source.options, **{name.replace("_", "."): value for name, value in options.items()}}
        self.ops: list[str] = []
        self.start()

    def start(self) -> None:
        """Start another process."""
        self.reader = OlderStreamReader(self.options, output_schema(load_options(self.options)))

    def next(self) -> dict[str, Any]:
        return self.reader.latestOffset()

    def first(self) -> dict[str, Any]:
        """Plan and deliver the first micro-batch; return where it ends."""
        end = self.next()
        self.deliver(self.reader.initialOffset(), end)
        return end

    def deliver(self, start: dict[str, Any], end: dict[str, Any]) -> None:
        for partition in self.reader.partitions(start, end):
            for batch in self.reader.read(partition):
                self.ops += batch.column("op").to_pylist()


def test_a_first_start_and_what_follows(source: Source) -> None:
    calls = Calls(source)
    one = calls.first()
    two = calls.next()
    calls.reader.commit(one)
    calls.deliver(one, two)
    assert calls.ops == ["r"] * ROWS
    source.execute("INSERT INTO t VALUES (1000, 1)")
    start = two
    while "c" not in calls.ops:
        end = calls.next()
        calls.deliver(start, end)
        start = end
    assert calls.ops == [*["r"] * ROWS, "c"]
    calls.reader.stop()


def test_a_restart_goes_on_where_the_last_plan_ended(source: Source) -> None:
    calls = Calls(source)
    one = calls.first()
    calls.reader.stop()
    source.execute("INSERT INTO t VALUES (1000, 1)")
    calls.start()
    assert calls.reader.partitions(one, one) == []
    two = calls.next()
    assert two["after"] == one["batch"]
    calls.reader.commit(one)
    calls.deliver(one, two)
    calls.reader.stop()
    assert calls.ops[:ROWS] == ["r"] * ROWS


@pytest.mark.parametrize("state_is_lost", [False, True])
def test_a_micro_batch_that_was_planned_and_not_delivered(source: Source, tmp_path: Path, state_is_lost: bool) -> None:
    calls = Calls(source)
    one = calls.first()
    source.execute("INSERT INTO t VALUES (1000, 1)")
    places = [one]
    while places[-1]["snapshot"] is not None or len(calls.ops) == ROWS:
        places.append(calls.next())
        calls.deliver(places[-2], places[-1])
    before, end = places[-2:]
    calls.reader.stop()
    if state_is_lost:
        calls.options["state.dir"] = str(tmp_path / "other")
    calls.start()
    calls.reader.partitions(end, end)
    calls.deliver(before, end)
    assert calls.ops == [*["r"] * ROWS, "c", "c"]
    calls.next()
    calls.reader.stop()


def test_a_micro_batch_that_begins_elsewhere_is_refused(source: Source) -> None:
    calls = Calls(source)
    calls.first()
    source.execute("INSERT INTO t VALUES (1000, 1)")
    two = calls.next()
    with pytest.raises(CheckpointError, match=r"does not begin where it was planned to begin.*Start the query again"):
        calls.deliver(calls.reader.initialOffset(), two)
    calls.reader.stop()


def test_a_restart_that_is_not_told_of_is_refused(source: Source) -> None:
    # An engine that left out the first call would plan another snapshot as the next micro-batch.
    calls = Calls(source)
    one = calls.first()
    calls.reader.stop()
    source.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
    )
    calls.start()
    two = calls.next()
    with pytest.raises(CheckpointError, match="does not begin where it was planned"):
        calls.deliver(one, two)
    calls.reader.stop()


def test_it_ends_where_the_log_ended_at_the_start(source: Source) -> None:
    calls = Calls(source, trigger_available_now="true", max_batch_rows="10")
    places = [calls.reader.initialOffset()]
    while (end := calls.next()) != places[-1]:
        calls.deliver(places[-1], end)
        places.append(end)
    assert calls.ops == ["r"] * ROWS
    calls.reader.stop()
    source.execute("INSERT INTO t SELECT g, 0 FROM generate_series(1001, 1050) g")
    calls.start()
    calls.reader.partitions(places[-1], places[-1])
    while (end := calls.next()) != places[-1]:
        calls.deliver(places[-1], end)
        places.append(end)
        source.execute("UPDATE t SET v = v + 1 WHERE id = 1")
    assert calls.ops == [*["r"] * ROWS, *["c"] * 50]
    calls.reader.stop()


def test_the_first_offset_waits_for_what_is_there(source: Source) -> None:
    # With `availableNow` these versions ask but once.
    query = InProcess(source.options, older=True)
    query.drain()
    query.restart()
    source.execute("UPDATE t SET v = 1 WHERE id <= 10")
    assert [row["op"] for row in query.step()] == ["u"] * 10
    query.stop()


@pytest.mark.skipif(not GIVES_START, reason="the other reader needs Spark 4.2")
def test_a_checkpoint_is_carried_between_versions(source: Source) -> None:
    older: bool | None = None
    offset, ops = None, []
    for number in range(6):
        older = not older
        query = InProcess(source.options, offset, older=older)
        ops += [row["op"] for row in query.drain()]
        query.stop()
        offset = query.offset
        source.execute(f"INSERT INTO t VALUES ({1000 + number}, 1)")
    assert ops == [*["r"] * ROWS, *["c"] * 5]
