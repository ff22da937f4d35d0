"""The reader of a streaming query on Spark 4.2 and later."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from floodmark.spark.failures import plainly
from floodmark.spark.stream.planning_reader import PlanningReader


class FloodmarkStreamReader(PlanningReader, SupportsTriggerAvailableNow):
    """A reader that Spark tells where each micro-batch begins, and how large it may be."""

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return ``max.batch.rows``."""
        return ReadMaxRows(self._options.max_batch_rows)

    @plainly()
    def prepareForTriggerAvailableNow(self) -> None:
        """End the query at the end that the log has when the next micro-batch is planned."""
        self._plan().fix_target()

    @plainly()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return where the next micro-batch ends."""
        rows = None if isinstance(limit, ReadAllAvailable) else self._options.max_batch_rows
        if isinstance(limit, ReadMaxRows):
            rows = limit.max_rows
        return self._next(start, rows)

    @plainly()
    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the end of the source's log and the lag."""
        return None if self._planner is None else self._planner.report()
