"""What travels to the executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import InputPartition

from floodmark.capture.gaps import Gap
from floodmark.capture.segment import Segment
from floodmark.notifications.records import Notification
from floodmark.snapshots.reports import Part

SMALL_SHARE = 8
"""Chunks of less than this part of a full one are read by a task together: a task costs more than they do."""
MOST_TOGETHER = 32
MOST_ANNOUNCED = 1 << 20
"""So many characters of announcements make a task."""


@dataclass
class LogPartition(InputPartition):
    """Part of the log: a segment, of which ``(after, upto]`` is wanted.

    Attributes:
        batch: the name of the micro-batch in reports.
        aside: tables to leave out, as the log numbers them.
        only: the tables that are wanted; None: all.
        xmin: the oldest transaction that the source keeps rows for, if it is asked for.
        settled: up to this position the table of typed rows may differ from them.
    """

    uri: str
    owner: str
    run: str
    segment: Segment
    after: str
    upto: str
    batch: str = ""
    aside: tuple[int, ...] = ()
    only: tuple[int, ...] | None = None
    xmin: int | None = None
    settled: str = ""


@dataclass
class HeartbeatPartition(InputPartition):
    """A heartbeat: its time in milliseconds since the epoch, and its place in the log."""

    time_ms: int
    position: str


@dataclass
class GapPartition(InputPartition):
    """Gaps that a micro-batch announces."""

    gaps: tuple[Gap, ...]


@dataclass
class NotificationPartition(InputPartition):
    """What is told with a micro-batch, and its place in the log."""

    notifications: tuple[Notification, ...]
    position: str


@dataclass
class AnnouncementPartition(InputPartition):
    """Events that come before the rows of a snapshot, as rows of the output."""

    rows: list[dict[str, Any]]


class WarmPartition(InputPartition):
    """Nothing to read: lets a worker start and import before there is work for it."""

    def __init__(self) -> None:
        super().__init__(None)


@dataclass
class ChunkPartition(InputPartition):
    """Chunks of a snapshot, read one after the other.

    Attributes:
        owner: the name of the source's directory below ``state.dir``.
        batch: the name of the micro-batch in reports.
        part: of which snapshot they are.
        chunks: each with its ``chunk``, the engine's number of it, which the report repeats.
        required: whether the query has nothing but the table that is read.
    """

    owner: str
    batch: str
    part: Part
    chunks: list[dict[str, Any]]
    required: bool = False


@dataclass
class WindowPartition(InputPartition):
    """Chunks whose rows the planner has read, as ``files`` of a run, and the log of their windows.

    Attributes:
        batch: the name of the micro-batch in reports.
        part: of which snapshot they are.
        chunks: decoded one after the other.
        log: what lies in one of their windows.
        required: whether the query has nothing but the table that was read.
    """

    uri: str
    owner: str
    run: str
    batch: str
    part: Part
    chunks: list[dict[str, Any]]
    log: list[LogPartition]
    required: bool = False


def in_window(log: Sequence[LogPartition], chunk: dict[str, Any]) -> list[LogPartition]:
    """Return those parts of the log that reach into a chunk's window."""
    return [part for part in log if part.upto > chunk["low"] and part.after < chunk["position"]]


def announcement_partitions(rows: list[dict[str, Any]]) -> list[AnnouncementPartition]:
    """Return the tasks that hand out announcements, none of which may be larger than Spark sends to executors."""
    tasks: list[AnnouncementPartition] = []
    characters = MOST_ANNOUNCED
    for row in rows:
        if characters >= MOST_ANNOUNCED:
            characters = 0
            tasks.append(AnnouncementPartition([]))
        tasks[-1].rows.append(row)
        characters += len(row["value"])
    return tasks


def chunk_partitions(
    owner: str, batch: str, part: Part, chunks: list[dict[str, Any]], most: int | None
) -> list[ChunkPartition]:
    """Return the tasks for chunks: one each, small ones together, or as many as may read at a time."""
    if most is not None:
        count = min(most, len(chunks))
        return [ChunkPartition(owner, batch, part, chunks[first::count]) for first in range(count)]
    return [ChunkPartition(owner, batch, part, task) for task in _together(chunks)]


def _together(chunks: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return chunks by tasks: one each, small ones together."""
    tasks: list[list[dict[str, Any]]] = []
    together: list[dict[str, Any]] = []
    share = 0.0
    for chunk in chunks:
        of_full = _share(chunk)
        if of_full * SMALL_SHARE >= 1:
            tasks.append([chunk])
            continue
        if not together or share * SMALL_SHARE >= 1 or len(together) >= MOST_TOGETHER:
            together, share = [], 0.0
            tasks.append(together)
        together.append(chunk)
        share += of_full
    return tasks


def _share(chunk: dict[str, Any]) -> float:
    """Return how much of a full chunk it is."""
    if "share" in chunk:
        return float(chunk["share"])
    return (int(chunk["last"]) - int(chunk["first"])) / chunk["full"] if "full" in chunk else 1.0


def window_partitions(
    chunks: list[dict[str, Any]], captured: Sequence[LogPartition], place: tuple[str, str, str], batch: str, part: Part
) -> list[WindowPartition]:
    """Return the tasks for those chunks whose rows the planner has read.

    Args:
        chunks: of a micro-batch.
        captured: the micro-batch's log.
        place: where the files are: ``state.dir``, owner and run.
        batch: the name of the micro-batch in reports.
        part: of which snapshot they are.
    """
    result = []
    for task in _together([chunk for chunk in chunks if "files" in chunk]):
        log = [one for one in captured if any(in_window([one], chunk) for chunk in task)]
        result.append(WindowPartition(*place, batch, part, task, log))
    return result
