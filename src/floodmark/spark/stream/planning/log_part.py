"""Finds where the log of a micro-batch ends, with chunks of incremental snapshots or without."""

from __future__ import annotations

import time

from floodmark.connectors.contract.source import LogSource
from floodmark.errors import StatementTimeoutError
from floodmark.snapshots.incremental.engine import IncrementalEngine
from floodmark.snapshots.incremental.state import IncrementalState
from floodmark.spark.stream.captured_log import IDLE_WAIT_S, CapturedLog
from floodmark.spark.stream.planning.ending import Ending
from floodmark.spark.stream.planning.notices import Notices

READ_POINTS = 5
"""How many read points are tried one after the other before waiting."""
UNSETTLED_WAIT_S = 0.05
UNSETTLED_PATIENCE_S = 10.0
"""How long a query that ends by itself waits for a read point."""


class LogPart:
    """Finds the log that a micro-batch holds.

    Args:
        captured: what capture has received.
        log: the source's log.
        incremental: the engine of the incremental snapshots.
        ending: where the query ends.
        notices: the notifications of the plan.
    """

    def __init__(
        self, captured: CapturedLog, log: LogSource, incremental: IncrementalEngine, ending: Ending, notices: Notices
    ) -> None:
        self._captured = captured
        self._log = log
        self._incremental = incremental
        self._ending = ending
        self._notices = notices

    def without_chunks(self, after: str, rows: int | None, wait_s: float = IDLE_WAIT_S) -> str:
        """Return where the log of a micro-batch without chunks ends.

        Args:
            after: where it begins.
            rows: maximum number of log records in it; None: all up to the log's present end.
            wait_s: how long to wait for log, in seconds.
        """
        target = self._log.end() if rows is None else self._ending.target
        if target is None:
            return self._captured.wait_briefly(after, rows, wait_s)
        return after if after >= target else self._captured.drain(after, target, rows)

    def with_chunks(self, after: str, state: IncrementalState, rows: int | None) -> tuple[str, IncrementalState]:
        """Plan chunks of incremental snapshots, or postpone them if the source keeps them waiting for too long.

        Args:
            after: where the micro-batch's log begins.
            state: the incremental snapshots, which are changed.
            rows: maximum number of log records; None: no limit.

        Returns:
            Where its log ends, and the incremental snapshots with the chunks.
        """
        before = state.copy()
        try:
            with self._notices.attempt():
                return self._plan_chunks(after, state, rows), state
        except StatementTimeoutError as exc:
            self._incremental.release()
            self._incremental.put_off(exc)
            return self.without_chunks(after, rows), before

    def _plan_chunks(self, after: str, state: IncrementalState, rows: int | None) -> str:
        """Plan chunks, if the log can be delivered up to their read point."""
        end = after
        tries = 0
        patient_until = self._ending.patience(UNSETTLED_PATIENCE_S)
        while True:
            first, point = self._incremental.reach(state, after)
            end = max(after, point) if after >= point else self._captured.wait_for(after, point, rows)
            if after < end < point and after < first:
                return min(end, first)
            if end < point:
                end = self._captured.wait_for(after, point, None)
            if end >= point and self._incremental.plan(state, after):
                break
            tries += 1
            if tries >= READ_POINTS:
                if time.monotonic() > patient_until:
                    break
                time.sleep(UNSETTLED_WAIT_S)
        return max(end, self._captured.bounded(after, rows))
