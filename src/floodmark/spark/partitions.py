"""What travels to the executors."""

from __future__ import annotations

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
    """

    uri: str
    owner: str
    run: str
    segment: Segment
    after: str
    upto: str
    batch: str = ""
    aside: tuple[int, ...] = ()


@dataclass
class NotificationPartition(InputPartition):
    """What is told with a micro-batch, and its place in the log."""

    notifications: tuple[Notification, ...]
    position: str


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


def chunk_partitions(
    owner: str, batch: str, part: Part, chunks: list[dict[str, Any]], most: int | None
) -> list[ChunkPartition]:
    """Return the tasks for chunks: one each, or as many as may read at a time."""
    count = len(chunks) if most is None else min(most, len(chunks))
    return [ChunkPartition(owner, batch, part, chunks[first::count]) for first in range(count)]
