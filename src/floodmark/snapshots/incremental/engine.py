"""Runs incremental snapshots: a fresh read point and some key ranges for each micro-batch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.chunk import Chunk, DescribedTable, KeyRangeChunk
from floodmark.connectors.contract.read_points import KeyRanges, ReadPoint
from floodmark.errors import ConditionError, LockTimeoutError, SourceStateError, StatementTimeoutError
from floodmark.logger import get_logger
from floodmark.notifications.records import IncrementalSnapshotNotifications, Notification
from floodmark.packing import FEW
from floodmark.snapshots.context import SnapshotContext
from floodmark.snapshots.excluded_tables import GONE, NO_KEY, RETRIES, ExcludedTable
from floodmark.snapshots.incremental.batch_sizing import BatchRows, BatchSizing
from floodmark.snapshots.incremental.state import IncrementalState, KeyRange, TableRun
from floodmark.snapshots.patience import PutOff
from floodmark.snapshots.reports import Report, TaskReports

log = get_logger(__name__)

MARKER = "incremental"
SMALLER = 16
"""Factor by which the chunks of a table shrink if reading it takes too long."""
GROWTH = 2
LONGEST = 2.0
"""How long finding the ranges of a micro-batch may take, as a multiple of its target time."""
MOST_SIGNALS = 20
"""How many ids are kept of signals that ask for the same."""

_Asked = tuple[int, str | None, str]
"""What a signal asks for: a table, the column to cut it by, and the condition on its rows."""


class IncrementalEngine:
    """Plans the chunks of incremental snapshots.

    Args:
        context: the context that the snapshot engines share.
        notifications: creates the notifications.
        sizing: how much it reads.
        isolate: whether a table that fails is excluded; otherwise the error is raised.

    Attributes:
        names: how users may write the names of tables.
    """

    def __init__(
        self,
        context: SnapshotContext,
        notifications: IncrementalSnapshotNotifications,
        sizing: BatchSizing,
        isolate: bool,
    ) -> None:
        self.names = context.names
        self._tables = context.source.tables
        self._snapshots = context.source.snapshots
        self._notify = context.notify
        self._excluded_tables = context.excluded
        self._notifications = notifications
        self._isolate = isolate
        self._least = sizing.least
        self._tasks = sizing.tasks
        self._longest_s = LONGEST * sizing.target_s
        self._rows = BatchRows(sizing)
        self._point: ReadPoint | None = None
        self._settled = False
        self._captured: set[int] | None = None
        self._put_off = PutOff()
        self._locked: dict[int, PutOff] = {}
        self._sizes: dict[int, int] = {}
        self._limits: dict[int, int] = {}
        self._slow_conditions: set[tuple[int, str]] = set()
        self._queued: tuple[list[TableRun], int, dict[_Asked, TableRun]] = ([], 0, {})

    def tables(self) -> list[CapturedTable]:
        """Return the tables that can be read."""
        return self._tables.captured()

    def queue(
        self,
        state: IncrementalState,
        table: CapturedTable,
        surrogate: str | None = None,
        condition: str = "",
        signal: str = "",
    ) -> None:
        """Queue a table, unless the same request is waiting already.

        Args:
            state: is changed.
            table: one of ``tables``.
            surrogate: a column to read by instead of the key.
            condition: the condition on the rows; empty: all rows.
            signal: the id of the signal that asks for it.
        """
        asked = (table.oid, surrogate, condition)
        waiting = self._waiting(state)
        if asked in waiting:
            if len(waiting[asked].signals) < MOST_SIGNALS:
                waiting[asked].signals.append(signal)
            return
        if self._captured is not None:
            self._captured.add(table.oid)
        run = TableRun(table.published, table.oid, table.file, None, surrogate, condition, table.rows, described=False)
        run.signals.append(signal)
        waiting[asked] = run
        if len(state.runs) < FEW:
            self._describe(run)
        state.runs.append(run)
        self._excluded_tables.resume(table.oid, table.published)
        self._limits.pop(table.oid, None)

    def _waiting(self, state: IncrementalState) -> dict[_Asked, TableRun]:
        """Return the waiting requests; cached, since thousands of tables may be queued one after the other."""
        runs, number, waiting = self._queued
        if runs is not state.runs or number != len(runs):
            waiting = {(run.oid, run.surrogate, run.condition): run for run in state.runs if not run.begun}
        # `queue` appends one run next; any other length means that the list has changed elsewhere.
        self._queued = (state.runs, len(state.runs) + 1, waiting)
        return waiting

    def _describe(self, run: TableRun) -> None:
        """Look up the file and the key of a table before it is read."""
        file = self._tables.fingerprints([run.oid]).get(run.oid)
        if file is None or (self._captured is not None and run.oid not in self._captured):
            run.outcome = "SKIPPED"
            return
        key = self._tables.key_of(run.oid, run.surrogate)
        run.described, run.file = True, file
        if key is None:
            run.outcome = "NO_PRIMARY_KEY"
        else:
            run.key, run.nulls = key, key.nulls
            self._check_condition(run)

    def _check_condition(self, run: TableRun) -> None:
        """Reject a table whose condition can't be used."""
        try:
            self._filter(run)
        except ConditionError as exc:
            log.warning("condition_refused", table=run.name, error=str(exc))
            run.outcome, run.error = "SQL_EXCEPTION", str(exc)
        except SourceStateError as exc:
            # For example, the table is gone by now, which is detected when it is read.
            log.info("condition_is_not_checked", table=run.name, error=str(exc))

    def leave_out(self, run: TableRun, why: str) -> None:
        """Exclude a new table whose rows are not read, so that this is reported."""
        if run.owed:
            self._excluded_tables.add(ExcludedTable(run.name, run.oid, "incremental", why))

    def resume(self, state: IncrementalState, reports: TaskReports) -> IncrementalState:
        """Return the state after its batch has been delivered; the given one stays as it is.

        Args:
            state: the state with the batch.
            reports: the reports of the batch's tasks.
        """
        state = state.copy()
        self._rows.delivered(reports.seconds)
        if state.runs:
            self._settle(state, reports)
        if not state.active:
            self.release()
        elif self._settled:
            self._let_go()
        return state

    def _settle(self, state: IncrementalState, reports: TaskReports) -> None:
        read = {chunk.run for chunk in state.batch}
        failed = self._settle_batch(state, reports)
        for index in read - set(failed):
            self._grow(state.runs[index])
        for index, report in failed.items():
            self._take_failure(state.runs[index], report)
        try:
            self._check_tables(state)
        except StatementTimeoutError as exc:
            self.put_off(exc)

    def _take_failure(self, run: TableRun, report: Report) -> None:
        if report.outcome == "locked":
            self._leave_locked(run, LockTimeoutError(report.error))
            return
        if report.outcome == "slow":
            # After three such steps a chunk is only a few rows.
            self._limits[run.oid] = max(self._sizes.get(run.oid, self._least) // SMALLER, 1)
            if not self._isolate and run.failures >= RETRIES:
                raise SourceStateError(f"The snapshot of {run.name} takes too long: {report.error}")
        self._count_failure(run, report.error)

    def put_off(self, error: StatementTimeoutError) -> None:
        """Plan nothing for a while, so that the stream goes on."""
        self._put_off.now("incremental snapshots", error)

    def ready(self, state: IncrementalState) -> bool:
        """Return whether chunks can be planned now."""
        return state.active and not self._put_off and any(not run.finished and self._free(run) for run in state.runs)

    def _free(self, run: TableRun) -> bool:
        return not self._locked.get(run.oid, False)

    def _leave_locked(self, run: TableRun, error: LockTimeoutError) -> None:
        """Postpone a table that another session has locked; this doesn't count as a failure of the table."""
        self._locked.setdefault(run.oid, PutOff()).now(f"the snapshot of {run.name}", error)

    def _grow(self, run: TableRun) -> None:
        """Read more rows at a time of a table that took too long before."""
        limit = self._limits.pop(run.oid, None)
        if limit is not None and limit < self._rows.number:
            self._limits[run.oid] = GROWTH * limit

    def _check_tables(self, state: IncrementalState) -> None:
        """Check which tables were altered, dropped or finished."""
        if any(run.redo for run in state.runs):
            # A table that could not be read may have been renamed to a name that the filters don't match.
            self._captured = None
        # With very many tables, the others are checked when they are about to be read.
        checked = [run for index, run in enumerate(state.runs) if not run.outcome and (run.begun or index < FEW)]
        files = self._tables.fingerprints(sorted({run.oid for run in checked}))
        for run in checked:
            if run.described and files.get(run.oid, run.file) != run.file:
                self._follow(run, files[run.oid])
        if self._captured is None:
            # Otherwise it only changes with the options, that is when the query is restarted.
            self._captured = {table.oid for table in self.tables()}
            files = {oid: file for oid, file in files.items() if oid in self._captured}
        for run in checked:
            if not run.outcome and run.oid not in files:
                run.outcome = "SKIPPED"
        self._notify_finished(state)

    def _settle_batch(self, state: IncrementalState, reports: TaskReports) -> dict[int, Report]:
        return state.settle_batch(reports)

    def _notify_finished(self, state: IncrementalState) -> None:
        """Send the notifications of finished tables, and remove them from the state."""
        for index, run in enumerate(state.runs):
            if not run.finished:
                continue
            tables = list(dict.fromkeys([run.name, *(other.name for other in state.runs[index:])]))
            read = run.chunks > 0 or run.top is not None
            status = run.outcome or ("SUCCEEDED" if read else "EMPTY")
            told = self._notifications.table_completed(state.name, tables, run.name, run.rows, status)
            self._notify(replace(told, asked_by=tuple(run.signals)))
            if run.outcome in ("NO_PRIMARY_KEY", "SKIPPED", "UNKNOWN_SCHEMA"):
                self.leave_out(run, NO_KEY if run.outcome == "NO_PRIMARY_KEY" else GONE)
        left = [run for run in state.runs if not run.finished]
        if state.runs and not left:
            self._notify(self._notifications.completed(state.name))
            # A paused snapshot is completed, too, if its tables are gone.
            state.paused = False
        state.runs = left

    def reach(self, state: IncrementalState, after: str) -> tuple[str, str]:
        """Return the position that the log must reach before chunks can be planned.

        Args:
            state: the state without a batch.
            after: where the micro-batch's log begins.

        Returns:
            The position after which the log must lie in one micro-batch, and the position to reach.
        """
        del state, after
        if self._point is None or not self._point.alive():
            self.release()
            self._point = self._snapshots.open_unsettled()
        return self._point.position, self._point.position

    def plan(self, state: IncrementalState, after: str) -> bool:
        """Put the next chunks into the state's batch, at the read point that was reached.

        Args:
            state: the state without a batch.
            after: where the micro-batch's log begins.

        Returns:
            False if the read point can't be used.
        """
        assert self._point is not None
        if not self._point.settle(after):
            log.info("read_point_taken_again", position=self._point.position)
            self.release()
            return False
        self._settled = True
        self._rows.begin()
        began_at = time.monotonic()
        state.position = self._point.position
        state.token = self._point.token
        for notification in self._fill(state, self._point, self._isolate):
            self._notify(notification)
        self._rows.planned(self._rows.number, time.monotonic() - began_at)
        return True

    def read_ahead(self, state: IncrementalState, after: str) -> None:
        """Read what the next micro-batch needs while the tasks of the last one run, if this process reads.

        The connector must not be used otherwise until ``wait`` returns.

        Args:
            state: the state with the last micro-batch's chunks.
            after: where its log ends.
        """

    def wait(self) -> None:
        """Wait until reading ahead has finished."""

    def _fill(self, state: IncrementalState, point: ReadPoint, isolate: bool) -> list[Notification]:
        """Put the next chunks into the state's batch; return the notifications of them."""
        told: list[Notification] = []
        rows = self._rows.number
        until = time.monotonic() + self._longest_s
        for index, run in enumerate(state.runs):
            # The stream waits meanwhile, even for thousands of tables that have no rows or can't be read.
            if rows <= 0 or (index > 0 and time.monotonic() > until):
                break
            if run.finished or not self._free(run):
                continue
            try:
                rows -= self._take(state, index, run, rows, point)
            except LockTimeoutError as exc:
                self._leave_locked(run, exc)
                break
            except StatementTimeoutError as exc:
                if self._isolate and not isolate:
                    raise
                self._take_failure(run, Report("incremental", (), "slow", error=str(exc)))
                break
            except SourceStateError as exc:
                # A condition that an earlier version accepted must not end the query at each start.
                if not isolate and not isinstance(exc, ConditionError):
                    raise
                self._count_failure(run, str(exc))
            else:
                told += self._progress(state, run)
        return told

    def _count_failure(self, run: TableRun, error: str) -> None:
        """Retry a failed table with the next micro-batch, or exclude it after too many failures; the others go on."""
        run.failures += 1
        run.error = error
        if self._excluded_tables.failed(ExcludedTable(run.name, run.oid, "incremental", error), run.failures):
            run.outcome = "SQL_EXCEPTION"
            run.redo = []

    def _progress(self, state: IncrementalState, run: TableRun) -> list[Notification]:
        if run.after is None:
            return []
        tables = [run.name, *(name for name in state.tables if name != run.name)]
        return [self._notifications.in_progress(state.name, tables, run.name, run.top, run.after)]

    def chunks(self, state: IncrementalState) -> Sequence[Chunk]:
        """Return the chunks of the state's batch, as readers take them."""
        lost = not self._holds(state)
        described = self._tables.describe(sorted({state.runs[chunk.run].oid for chunk in state.batch}))
        result = []
        for number, chunk in enumerate(state.batch):
            run = state.runs[chunk.run]
            if run.oid not in described:
                continue
            try:
                part = self._chunk(run, chunk.range, described[run.oid])
            except SourceStateError as exc:
                # An earlier version accepted the condition, or the table is gone. Without a report the range counts as
                # not read.
                log.warning("condition_refused", table=run.name, error=str(exc))
                continue
            result.append(replace(part, token=state.token, position=state.position, lost=lost, number=(number,)))
        return result

    def _chunk(self, run: TableRun, span: KeyRange, table: DescribedTable) -> KeyRangeChunk:
        """Return a chunk without its read point."""
        assert run.key is not None, "a table is described before it is read"
        return KeyRangeChunk(
            # A statement that the options give for the table is for initial snapshots only.
            table=replace(table, statement=None),
            file=run.file,
            key=run.key,
            after=span.after,
            upto=span.upto,
            since=span.since,
            condition=self._filter(run),
            marker=MARKER,
            streams=True,
        )

    def _filter(self, run: TableRun) -> str:
        """Return the condition on a table's rows as SQL; the state has the signal's own text, checked again here."""
        return self._tables.row_filter(run.oid, run.condition) if run.condition else ""

    def release(self) -> None:
        """Release all read points."""
        self._let_go()

    def _let_go(self) -> None:
        """Release the read point of the last micro-batch."""
        if self._point is not None:
            self._point.release()
            self._point = None
        self._settled = False

    def idle(self) -> None:
        """Forget when the last micro-batch began: now there is nothing to read."""
        self._rows.idle()

    def _take(self, state: IncrementalState, index: int, run: TableRun, rows: int, point: ReadPoint) -> int:
        """Plan up to about ``rows`` rows of a table; return how many."""
        if not run.described:
            self._describe(run)
            if run.outcome:
                return 0
        asked = (run.oid, run.condition)
        if asked not in self._slow_conditions:
            before, chunks = run.copy(), len(state.batch)
            try:
                return self._take_ranges(state, index, run, rows, self._ranges(point, run, self._filter(run)))
            except LockTimeoutError:
                raise
            except StatementTimeoutError:
                if not run.condition:
                    raise
                # Matching rows may be far apart. Ranges of the key alone are found in the index.
                log.warning("condition_is_slow", table=run.name, next="the key's ranges are cut without it")
                self._slow_conditions.add(asked)
                vars(run).update(vars(before))
                del state.batch[chunks:]
        return self._take_ranges(state, index, run, rows, self._ranges(point, run, ""))

    def _ranges(self, point: ReadPoint, run: TableRun, condition: str) -> KeyRanges:
        assert run.key is not None, "a table is described before it is read"
        return point.key_ranges(run.oid, run.key, condition)

    def _take_ranges(self, state: IncrementalState, index: int, run: TableRun, rows: int, ranges: KeyRanges) -> int:
        if not run.begun:
            run.top = ranges.last()
            run.begun = True
        limit = self._limits.get(run.oid)
        if limit is not None:
            rows = min(rows, limit * self._tasks)
            upto = run.redo[0].upto if run.redo else None
            if upto is not None:
                state.split_redo(index, ranges.bounds(run.redo[0].after, upto, limit, self._tasks))
        least = self._sizes[run.oid] = min(self._least, limit or self._least)
        taken = least * state.take_redo(index, max(rows // least, 1))
        if run.nulls and rows > taken:
            state.take_nulls(index)
            taken += least
        if rows > taken and run.top is not None and run.after != run.top:
            left = rows - taken
            size = self._sizes[run.oid] = max(least, left // self._tasks)
            bounds = ranges.bounds(run.after, run.top, size, min(max(left // size, 1), self._tasks))
            state.take(index, bounds)
            taken += max(sum(number for _, number in bounds), least)
        return taken

    def _holds(self, state: IncrementalState) -> bool:
        """Return whether the read point of the state's batch can still be read from."""
        return self._point is not None and self._point.token == state.token and self._point.alive()

    def _follow(self, run: TableRun, file: str) -> None:
        """Update the state of a table that was altered or rewritten."""
        run.file = file
        if run.top is None:
            # A table that was rewritten after the read point may have looked empty.
            run.begun = False
        key = self._tables.key_of(run.oid, run.surrogate)
        if key == run.key:
            return
        log.warning("incremental_snapshot_starts_again", table=run.name, reason="its key has changed")
        run.begun, run.after, run.top, run.redo = False, None, None, []
        if key is None:
            run.outcome = "NO_PRIMARY_KEY"
        else:
            run.key, run.nulls = key, key.nulls
