"""Running incremental snapshots: a fresh read point and some ranges of keys for each micro-batch."""

from __future__ import annotations

import copy
from typing import Any

from floodmark.connectors.base import ReadPoint
from floodmark.errors import SourceStateError
from floodmark.log import get_logger
from floodmark.snapshot.aside import AsideTable
from floodmark.snapshot.incremental import IncrementalState, KeyRange, TableRun
from floodmark.snapshot.notifications import IncrementalSnapshotNotifications, Notification
from floodmark.snapshot.pace import BatchRows, Pace
from floodmark.snapshot.reports import TaskReports
from floodmark.snapshot.surroundings import Surroundings

log = get_logger(__name__)

MARKER = "incremental"


class IncrementalEngine:
    """Plans the chunks of incremental snapshots.

    Args:
        around: what it works with.
        notifications: makes what is told.
        pace: how much it reads.
        isolate: whether a table that fails is set aside; otherwise the error is raised.
    """

    def __init__(
        self, around: Surroundings, notifications: IncrementalSnapshotNotifications, pace: Pace, isolate: bool
    ) -> None:
        self._connector = around.connector
        self._tell = around.tell
        self._aside = around.aside
        self._notifications = notifications
        self._isolate = isolate
        self._least = pace.least
        self._tasks = pace.tasks
        self._rows = BatchRows(pace)
        self._point: ReadPoint | None = None
        self._settled = False
        self._captured: set[int] | None = None

    def tables(self) -> list[dict[str, Any]]:
        """Return the tables that can be read, as the connector describes them."""
        return self._connector.tables()

    def queue(
        self, state: IncrementalState, table: dict[str, Any], surrogate: str | None = None, condition: str = ""
    ) -> None:
        """Queue a table; one that waits already, for the same, is left as it is.

        Args:
            state: is changed.
            table: one of ``tables``.
            surrogate: a column to read by instead of the key.
            condition: on the rows; empty: all.
        """
        asked = (table["oid"], surrogate, condition)
        if any((run.oid, run.surrogate, run.condition) == asked and not run.begun for run in state.runs):
            return
        if self._captured is not None:
            self._captured.add(table["oid"])
        key = self._connector.key_of(table["oid"], surrogate)
        run = TableRun(table["published"], table["oid"], table["file"], key or {}, surrogate, condition, table["rows"])
        if key is None:
            run.outcome = "NO_PRIMARY_KEY"
        else:
            run.nulls = bool(key["nulls"])
        state.runs.append(run)
        self._aside.resume(table["oid"])

    def resume(self, state: IncrementalState, reports: TaskReports) -> IncrementalState:
        """Return the state after its batch has been delivered; the given one stays as it is.

        Args:
            state: with the batch.
            reports: of the batch's tasks.
        """
        state = copy.deepcopy(state)
        if state.runs:
            self._settle(state, reports)
        if not state.active:
            self.release()
        elif self._settled:
            self._let_go()
        return state

    def _settle(self, state: IncrementalState, reports: TaskReports) -> None:
        for index, error in self._settle_batch(state, reports).items():
            self._set_aside(state.runs[index], error)
        if any(run.redo for run in state.runs):
            # What could not be read may have been renamed to what the filters don't match.
            self._captured = None
        files = self._connector.fingerprints(sorted({run.oid for run in state.runs if not run.outcome}))
        for run in state.runs:
            if not run.outcome and files.get(run.oid, run.file) != run.file:
                self._follow(run, files[run.oid])
        if self._captured is None:
            # Otherwise it only changes with the options, so when the query is started again.
            self._captured = {table["oid"] for table in self.tables()}
            files = {oid: file for oid, file in files.items() if oid in self._captured}
        for run in state.runs:
            if not run.outcome and run.oid not in files:
                run.outcome = "SKIPPED"
        self._tell_finished(state)

    def _settle_batch(self, state: IncrementalState, reports: TaskReports) -> dict[int, str]:
        return state.settle_batch(reports)

    def _tell_finished(self, state: IncrementalState) -> None:
        """Take the finished tables out of the state."""
        for index, run in enumerate(state.runs):
            if not run.finished:
                continue
            tables = list(dict.fromkeys([run.name, *(other.name for other in state.runs[index:])]))
            read = run.chunks > 0 or run.top is not None
            status = run.outcome or ("SUCCEEDED" if read else "EMPTY")
            self._tell(self._notifications.table_completed(state.name, tables, run.name, run.rows, status))
        left = [run for run in state.runs if not run.finished]
        if state.runs and not left:
            self._tell(self._notifications.completed(state.name))
            # The tables of a paused snapshot can be gone.
            state.paused = False
        state.runs = left

    def reach(self, state: IncrementalState, after: str) -> tuple[str, str]:
        """Return the position that the log must reach before chunks can be planned.

        Args:
            state: without a batch.
            after: where the micro-batch's log begins.

        Returns:
            From where on the log must lie in one micro-batch, and the position.
        """
        del state, after
        if self._point is None or not self._point.alive():
            self.release()
            self._point = self._connector.fresh_point()
        return self._point.position, self._point.position

    def plan(self, state: IncrementalState, after: str) -> bool:
        """Put the next chunks into the state's batch, at the read point that was reached.

        Args:
            state: without a batch.
            after: where the micro-batch's log begins.

        Returns:
            False if the read point can't be used.
        """
        assert self._point is not None
        if not self._connector.settle(self._point, after):
            log.info("read_point_taken_again", position=self._point.position)
            self.release()
            return False
        self._settled = True
        self._rows.begin()
        state.position = self._point.position
        state.token = self._point.token
        for notification in self._fill(state, self._point, self._isolate):
            self._tell(notification)
        self._rows.planned(self._rows.number)
        return True

    def read_ahead(self, state: IncrementalState, after: str) -> None:
        """Read what the next micro-batch needs while the tasks of the last one run, if this process reads.

        Until ``wait`` returns, nobody else may use the connector.

        Args:
            state: with the last micro-batch's chunks.
            after: where its log ends.
        """

    def wait(self) -> None:
        """Wait until what is read ahead has been read."""

    def _fill(self, state: IncrementalState, point: ReadPoint, isolate: bool) -> list[Notification]:
        """Put the next chunks into the state's batch; return what is to be told of them."""
        told: list[Notification] = []
        rows = self._rows.number
        for index, run in enumerate(state.runs):
            if rows <= 0:
                break
            if run.finished:
                continue
            try:
                rows -= self._take(state, index, run, rows, point)
            except SourceStateError as exc:
                if not isolate:
                    raise
                self._set_aside(run, str(exc))
            else:
                told += self._progress(state, run)
        return told

    def _set_aside(self, run: TableRun, error: str) -> None:
        """Try a table again with the next micro-batch, but not for ever; the others go on."""
        run.failures += 1
        run.error = error
        if self._aside.failed(AsideTable(run.name, run.oid, "incremental", error), run.failures):
            run.outcome = "SQL_EXCEPTION"
            run.redo = []

    def _progress(self, state: IncrementalState, run: TableRun) -> list[Notification]:
        if run.after is None:
            return []
        tables = [run.name, *(name for name in state.tables if name != run.name)]
        return [self._notifications.in_progress(state.name, tables, run.name, run.top, run.after)]

    def chunks(self, state: IncrementalState) -> list[dict[str, Any]]:
        """Return the chunks of the state's batch, as readers take them."""
        lost = not self._holds(state)
        described = self._connector.describe(sorted({state.runs[chunk.run].oid for chunk in state.batch}))
        place = {"token": state.token, "position": state.position, "lost": lost}
        result = []
        for number, chunk in enumerate(state.batch):
            run = state.runs[chunk.run]
            if run.oid in described:
                result.append({**self._described(run, chunk.range, described[run.oid]), **place, "chunk": (number,)})
        return result

    def _described(self, run: TableRun, span: KeyRange, table: dict[str, Any]) -> dict[str, Any]:
        """Return what a chunk carries, whatever the read point."""
        return {
            **table,
            # What an initial snapshot may read of the table by a statement is not asked here.
            "stored": {**table["stored"], "statement": None},
            "file": run.file,
            "key": run.key,
            "after": span.after,
            "upto": span.upto,
            "since": span.since,
            "condition": run.condition,
            "marker": MARKER,
        }

    def release(self) -> None:
        """Let go of all read points."""
        self._let_go()

    def _let_go(self) -> None:
        """Let go of the read point of the last micro-batch."""
        if self._point is not None:
            self._point.release()
            self._point = None
        self._settled = False

    def idle(self) -> None:
        """Forget when the last micro-batch began: now there is nothing to read."""
        self._rows.idle()

    def _take(self, state: IncrementalState, index: int, run: TableRun, rows: int, point: ReadPoint) -> int:
        """Hand out up to about ``rows`` rows of a table; return how many."""
        ranges = self._connector.key_ranges(point, run.oid, run.key, run.condition)
        if not run.begun:
            run.top = ranges.last()
            run.begun = True
        taken = self._least * state.take_redo(index, max(rows // self._least, 1))
        if run.nulls and rows > taken:
            state.take_nulls(index)
            taken += self._least
        if rows > taken and run.top is not None and run.after != run.top:
            left = rows - taken
            size = max(self._least, left // self._tasks)
            bounds = ranges.bounds(run.after, run.top, size, min(max(left // size, 1), self._tasks))
            state.take(index, bounds)
            taken += max(sum(number for _, number in bounds), self._least)
        return taken

    def _holds(self, state: IncrementalState) -> bool:
        """Tell whether the read point of the state's batch can still be read from."""
        return self._point is not None and self._point.token == state.token and self._point.alive()

    def _follow(self, run: TableRun, file: str) -> None:
        """Take over what became of a table that was altered or rewritten."""
        run.file = file
        if run.top is None:
            # Rewritten since the read point, it may have looked empty.
            run.begun = False
        key = self._connector.key_of(run.oid, run.surrogate)
        if key == run.key:
            return
        log.warning("incremental_snapshot_starts_again", table=run.name, reason="its key has changed")
        run.begun, run.after, run.top, run.redo = False, None, None, []
        if key is None:
            run.outcome = "NO_PRIMARY_KEY"
        else:
            run.key, run.nulls = key, bool(key["nulls"])
