"""The reader of a streaming query on Spark 4.0 and 4.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from floodmark.spark.failures import plainly
from floodmark.spark.stream.planning_reader import PlanningReader

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition


class OlderStreamReader(PlanningReader):
    """A reader that Spark asks for the next offset without saying where the micro-batch begins.

    A query that is restarted first calls ``partitions(end, end)``, where ``end`` is the last offset that was planned.
    From then on each micro-batch begins where the one before ends. Offsets name the micro-batch before them, so that
    the planner refuses one that begins elsewhere.
    """

    _end: dict[str, Any] | None = None

    @plainly()
    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """Return where the next micro-batch ends."""
        first = self._planner is None
        planner = self._plan()
        asked = first and not self._options.trigger_available_now
        if asked:
            # With `availableNow` Spark asks but once, so this must not return before there is something to deliver.
            planner.fix_target()
        start = self.initialOffset() if self._end is None else self._end
        self._end = self._next(start, self._options.max_batch_rows)
        if asked:
            planner.withdraw_target()
        return self._end

    @plainly()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a micro-batch; after a restart, learn where the query is."""
        if self._end is None:
            self._end = end
        return super().partitions(start, end)
