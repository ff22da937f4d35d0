"""What travels to the executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import InputPartition

from floodmark.capture.segment import Segment
from floodmark.snapshot.notifications import Notification
from floodmark.snapshot.reports import Part


@dataclass
class LogPartition(InputPartition):
    """Part of the log: a segment, of which ``(after, upto]`` is wanted.

    Attributes:
        batch: the name of the micro-batch in reports.
        aside: tables to leave out, as the log numbers them.
        only: the tables that are wanted; None: all.
        xmin: the oldest transaction that the source keeps rows for, if it is asked for.
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


@dataclass
class HeartbeatPartition(InputPartition):
    """A heartbeat: its time in milliseconds since the epoch, and its place in the log."""

    time_ms: int
    position: str


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
    """

    owner: str
    batch: str
    part: Part
    chunks: list[dict[str, Any]]


@dataclass
class TablePartition(InputPartition):
    """A chunk of a batch read."""

    chunk: dict[str, Any]


@dataclass
class WindowPartition(InputPartition):
    """Rows that the planner has read, as ``files`` of a run, and the log of their window.

    Attributes:
        batch: the name of the micro-batch in reports.
        part: of which snapshot the chunk is.
    """

    uri: str
    owner: str
    run: str
    batch: str
    part: Part
    chunk: dict[str, Any]
    log: list[LogPartition]


def chunk_partitions(
    owner: str, batch: str, part: Part, chunks: list[dict[str, Any]], most: int | None
) -> list[ChunkPartition]:
    """Return the tasks for chunks: one each, or as many as may read at a time."""
    count = len(chunks) if most is None else min(most, len(chunks))
    return [ChunkPartition(owner, batch, part, chunks[first::count]) for first in range(count)]


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
    for chunk in chunks:
        if "files" in chunk:
            log = [part for part in captured if part.upto > chunk["low"] and part.after < chunk["position"]]
            result.append(WindowPartition(*place, batch, part, chunk, log))
    return result
