"""How the work of a micro-batch becomes tasks."""

from __future__ import annotations

from dataclasses import replace

from floodmark.capture.segment import Segment
from floodmark.connectors.contract.chunk import Chunk, DescribedTable
from floodmark.spark.stream.partitions import (
    MOST_ANNOUNCED,
    MOST_IN_SERIES,
    MOST_TOGETHER,
    ChunkPartition,
    HeartbeatPartition,
    LogPartition,
    announcement_partitions,
    in_series,
    window_partitions,
)


def chunk(number: int, share: float, low: str = "05", position: str = "05") -> Chunk:
    table = DescribedTable(1, "t", None)
    files = (f"{number}.seg",)
    return Chunk(table=table, file="", number=(number, 0), files=files, low=low, position=position, share=share)


def tasks(chunks: list[Chunk], log: list[LogPartition]) -> list[tuple[list[int], list[str]]]:
    """Return the chunks and the log of each task."""
    made = window_partitions(chunks, log, ("uri", "owner", "run"), "batch", "incremental")
    return [([one.number[0] for one in task.chunks], [part.upto for part in task.log]) for task in made]


def part(after: str, upto: str) -> LogPartition:
    return LogPartition("uri", "owner", "run", Segment(upto, after, upto, 1, 1), after, upto)


def test_small_chunks_share_tasks() -> None:
    sizes = [0.001] * 40 + [1.0] + [0.001] * 40 + [0.1, 0.1]
    made = [found for found, _ in tasks([chunk(n, share) for n, share in enumerate(sizes)], [])]
    assert sorted(number for found in made for number in found) == list(range(len(sizes)))
    assert [40] in made
    assert len(made) == 4
    assert max(map(len, made)) == MOST_TOGETHER


def test_what_the_planner_has_not_read_is_no_window() -> None:
    assert tasks([Chunk(table=DescribedTable(1, "t", None), file="")], []) == []


def test_a_task_has_the_log_of_its_windows() -> None:
    log = [part("00", "03"), part("03", "06"), part("06", "09")]
    apart = [chunk(0, 1.0), chunk(1, 1.0, "02", "05"), chunk(2, 1.0, "06", "08")]
    assert tasks(apart, log) == [([0], ["06"]), ([1], ["03", "06"]), ([2], ["09"])]
    together = [chunk(0, 0.001, "01", "02"), chunk(1, 0.001, "06", "08")]
    assert tasks(together, log) == [([0, 1], ["03", "09"])]


def test_announcements_are_cut() -> None:
    assert announcement_partitions([]) == []
    rows = [{"value": "x" * 1000, "n": str(n)} for n in range(3000)]
    rows.append({"value": "x" * 2 * MOST_ANNOUNCED, "n": "3000"})
    made = announcement_partitions(rows)
    assert [row for task in made for row in task.rows] == rows
    assert len(made) in (3, 4)
    assert all(sum(len(row["value"]) for row in task.rows[:-1]) < MOST_ANNOUNCED for task in made)


def test_one_task_reads_the_log_in_series_unless_several_are_faster() -> None:
    log = [part(f"{n:02}", f"{n + 1:02}") for n in range(MOST_IN_SERIES + 1)]
    heartbeat = HeartbeatPartition(0, "09-00")
    for few in (log, [*log, heartbeat], log[:1]):
        made = in_series(few, MOST_IN_SERIES)
        assert made is not None
        assert list(made.partitions) == few
    assert in_series(log, MOST_IN_SERIES + 1) is None
    assert in_series(log[:MOST_IN_SERIES], 100) is not None
    assert in_series([heartbeat], 1) is None
    chunks = ChunkPartition("owner", "batch", "incremental", [chunk(0, 1.0)])
    assert in_series([chunks, *log[:1]], 1) is None
    assert in_series([replace(log[0], only=(1,)), *log[1:2]], 1) is None
