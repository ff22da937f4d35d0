"""Runs a snapshot: holds the read point, plans chunks, and goes on at another read point after a loss."""

from __future__ import annotations

import time
from collections.abc import Container, Sequence
from dataclasses import replace

from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.chunk import Chunk, PageChunk
from floodmark.connectors.contract.read_points import ReadPoint
from floodmark.errors import ConditionError, SignalError, SourceStateError
from floodmark.logger import get_logger
from floodmark.notifications.records import InitialSnapshotNotifications
from floodmark.signals.records import ExecuteSnapshot, asked_tables
from floodmark.snapshots.context import SnapshotContext
from floodmark.snapshots.excluded_tables import GONE, ExcludedTable, absent
from floodmark.snapshots.reports import Part, TaskReports
from floodmark.snapshots.state import Found, SnapshotState, TableState, first_state, rebase, settle_batch, take_units

log = get_logger(__name__)

FIRST_CHUNKS = 4
SMALL_TABLES = 64
"""How many small tables count as one chunk."""


class SnapshotEngine:
    """Plans the chunks of one snapshot.

    Args:
        context: the context that the snapshot engines share.
        notifications: creates the notifications.
        part: the part under which its chunks are reported.
        target_s: how long a micro-batch with chunks should take.
        max_chunks: maximum number of chunks in a micro-batch.
    """

    def __init__(
        self,
        context: SnapshotContext,
        notifications: InitialSnapshotNotifications,
        part: Part,
        target_s: float,
        max_chunks: int,
    ) -> None:
        self._names = context.names
        self._tables = context.source.tables
        self._snapshots = context.source.snapshots
        self._notify = context.notify
        self._excluded_tables = context.excluded
        self._notifications = notifications
        self._part: Part = part
        self._target_s = target_s
        self._max_chunks = max(max_chunks, 1)
        self._point: ReadPoint | None = None
        self._chunks = FIRST_CHUNKS
        self._planned_at: float | None = None
        self._started = False
        self._unseen: set[int] = set()

    def begin(self, point: ReadPoint) -> SnapshotState:
        """Return the state of a snapshot of all captured tables at a read point."""
        self.release()
        self._point = point
        tables = self._tables.to_snapshot()
        log.info("snapshot_begins", tables=len(tables), position=point.position)
        self._notify(self._notifications.started())
        return first_state(point.position, point.token, point.visible, tables)

    def begin_blocking(self, point: ReadPoint, action: ExecuteSnapshot) -> SnapshotState:
        """Return the state of the snapshot that a signal requests.

        As in Debezium, a condition of a blocking snapshot is a whole SELECT statement.
        """
        self._point = point
        asked = asked_tables(action, self._tables.captured(sized=True), self._names)
        chosen: list[CapturedTable] = []
        statements: dict[int, str] = {}
        refused: list[str] = []
        for table in (table for tables in asked.values() for table in tables):
            try:
                statement = action.filter_of(table.published, self._names)
                if statement:
                    self._check(table.oid, statement)
                    statements[table.oid] = statement
            except (ConditionError, SignalError) as exc:
                log.warning("condition_refused", signal=action.id, table=table.published, error=str(exc))
                refused.append(table.published)
            else:
                self._excluded_tables.resume(table.oid, table.published)
                chosen.append(replace(table, file="", units=1) if statement else table)
        chosen = [table for table in chosen if table.published not in refused]
        for name, tables in asked.items():
            if not tables and action.owed:
                self._leave_out(ExcludedTable(name, absent(name), "blocking", GONE))
        self._notify(self._notifications.started())
        for name in dict.fromkeys(refused):
            self._notify(self._notifications.table_failed(name))
        log.info("blocking_snapshot_begins", signal=action.id, tables=len(chosen), position=point.position)
        return first_state(point.position, point.token, point.visible, chosen, statements)

    def _found(self, state: SnapshotState) -> dict[int, Found]:
        """Return the tables that exist now."""
        tables = self._tables.captured(sized=True) if state.blocking else self._tables.to_snapshot()
        found = {table.oid: Found(table.units, table.file, table.rows) for table in tables}
        return found | {table.oid: Found(1, "") for table in state.tables if table.statement and table.oid in found}

    def settle(self, state: SnapshotState, reports: TaskReports) -> None:
        """Apply the reports of the last batch: what was delivered counts as read.

        Args:
            state: is changed; what is left in its batch was read without the read point.
            reports: the reports of the batch's tasks.
        """
        # Before anything is changed, since the connection may be lost.
        captured = self._captured(state)
        if not state.batch:
            self._take_back(state)
            self._notify_finished(state, captured)
            return
        self._unseen = {
            state.tables[state.batch[number][0]].oid
            for number in reports.blank(self._part)
            if number < len(state.batch)
        }
        for index, error in settle_batch(state, reports, self._part, self._tables.chunk_units()).items():
            self._count_failure(state, index, error)
        self._take_back(state)
        self._notify_finished(state, captured)

    def _captured(self, state: SnapshotState) -> list[str]:
        """Return the tables that a finished one is reported with: all captured ones, also those that aren't read.

        As in Debezium: the signal table is captured, and in no initial snapshot.
        """
        names = [table.name for table in state.tables]
        return names if state.blocking else sorted({*names, *self._tables.names()})

    def _count_failure(self, state: SnapshotState, index: int, error: str) -> None:
        """Retry a failed table with the next micro-batch, or exclude it after too many failures; the others go on."""
        table = state.tables[index]
        table.failures += 1
        if self._excluded_tables.failed(self._excluded(state, table, error), table.failures):
            table.pending, table.outcome = [], "SQL_EXCEPTION"
            self._notify(self._notifications.table_failed(table.name))

    def _notify_finished(self, state: SnapshotState, captured: Sequence[str]) -> None:
        partly = {index for index, _ in state.batch}
        names = [table.name for table in state.tables]
        for index, table in enumerate(state.tables):
            if not table.outcome and not table.pending and index not in partly:
                table.outcome = "SUCCEEDED"
                if not table.all_units:
                    self._notify(self._notifications.in_progress(table.name, names))
                self._notify(self._notifications.table_completed(table.name, captured, table.read))

    def usable(self, state: SnapshotState) -> bool:
        """Return whether the state can go on at its read point; tables that are gone are removed from it.

        It can't if a table has another structure now, nor if one had another structure at the read point, which then
        shows none of its rows: the table was altered while the read point was opened.
        """
        found = self._found(state)
        self._pass_over_gone(state, found)
        other = any(
            table.oid in found and (found[table.oid][1] != table.file or table.oid in self._unseen)
            for index, table in enumerate(state.tables)
            if table.pending or any(index == handed for handed, _ in state.batch)
        )
        return self.holds(state) and not other and not state.batch

    def revive(self, state: SnapshotState) -> SnapshotState:
        """Return the state at a read point that is held, opening a new one if the last is lost."""
        return state if self.usable(state) else self.move(state, self._snapshots.open())

    def move(self, state: SnapshotState, point: ReadPoint) -> SnapshotState:
        """Return the state at another read point."""
        return rebase(state, point.position, point.token, point.visible, self._take_point(state, point))

    def _take_point(self, state: SnapshotState, point: ReadPoint) -> dict[int, Found]:
        """Go on at another read point; remove tables that are gone, and return those that exist now."""
        self.release()
        self._point = point
        log.info("snapshot_goes_on", position=point.position)
        found = self._found(state)
        self._pass_over_gone(state, found)
        return found

    def _pass_over_gone(self, state: SnapshotState, found: Container[int]) -> None:
        partly = {index for index, _ in state.batch}
        for index, table in enumerate(state.tables):
            if (table.pending or index in partly) and table.oid not in found:
                table.pending, table.outcome = [], "SKIPPED"
                self._leave_out(self._excluded(state, table, GONE))
        state.batch = [(index, span) for index, span in state.batch if state.tables[index].oid in found]

    def _take_back(self, state: SnapshotState) -> None:
        """Read tables again that were gone and are back: a table may be renamed only for a moment."""
        gone = [table for table in state.tables if table.outcome == "SKIPPED"]
        there = {table.oid for table in self._tables.captured()} if gone else set()
        for table in gone:
            if table.oid in there:
                table.outcome = ""
                table.pending, table.done, table.keys, table.read = table.all_units, [], {}, 0
                self._excluded_tables.resume(table.oid, table.name)

    def give_up(self, state: SnapshotState) -> None:
        """Exclude the tables that have not been read completely, since the snapshot is given up."""
        for table in state.tables:
            if table.pending:
                self._excluded_tables.add(
                    self._excluded(state, table, "Its snapshot was given up, since snapshot.mode says so.")
                )
        self._notify(self._notifications.aborted())

    def _excluded(self, state: SnapshotState, table: TableState, why: str) -> ExcludedTable:
        return ExcludedTable(table.name, table.oid, "blocking" if state.blocking else "initial", why)

    def _leave_out(self, table: ExcludedTable) -> None:
        self._excluded_tables.add(table)
        self._notify(self._notifications.table_skipped(table.name))

    def holds(self, state: SnapshotState) -> bool:
        """Return whether the state's read point can still be read from."""
        if self._point is None:
            self._point = self._snapshots.reopen(state.token)
        point = self._point
        return point is not None and point.token == state.token and point.alive()

    def plan(self, state: SnapshotState, everything: bool) -> None:
        """Put the next chunks into the state's batch.

        Args:
            state: the state, whose read point is held.
            everything: whether to plan all chunks.
        """
        now = time.monotonic()
        # The first micro-batch starts the tasks' processes, so its time shows nothing about its chunks.
        if self._planned_at is not None and self._started:
            took = now - self._planned_at
            if took < self._target_s / 2:
                self._chunks = min(2 * self._chunks, self._max_chunks)
            elif took > 2 * self._target_s:
                self._chunks = max(self._chunks // 2, 1)
        self._started = self._planned_at is not None
        self._planned_at = now
        self._refuse_statements(state)
        untouched = {index for index, table in enumerate(state.tables) if table.pending and not table.done}
        self._take(state, everything)
        names = [table.name for table in state.tables]
        for index in sorted(untouched & {index for index, _ in state.batch}):
            self._notify(self._notifications.in_progress(names[index], names))

    def _refuse_statements(self, state: SnapshotState) -> None:
        """Leave out tables whose statements can't be used: an earlier version accepted them, or a column is gone."""
        for table in state.tables:
            try:
                if table.pending and table.statement:
                    self._check(table.oid, table.statement)
            except ConditionError as exc:
                log.warning("condition_refused", table=table.name, error=str(exc))
                table.pending, table.outcome = [], "SQL_EXCEPTION"
                self._notify(self._notifications.table_failed(table.name))

    def _take(self, state: SnapshotState, everything: bool) -> None:
        size = self._tables.chunk_units()
        take_units(state, 1 << 60 if everything else self._chunks * size, max(size // SMALL_TABLES, 1))

    def chunks(self, state: SnapshotState) -> Sequence[Chunk]:
        """Return the chunks of the state's batch, as readers take them."""
        lost = not self.holds(state)
        oids = sorted({state.tables[index].oid for index, _ in state.batch})
        described = self._tables.describe(oids)
        size = self._tables.chunk_units()
        result: list[Chunk] = []
        for number, (index, (first, last, view)) in enumerate(state.batch):
            table = state.tables[index]
            if table.oid not in described:
                continue
            found = described[table.oid]
            if state.blocking:
                # A statement that the options give for the table is for initial snapshots only.
                try:
                    found = replace(found, statement=self._statement(table))
                except SourceStateError:
                    continue  # without a report the table counts as not read, and planning refuses it
            whole = PageChunk(
                table=found,
                file=table.file,
                token=state.token,
                position=state.position,
                lost=lost,
                since=None if view < 0 else state.views[view],
                began=state.views[0] if len(state.views) > 1 else None,
                streams=self._part == "lane",
                first=first,
                last=last,
            )
            for begin in range(first, last, size):
                end = min(begin + size, last)
                share = (end - begin) / size
                result.append(replace(whole, number=(number, begin), first=begin, last=end, share=share))
        return result

    def _check(self, oid: int, statement: str) -> None:
        """Verify that a signal's statement can be used; a missing table is detected when it is read.

        Raises:
            ConditionError: it can't.
        """
        try:
            self._tables.row_query(oid, statement)
        except ConditionError:
            raise
        except SourceStateError as exc:
            log.info("condition_is_not_checked", error=str(exc))

    def _statement(self, table: TableState) -> str | None:
        """Return the statement that a signal requests as SQL; the state has the signal's own text."""
        return self._tables.row_query(table.oid, table.statement) if table.statement else None

    def complete(self) -> None:
        """Release the read point, since everything has been read, and send the notification of that."""
        self.release()
        self._notify(self._notifications.completed())

    def give_way(self) -> None:
        """Release what another session may wait for while it blocks the source; nothing here."""

    def release(self) -> None:
        """Release the read point."""
        self._unseen = set()
        if self._point is not None:
            self._point.release()
            self._point = None
