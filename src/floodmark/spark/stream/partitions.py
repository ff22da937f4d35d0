"""The input partitions that are sent to executors, and how chunks and log are divided among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from floodmark.capture.gaps import Gap
from floodmark.capture.segment import Segment
from floodmark.connectors.contract.chunk import Chunk
from floodmark.events.columns import EventRow
from floodmark.notifications.records import Notification
from floodmark.snapshots.reports import Part

SMALL_SHARE = 8
"""Chunks smaller than a full one divided by this number share tasks: a task costs more than reading them."""
MOST_TOGETHER = 32
MOST_IN_SERIES = 2
"""How many tasks, or else parts of a log, one task replaces: its reader and its sink are two processes."""
MOST_ANNOUNCED = 1 << 20
"""Number of characters of announcements after which another task begins."""


@dataclass
class LogPartition(InputPartition):
    """A part of the log: the records of a segment in ``(after, upto]``.

    Attributes:
        batch: the name of the micro-batch in reports.
        excluded: tables to leave out, as the log numbers them.
        only: the tables to decode; None: all.
        context: what the decoder needs besides the log.
        settled: up to this position the log may hold table versions that differ from the query's typed rows.
    """

    uri: str
    owner: str
    run: str
    segment: Segment
    after: str
    upto: str
    batch: str = ""
    excluded: tuple[int, ...] = ()
    only: tuple[int, ...] | None = None
    context: int | None = None
    settled: str = ""


@dataclass
class HeartbeatPartition(InputPartition):
    """A heartbeat: its time in milliseconds since the epoch, and its position in the log."""

    time_ms: int
    position: str


@dataclass
class GapPartition(InputPartition):
    """The gaps that a micro-batch announces."""

    gaps: tuple[Gap, ...]


@dataclass
class NotificationPartition(InputPartition):
    """The notifications of a micro-batch, and their position in the log."""

    notifications: tuple[Notification, ...]
    position: str


@dataclass
class AnnouncementPartition(InputPartition):
    """Events that come before the rows of a snapshot, as rows of the output."""

    rows: list[EventRow]


@dataclass
class SeriesPartition(InputPartition):
    """Partitions that one task reads one after the other, so that their events are in the log's order."""

    partitions: Sequence[InputPartition]


class WarmPartition(InputPartition):
    """An empty partition: lets a worker start and import modules before there is work for it."""

    def __init__(self) -> None:
        super().__init__(None)


@dataclass
class ChunkPartition(InputPartition):
    """Chunks of a snapshot, read one after the other.

    Attributes:
        owner: the name of the source's directory below ``state.dir``.
        batch: the name of the micro-batch in reports.
        part: the kind of snapshot that they belong to.
        chunks: what to read.
        required: whether the query has no other table than the one that is read.
    """

    owner: str
    batch: str
    part: Part
    chunks: Sequence[Chunk]
    required: bool = False


@dataclass
class WindowPartition(InputPartition):
    """Chunks whose rows the planner has read into ``files`` of a run, and the log of their windows.

    Attributes:
        batch: the name of the micro-batch in reports.
        part: the kind of snapshot that they belong to.
        chunks: decoded one after the other.
        log: the parts of the log that overlap one of their windows.
        required: whether the query has no other table than the one that was read.
    """

    uri: str
    owner: str
    run: str
    batch: str
    part: Part
    chunks: Sequence[Chunk]
    log: list[LogPartition]
    required: bool = False


def in_window(log: Sequence[LogPartition], chunk: Chunk) -> list[LogPartition]:
    """Return the parts of the log that overlap a chunk's window."""
    return [part for part in log if part.upto > chunk.low and part.after < chunk.position]


def in_series(partitions: Sequence[InputPartition], most: int) -> SeriesPartition | None:
    """Return one task that does what several do, if that is as fast; None otherwise.

    Where one task reads a whole micro-batch, in the log's order, the events of a key needn't be put together for a sink
    that keeps their order. Decoding and writing go on at the same time, in two processes.

    Args:
        partitions: those of a micro-batch.
        most: how many tasks the sink would have.
    """
    log = [one for one in partitions if isinstance(one, LogPartition)]
    besides = (GapPartition, NotificationPartition, HeartbeatPartition)
    if not log or not all(isinstance(one, (LogPartition, *besides)) for one in partitions):
        return None
    # What new tables have missed isn't where it would be in the log.
    if any(one.only is not None for one in log) or min(most, len(log)) > MOST_IN_SERIES:
        return None
    return SeriesPartition(partitions)


def announcement_partitions(rows: Sequence[EventRow]) -> list[AnnouncementPartition]:
    """Return the tasks that emit announcements, each small enough for Spark to send it to an executor."""
    tasks: list[AnnouncementPartition] = []
    characters = MOST_ANNOUNCED
    for row in rows:
        if characters >= MOST_ANNOUNCED:
            characters = 0
            tasks.append(AnnouncementPartition([]))
        tasks[-1].rows.append(row)
        characters += len(row.get("value", ""))
    return tasks


def chunk_partitions(
    owner: str, batch: str, part: Part, chunks: Sequence[Chunk], most: int | None
) -> list[ChunkPartition]:
    """Return the tasks for chunks: one per chunk, with small ones grouped, or ``most`` tasks if that is given."""
    if most is not None:
        count = min(most, len(chunks))
        return [ChunkPartition(owner, batch, part, chunks[first::count]) for first in range(count)]
    return [ChunkPartition(owner, batch, part, task) for task in _together(chunks)]


def _together(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Group chunks into tasks: one chunk each, or several small ones."""
    tasks: list[list[Chunk]] = []
    together: list[Chunk] = []
    share = 0.0
    for chunk in chunks:
        if chunk.share * SMALL_SHARE >= 1:
            tasks.append([chunk])
            continue
        if not together or share * SMALL_SHARE >= 1 or len(together) >= MOST_TOGETHER:
            together, share = [], 0.0
            tasks.append(together)
        together.append(chunk)
        share += chunk.share
    return tasks


def window_partitions(
    chunks: Sequence[Chunk], captured: Sequence[LogPartition], place: tuple[str, str, str], batch: str, part: Part
) -> list[WindowPartition]:
    """Return the tasks for those chunks whose rows the planner has read.

    Args:
        chunks: the chunks of a micro-batch.
        captured: the micro-batch's log.
        place: where the files are: ``state.dir``, owner and run.
        batch: the name of the micro-batch in reports.
        part: the kind of snapshot that they belong to.
    """
    result = []
    for task in _together([chunk for chunk in chunks if chunk.files]):
        log = [one for one in captured if any(in_window([one], chunk) for chunk in task)]
        result.append(WindowPartition(*place, batch, part, task, log))
    return result
