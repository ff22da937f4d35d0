"""The reader of a streaming query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from floodmark.config.common import CommonOptions
from floodmark.events.heartbeats import heartbeat_batch
from floodmark.snapshot.notifications import notification_batch
from floodmark.spark.offsets import Offset
from floodmark.spark.partitions import (
    AnnouncementPartition,
    ChunkPartition,
    HeartbeatPartition,
    LogPartition,
    NotificationPartition,
    WarmPartition,
    WindowPartition,
)
from floodmark.spark.readers import read_chunks, read_log, read_window

if TYPE_CHECKING:
    from floodmark.spark.planner import Planner

NEW = Offset({}, "")


class FloodmarkStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One instance lives in Spark's source process and plans; others read in executors.

    It is pickled, so it holds nothing but options until it plans or reads.
    """

    def __init__(self, options: CommonOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._planner: Planner | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first micro-batch; nothing happens at the source."""
        return NEW.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return ``max.batch.rows``."""
        return ReadMaxRows(self._options.max_batch_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of the query at the present end of the log."""
        self._plan().fix_target()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return where the next micro-batch ends."""
        rows = None if isinstance(limit, ReadAllAvailable) else self._options.max_batch_rows
        if isinstance(limit, ReadMaxRows):
            rows = limit.max_rows
        return self._plan().latest_offset(Offset.from_json(start), rows).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the end of the source's log and the lag."""
        return None if self._planner is None else self._planner.report()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a micro-batch."""
        if start == end:
            return []
        return self._plan().partitions(Offset.from_json(start), Offset.from_json(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return a partition's events; runs in an executor."""
        if isinstance(partition, WarmPartition):
            return iter([pa.RecordBatch.from_pylist([], schema=self._schema)])
        if isinstance(partition, AnnouncementPartition):
            return iter([pa.RecordBatch.from_pylist(partition.rows, schema=self._schema)])
        if isinstance(partition, NotificationPartition):
            if self._options.format != "events":
                return iter(())
            return iter([notification_batch(partition.notifications, self._options, f"{partition.position}-00")])
        if isinstance(partition, HeartbeatPartition):
            if self._options.format != "events":
                return iter(())
            return iter([heartbeat_batch(partition.time_ms, self._options, partition.position)])
        if isinstance(partition, ChunkPartition):
            return read_chunks(self._options, self._schema, partition)
        if isinstance(partition, WindowPartition):
            return read_window(self._options, self._schema, partition)
        assert isinstance(partition, LogPartition)
        return read_log(self._options, self._schema, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Release what has been delivered."""
        self._plan().commit(Offset.from_json(end))

    def stop(self) -> None:
        """End capture and close all connections."""
        if self._planner is not None:
            self._planner.stop()
            self._planner = None

    def _plan(self) -> Planner:
        if self._planner is None:
            # Executors import this module for every query; they need nothing of the planner.
            from floodmark.spark.planning import make_planner

            self._planner = make_planner(self._options)
        return self._planner
