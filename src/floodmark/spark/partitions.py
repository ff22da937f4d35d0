"""What travels to the executors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import InputPartition

from floodmark.capture.segment import Segment
from floodmark.snapshot.notifications import Notification


@dataclass
class LogPartition(InputPartition):
    """Part of the log: a segment, of which ``(after, upto]`` is wanted."""

    uri: str
    owner: str
    run: str
    segment: Segment
    after: str
    upto: str


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
    """Chunks of a snapshot, read one after the other."""

    chunks: list[dict[str, Any]]


def chunk_partitions(chunks: list[dict[str, Any]], most: int | None) -> list[ChunkPartition]:
    """Return the tasks for chunks: one each, or as many as may read at a time."""
    count = len(chunks) if most is None else min(most, len(chunks))
    return [ChunkPartition(chunks[first::count]) for first in range(count)]
