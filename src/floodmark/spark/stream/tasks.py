"""Derives the tasks of a micro-batch from its start and end offsets alone."""

from __future__ import annotations

import os
from collections.abc import Sequence

from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.contract.source import Source
from floodmark.snapshots.incremental.engine import IncrementalEngine
from floodmark.snapshots.initial.engine import SnapshotEngine
from floodmark.snapshots.reports import Part
from floodmark.snapshots.state import SnapshotState
from floodmark.spark.stream.captured_log import CapturedLog
from floodmark.spark.stream.catch_up import CatchUp
from floodmark.spark.stream.offsets import Offset
from floodmark.spark.stream.partitions import (
    AnnouncementPartition,
    ChunkPartition,
    GapPartition,
    HeartbeatPartition,
    LogPartition,
    NotificationPartition,
    SeriesPartition,
    WarmPartition,
    WindowPartition,
    announcement_partitions,
    chunk_partitions,
    in_series,
    window_partitions,
)

MAX_WARM = 8

Task = (
    AnnouncementPartition
    | LogPartition
    | ChunkPartition
    | GapPartition
    | WindowPartition
    | NotificationPartition
    | HeartbeatPartition
    | SeriesPartition
    | WarmPartition
)


class MicroBatchTasks:
    """Creates the tasks of micro-batches.

    Args:
        options: the source's options.
        owner: the name of the source's directory below ``state.dir``.
        source: the source.
        log: what capture has received.
        engine: the engine of the initial and blocking snapshots.
        catch_up: the catch-up snapshot and stream of new tables.
        incremental: the engine of the incremental snapshots.
    """

    def __init__(
        self,
        options: CommonOptions,
        owner: str,
        source: Source,
        log: CapturedLog,
        engine: SnapshotEngine,
        catch_up: CatchUp,
        incremental: IncrementalEngine,
    ) -> None:
        self._options = options
        self._owner = owner
        self._announcer = source.announcements
        self._log = log
        self._engine = engine
        self._catch_up = catch_up
        self._incremental = incremental

    def of(self, start: Offset, end: Offset) -> list[Task]:
        """Return the tasks of the micro-batch between two offsets, even if an earlier process planned it."""
        result: list[Task] = []
        if start.new and end.snapshot is None:
            result += [WarmPartition() for _ in range(min(os.cpu_count() or 1, MAX_WARM))]
        announced = tuple(gap for gap in end.gaps if gap not in start.gaps)
        if announced:
            result.append(GapPartition(announced))
        if end.snapshot is not None:
            result += self._announcements(start, end.snapshot)
            result += self._chunk_tasks(end, "consistent", self._engine.chunks(end.snapshot))
        result += self._lane_tasks(start, end)
        captured = self._log_tasks(start, end)
        if end.incremental is not None and end.incremental.batch:
            result += self._chunk_tasks(end, "incremental", self._incremental.chunks(end.incremental), captured)
        result += captured
        if end.notifications and self._options.notification_sink_topic_name:
            result.append(NotificationPartition(end.notifications, end.log))
        if end.heartbeat is not None:
            result.append(HeartbeatPartition(end.heartbeat, f"{end.log}-00"))
        series = in_series(result, self._options.event_blocks) if self._options.event_blocks else None
        return result if series is None else [series]

    def _announcements(self, start: Offset, snapshot: SnapshotState) -> list[Task]:
        """Return the announcements that precede the rows, if the snapshot begins with this micro-batch."""
        if self._announcer is None or start.snapshot is not None or snapshot.blocking:
            return []
        if self._options.format != "events":
            return []
        return [*announcement_partitions(self._announcer.schema_events(snapshot.position, snapshot.token))]

    def _lane_tasks(self, start: Offset, end: Offset) -> list[Task]:
        result: list[Task] = []
        if start.catch_up is not None and start.catch_up.position:
            self._log.start(start.oldest)
            upto = end.log if end.catch_up is None else end.catch_up.position
            if upto > start.catch_up.position:
                excluded = _excluded_tables(start, end)
                result += self._log.partitions(
                    start.catch_up.position, upto, end.batch, excluded, start.catch_up.tables, end.context
                )
        if end.catch_up is not None and end.catch_up.snapshot is not None:
            result += self._chunk_tasks(end, "lane", self._catch_up.engine.chunks(end.catch_up.snapshot))
        return result

    def _log_tasks(self, start: Offset, end: Offset) -> list[LogPartition]:
        after = end.log if start.new or end.gap else start.log
        if end.log <= after:
            return []
        catch_up = start.catch_up.tables if start.catch_up is not None and start.catch_up.position else ()
        return self._log.partitions(
            after, end.log, end.batch, (*_excluded_tables(start, end), *catch_up), None, end.context
        )

    def _chunk_tasks(
        self, end: Offset, part: Part, chunks: Sequence[Chunk], captured: Sequence[LogPartition] = ()
    ) -> list[ChunkPartition | WindowPartition]:
        to_read = [chunk for chunk in chunks if not chunk.files]
        return [
            *window_partitions(chunks, captured, self._log.place, end.batch, part),
            *chunk_partitions(self._owner, end.batch, part, to_read, self._options.snapshot_max_threads),
        ]


def _excluded_tables(start: Offset, end: Offset) -> tuple[int, ...]:
    """Return the tables whose changes are left out, as the log numbers them."""
    return tuple({table.oid for table in (*start.excluded, *end.excluded) if table.what == "log"})
