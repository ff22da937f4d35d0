"""Plans what each micro-batch holds.

The planner lives in Spark's only long-lived source process, and knows connectors only by their protocols.
"""

from __future__ import annotations

import math
import os
import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from floodmark.capture.gaps import Gap
from floodmark.capture.retry import RetryPolicy
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.base import Connector
from floodmark.errors import (
    ConnectError,
    FloodmarkError,
    ForkedLogError,
    LockTimeoutError,
    LogGoneError,
    LoginError,
    NotReadyError,
    StatementTimeoutError,
)
from floodmark.extensions.snapshotter import Snapshotter
from floodmark.logger import get_logger
from floodmark.notifications.channels import notification_channels
from floodmark.notifications.records import IncrementalSnapshotNotifications, InitialSnapshotNotifications, Notification
from floodmark.signals.files import signal_channels
from floodmark.signals.records import ExecuteSnapshot, Signal, in_order_of_time
from floodmark.snapshots.context import SnapshotContext
from floodmark.snapshots.control import SignalControl
from floodmark.snapshots.excluded_tables import ExcludedTable, ExcludedTables
from floodmark.snapshots.incremental.batch_sizing import BatchSizing
from floodmark.snapshots.incremental.state import IncrementalState
from floodmark.snapshots.incremental.windows import make_engine
from floodmark.snapshots.initial.read_ahead import make_snapshot_engine
from floodmark.snapshots.patience import PutOff
from floodmark.snapshots.reports import LastReports, ReportBox
from floodmark.spark.stream.captured_log import IDLE_WAIT_S, CapturedLog
from floodmark.spark.stream.catch_up import CatchUp, CatchUpState
from floodmark.spark.stream.gaps import with_gaps
from floodmark.spark.stream.heartbeats import Heartbeats
from floodmark.spark.stream.offsets import Offset, following
from floodmark.spark.stream.partitions import ChunkPartition, LogPartition, WindowPartition
from floodmark.spark.stream.row_schema import RowSchema
from floodmark.spark.stream.startup import Start, decide, refuse_another_source, refuse_to_go_back
from floodmark.spark.stream.tasks import MicroBatchTasks, Task

log = get_logger(__name__)

WAITING_TARGET_S = 4.0
TASKS_A_CPU = 2
READ_POINTS = 5
NEW_TABLES_S = 10.0
LATE_TABLES_S = 1.0
NO_WAIT_S = 0.01
UNSETTLED_WAIT_S = 0.05
UNSETTLED_PATIENCE_S = 10.0
ENDING_PATIENCE_S = 30.0
SHOWN_ASIDE = 20
"""How many excluded tables a report names; the offset has all of them."""


class Planner:
    """Plans the micro-batches of one query.

    Args:
        options: the source's options.
        connector: the source.
        retry: the reconnect policy of capture.
        owner: the name of the source's directory below ``state.dir``.
        snapshotter: decides when a snapshot is taken and whether the log follows.
        row_schema: verifies that the tables of typed rows still have the query's columns.
    """

    def __init__(
        self,
        options: CommonOptions,
        connector: Connector,
        retry: RetryPolicy,
        owner: str,
        snapshotter: Snapshotter,
        row_schema: RowSchema,
    ) -> None:
        self._options = options
        self._connector = connector
        self._retry = retry
        self._log = CapturedLog(options, connector, retry, owner)
        sizing = BatchSizing(
            options.snapshot_batch_target_ms / 1000,
            options.incremental_snapshot_chunk_size,
            options.max_batch_rows,
            TASKS_A_CPU * (os.cpu_count() or 1),
        )
        self._told: list[Notification] = []
        self._excluded_tables = ExcludedTables()
        self._last = LastReports(ReportBox(options.state_dir, owner))
        self._initial = InitialSnapshotNotifications(options.topic_prefix)
        context = SnapshotContext(connector, self._told.append, self._excluded_tables)
        waiting_s = max(sizing.target_s, WAITING_TARGET_S)
        store = self._log.store
        self._engine = make_snapshot_engine(context, self._initial, "consistent", waiting_s, options, store)
        engine = make_snapshot_engine(context, self._initial, "lane", sizing.target_s, options, store)
        self._catch_up = CatchUp(connector, self._log, engine)
        notifications = IncrementalSnapshotNotifications(options.topic_prefix)
        self._incremental = make_engine(context, notifications, sizing, options, store)
        self._tasks = MicroBatchTasks(
            options, owner, connector, self._log, self._engine, self._catch_up, self._incremental
        )
        self._control = SignalControl(self._incremental, notifications, self._told.append)
        self._channels = signal_channels(options, owner)
        self._listeners = notification_channels(options)
        self._snapshotter = snapshotter
        self._row_schema = row_schema
        self._answered = False
        self._delayed = False
        self._opened = False
        self._decided = False
        self._gone: LogGoneError | None = None
        self._gone_after = ""
        self._stream_at = 0.0
        self._ending = False
        self._target: str | None = None
        self._looked_at = 0.0
        self._late: frozenset[str] = frozenset()
        self._put_off = PutOff()
        self._planned: Offset | None = None
        self._heartbeats = Heartbeats(options, connector, lambda: self._log.started)

    def fix_target(self) -> None:
        """End the query where the log ends when the next micro-batch is planned, as ``availableNow`` requires."""
        self._ending, self._target = True, None

    def latest_offset(self, start: Offset, rows: int | None) -> Offset:
        """Return where the next micro-batch ends.

        Args:
            start: where it begins.
            rows: maximum number of log records in it; None: no limit.
        """
        self._planned = self._latest_offset(start, rows)
        return self._planned

    def _latest_offset(self, start: Offset, rows: int | None) -> Offset:
        self._incremental.wait()
        action = partial(self._first_offset, rows is None) if start.new else partial(self._next_in_time, start, rows)
        end = self._retry.run(action, "planning a micro-batch", partial(self._is_final, start.new))
        if self._options.format != "events" and not end.reads_tables:
            self._excluded_tables.prove_any_left(self._row_schema.tables)
        heartbeat = self._heartbeats.due(alone=end is start, ending=self._ending)
        gaps = with_gaps(start, end, self._connector.gaps.all())
        if end is start:
            if not start.ended:
                # A change that the source left out of its log never arrives, so check for that while nothing does.
                self._connector.prove_complete(start.oldest, self._ending)
            if heartbeat is None and all(gap in start.gaps for gap in gaps):
                return start
            # Keep the receipts, which are acknowledged when the next micro-batch is planned.
            end = following(start, taken=start.taken)
        # Only now, since planning may have been repeated, and listeners are notified once.
        for notification in self._told:
            for listener in self._listeners:
                listener.notify(notification)
        events = tuple(self._told) if "sink" in self._options.notification_enabled_channels else ()
        return replace(
            end,
            batch=uuid.uuid4().hex,
            notifications=events,
            aside=self._excluded_tables.tables,
            heartbeat=heartbeat,
            gaps=gaps,
            xmin=self._connector.oldest_transaction(),
            bookmark=self._connector.bookmark(end.oldest),
        )

    def _is_final(self, new: bool, error: ConnectError) -> bool:
        """Return whether an error before the query was opened is the user's mistake, not a fault to wait out.

        Args:
            new: whether the query has no checkpoint, so that no source has ever answered with its options.
            error: the connection error.
        """
        if self._opened or isinstance(error, NotReadyError):
            return False
        return isinstance(error, LoginError) or (new and not self._answered)

    def _next_in_time(self, start: Offset, rows: int | None) -> Offset:
        """Return where the next micro-batch ends: where it begins, if the source keeps planning waiting for too long.

        A query that ends by itself (``availableNow``) retries instead, since an empty micro-batch would end it before
        it has delivered everything.

        Raises:
            StatementTimeoutError: the source keeps such a query, or one that is being opened, waiting for too long.
        """
        patient_until = time.monotonic() + (ENDING_PATIENCE_S if self._ending else 0)
        while True:
            late = False
            try:
                end = self._next_offset(start, rows)
            except StatementTimeoutError as exc:
                impatient = time.monotonic() > patient_until
                if not self._opened or (self._ending and impatient):
                    raise
                # Nothing else can go on meanwhile; otherwise this would have been postponed where it happened.
                self._told.clear()
                if isinstance(exc, LockTimeoutError):
                    self._engine.give_way()
                log.warning("planning_waits", error=str(exc))
                end, late = start, self._ending
            if end is not start or not (late or self._anything_put_off(start)):
                return end
            if not late and time.monotonic() > patient_until:
                return end
            time.sleep(UNSETTLED_WAIT_S)

    def _anything_put_off(self, start: Offset) -> bool:
        state = start.incremental
        waits = state is not None and state.active and not self._incremental.ready(state)
        return bool(self._put_off or self._catch_up.put_off or waits)

    def _next_offset(self, start: Offset, rows: int | None) -> Offset:
        # Planning may be repeated, and then collects its notifications again.
        self._told.clear()
        self._excluded_tables.begin(start.aside)
        self._open(start)
        self._aim()
        for failure in self._last.look(start.batch).log_failures:
            self._excluded_tables.add(ExcludedTable(failure.table, failure.oid, "log", failure.error))
        remembered = self._acknowledge(start)
        # Decided once per start. Only a decision that led to an offset counts.
        decision = Start.GO_ON if self._decided else decide(self._snapshotter, start, self._gone is not None)
        if decision is Start.SNAPSHOT and start.catch_up is not None:
            # The catch-up stream has to end first.
            decision = Start.GO_ON
            decided = False
        else:
            decided = True
        # A snapshot that replaces a lost log includes the tables that exist then.
        begun = start if self._gone is not None else self._with_new_tables(start)
        end = self._carry_out(decision, begun, rows)
        self._decided = decided
        if end is begun:
            if begun == start and self._excluded_tables.tables == start.aside:
                return start
            end = following(begun)
        return replace(end, taken=(*remembered, *end.taken))

    def _aim(self) -> None:
        # Only once the connector knows the checkpoint, without which it may not know how its positions begin.
        if self._ending and self._target is None:
            self._target = self._connector.current_position()

    def _tables(self) -> tuple[str, ...]:
        return tuple(sorted(set(self._connector.table_names())))

    def _with_new_tables(self, start: Offset) -> Offset:
        """Return the offset, with snapshots added for tables that the filters didn't match before."""
        mode = self._options.snapshot_new_tables
        now = time.monotonic()
        pause_s = LATE_TABLES_S if self._late else NEW_TABLES_S
        if self._decided and ((mode == "off" and not self._late) or now - self._looked_at < pause_s):
            return start
        known = frozenset(start.known)
        self._looked_at = now
        try:
            self._late = self._connector.follow_tables(known)
            tables = tuple(name for name in self._tables() if name in known or name not in self._late)
        except StatementTimeoutError as exc:
            if not self._decided:
                raise
            log.warning("new_tables_are_not_looked_for", error=str(exc), again_in_s=pause_s)
            return start
        if not self._late.isdisjoint(known.difference(tables)):
            # They are different tables under known names, so they count as new at the next check.
            self._looked_at = -math.inf
        found = [name for name in tables if name not in known]
        if found and mode == "off":
            log.warning(
                "new_tables_are_not_read",
                tables=found,
                reason="snapshot.new.tables is off: their changes come, the rows that they held do not",
                cure="set snapshot.new.tables, or send an execute-snapshot signal that names them",
            )
        new = tuple(map(re.escape, found))
        if new and mode != "off":
            log.info("new_tables", tables=len(new), snapshot=mode)
            action = ExecuteSnapshot(f"new-tables-{uuid.uuid4()}", new, mode != "incremental", owed=True)
            if mode == "parallel" and start.catch_up is None:
                return replace(start, known=tables, catch_up=CatchUpState(action))
            if mode == "parallel":
                # Further new tables wait until those that are catching up have finished.
                return start
            if action.blocking:
                return replace(start, known=tables, blocking=(*start.blocking, action))
            state = self._resume(start)
            self._control.execute(state, action)
            return replace(start, known=tables, incremental=state)
        return replace(start, known=tables)

    def _carry_out(self, decision: Start, start: Offset, rows: int | None) -> Offset:
        if decision is Start.START_OVER:
            return self._start_over(start, rows is None)
        if decision is Start.SNAPSHOT:
            return self._during_snapshot(self._with_new_snapshot(start), rows)
        if decision is Start.GIVE_UP_SNAPSHOT:
            log.warning("snapshot_is_given_up", snapshotter=self._snapshotter.name)
            self._snapshotter.snapshot_aborted()
            assert start.snapshot is not None
            self._engine.give_up(start.snapshot)
            start = replace(start, snapshot=None)
        if start.snapshot is not None:
            return self._during_snapshot(start, rows)
        if not self._snapshotter.should_stream():
            return start if start.ended else replace(start, ended=True)
        if start.blocking and start.catch_up is None and not self._put_off:
            told = len(self._told)
            try:
                return self._begin_blocking(start, rows)
            except StatementTimeoutError as exc:
                del self._told[told:]
                self._engine.release()
                self._put_off.now("a blocking snapshot", exc)
        return self._after_snapshot(start, rows)

    def partitions(self, start: Offset, end: Offset) -> list[Task]:
        """Return the tasks of a micro-batch, even if an earlier process planned it."""
        self._planned = end
        self._incremental.wait()
        planned_before = not self._opened
        # A first micro-batch, or one after a gap, delivers no log: the log is needed only from its end on.
        whole = start.new or end.gap
        opening = partial(self._open, end if whole else start)
        self._retry.run(opening, "opening the source", partial(self._is_final, False))
        if planned_before and not whole and self._gone is None:
            self._retry.run(partial(self._prove_planned, start, end), "proving a planned micro-batch")
        if self._gone is not None:
            # What an earlier process planned can't be delivered any more; a new snapshot covers all of it.
            return []
        making = partial(self._tasks_of, start, end)
        tasks = self._retry.run(making, "planning the tasks of a micro-batch")
        if end.incremental is not None and end.incremental.batch and end.catch_up is None and not end.blocking:
            self._incremental.read_ahead(end.incremental, end.log)
        return tasks

    def _tasks_of(self, start: Offset, end: Offset) -> list[Task]:
        tasks = self._tasks.of(start, end)
        if self._options.format == "events":
            return tasks
        settled = self._row_schema.settled()
        only = self._options.format == "rows" and end.snapshot is not None and not end.snapshot.blocking
        for task in tasks:
            if isinstance(task, LogPartition):
                task.settled = settled
            elif isinstance(task, ChunkPartition | WindowPartition):
                task.required = only
        return tasks

    def commit(self, end: Offset) -> None:
        """Release what has been delivered; only here is the source allowed to discard log."""
        self._incremental.wait()
        self._log.confirm(end.oldest)

    def report(self) -> dict[str, Any] | None:
        """Return where the source's log ends and how far the query is behind it; None if the source is unavailable.

        While the log waits for a snapshot, the lag is that of the log after the last offset; if there is none, the lag
        is unknown, since rows are still waiting.
        """
        self._incremental.wait()
        reached, commit_s = self._log.reached
        planned = self._planned
        waits = planned is not None and planned.snapshot is not None
        if planned is not None and (waits or not reached):
            reached = planned.log
        try:
            end = self._connector.current_position()
            # All positions of a transaction are at its commit, so of a large one only what has been captured counts.
            lag = max(self._connector.lag_bytes(reached), self._log.waiting_bytes(reached)) if reached else 0
        except FloodmarkError:
            # The source is unavailable, or too slow to answer. Capture reconnects; a report must not end the query.
            return None
        seconds: float | None = round(max(time.time() - commit_s, 0.0), 3) if lag and commit_s else 0.0
        aside = planned.aside if planned is not None else ()
        return {
            "log": end,
            "lag_bytes": (lag or None) if waits else lag,
            "lag_seconds": None if waits else seconds,
            "phase": "streaming" if self._log.started else "snapshot",
            "capture_paused": self._log.paused,
            "tables_set_aside": len(aside),
            "set_aside": [table.name for table in aside[:SHOWN_ASIDE]],
        }

    def stop(self) -> None:
        """Release everything."""
        for channel in self._channels:
            channel.close()
        self._engine.release()
        self._catch_up.release()
        self._incremental.release()
        self._log.stop()
        self._connector.stop()

    def _first_offset(self, everything: bool) -> Offset:
        # Planning may be repeated, and then collects its notifications again.
        self._told.clear()
        self._log.create()
        source = self._connector.identity()
        self._answered = True
        snapshot = self._snapshotter.should_snapshot_data(False, False)
        if snapshot:
            self._delay_snapshot()
        log_position, point = self._connector.prepare(snapshot, None)
        self._opened = self._decided = True
        self._aim()
        if point is None:
            self._told.append(self._initial.skipped())
            ended = not self._snapshotter.should_stream()
            return Offset(source, log_position, ended=ended, known=self._tables())
        state = self._engine.begin(point)
        self._engine.plan(state, everything)
        return Offset(source, log_position, state, known=self._tables())

    def _with_new_snapshot(self, start: Offset) -> Offset:
        """Return the offset with a snapshot at a new read point; the log up to there is delivered first."""
        self._engine.release()
        self._delay_snapshot()
        return replace(start, snapshot=self._engine.begin(self._connector.read_point(begins=True)))

    def _start_over(self, start: Offset, everything: bool) -> Offset:
        """Begin a snapshot and leave out the log before it."""
        refuse_to_go_back(start.log, self._connector.current_position())
        self._engine.release()
        if start.snapshot is not None:
            self._snapshotter.snapshot_aborted()
        self._delay_snapshot()
        if self._gone is not None:
            self._connector.discard_lost_log()
            log_position, point = self._connector.prepare(True, None)
            assert point is not None
            option = f"snapshot.mode={self._options.snapshot_mode}"
            self._connector.gaps.add(Gap(self._gone_after, log_position, self._gone.what, option))
        else:
            point = self._connector.read_point(begins=True)
            log_position = point.position
        state = self._engine.begin(point)
        self._engine.plan(state, everything)
        self._gone = None
        return Offset(start.source, log_position, state, gap=True, known=self._tables())

    def _delay_snapshot(self) -> None:
        # Once, however often planning is repeated.
        if not self._delayed:
            time.sleep(self._options.snapshot_delay_ms / 1000)
        self._delayed = True

    def _open(self, offset: Offset) -> None:
        """Verify once that the checkpoint belongs to this source and that its log is available."""
        if self._opened:
            return
        refuse_another_source(offset.source, self._connector.identity())
        self._log.create()
        try:
            self._connector.prepare(False, offset.oldest, offset.bookmark, offset.known)
        except LogGoneError as exc:
            self._do_without_log(exc, offset.log)
        self._opened = True

    def _prove_planned(self, start: Offset, end: Offset) -> None:
        """Verify that what an earlier process planned can be delivered, so that nothing waits for a lost log."""
        try:
            self._connector.check_planned(end.oldest, end.bookmark)
        except LogGoneError as exc:
            self._do_without_log(exc, start.log)

    def _do_without_log(self, error: LogGoneError, after: str) -> None:
        """Go on without the log after a position, if a new snapshot may replace it."""
        if isinstance(error, ForkedLogError) or not self._snapshotter.should_snapshot_on_data_error():
            raise error
        log.warning("log_is_gone", error=error.what, snapshotter=self._snapshotter.name, next="a new snapshot")
        self._gone, self._gone_after = error, after

    def _during_snapshot(self, start: Offset, rows: int | None) -> Offset:
        assert start.snapshot is not None
        # Work on a copy: planning starts over from this offset if the source becomes unavailable meanwhile.
        state = start.snapshot.copy()
        self._engine.settle(state, self._last.reports)
        if not state.pending and not state.batch:
            return self._end_snapshot(start)
        state = self._engine.revive(state)
        if not state.pending:
            return self._end_snapshot(start)
        state.batch = []
        incremental = self._resume(start)
        if start.log < state.position:
            self._log.start(start.oldest)
            end = self._log.wait_for(start.log, state.position, rows)
            heeded = self._heed(start, end, incremental)
            return following(start, log=end, snapshot=state, **heeded)
        self._engine.plan(state, rows is None)
        return following(start, snapshot=state, incremental=None if incremental.empty else incremental)

    def _end_snapshot(self, start: Offset) -> Offset:
        self._engine.release()
        log.info("snapshot_ends", position=start.log)
        self._snapshotter.snapshot_completed()
        self._heartbeats.after_snapshot()
        self._stream_at = time.monotonic() + self._options.streaming_delay_ms / 1000
        ended = not self._snapshotter.should_stream()
        self._told.append(self._initial.completed())
        return following(start, snapshot=None, ended=ended)

    def _after_snapshot(self, start: Offset, rows: int | None) -> Offset:
        time.sleep(max(self._stream_at - time.monotonic(), 0))
        self._log.start(start.oldest)
        state, catch_up = self._resume(start), start.catch_up
        if catch_up is not None:
            # One read point at a time: incremental snapshots go on when the catch-up stream has ended.
            self._incremental.release()
            if catch_up.position:
                end = self._without_chunks(start.log, rows, NO_WAIT_S)
                catch_up = self._catch_up.step(catch_up, end, rows, self._last.reports)
            else:
                end, catch_up = self._catch_up.begin(catch_up, start.log, rows)
        elif self._incremental.ready(state):
            end, state = self._with_chunks_in_time(start.log, state, rows)
        else:
            self._incremental.idle()
            end = self._without_chunks(start.log, rows)
        polled = self._poll(bool(self._log.signals(start.log, end)))
        heeded = self._heed(start, end, state, polled)
        result = following(
            start,
            log=end,
            catch_up=catch_up,
            taken=tuple(signal.receipt for signals in polled for signal in signals),
            **heeded,
        )
        return start if result == following(start) and not self._told else result

    def _begin_blocking(self, start: Offset, rows: int | None) -> Offset:
        """Deliver the log up to a read point and begin the snapshot there; the rest of the log waits for it."""
        self._log.start(start.oldest)
        incremental = self._resume(start)
        self._incremental.release()
        patient_until = time.monotonic() + (UNSETTLED_PATIENCE_S if self._ending else 0)
        while True:
            end, point = self._log.reach_fresh_point(start.log, rows)
            if point is not None:
                break
            if end > start.log or time.monotonic() > patient_until:
                heeded = self._heed(start, end, incremental)
                result = following(start, log=end, **heeded)
                return start if result == following(start) and not self._told else result
            time.sleep(UNSETTLED_WAIT_S)
        self._engine.release()
        state = self._engine.begin_blocking(point, start.blocking[0])
        heeded = self._heed(start, end, incremental)
        heeded["blocking"] = heeded["blocking"][1:]
        return following(start, log=end, snapshot=state, **heeded)

    def _poll(self, others: bool) -> list[list[Signal]]:
        """Return the signals that wait in each channel.

        Args:
            others: whether the log holds signals. Then, or if a channel has any, all channels are polled at once,
                since one that isn't due yet may hold an older signal.
        """
        found = [channel.poll() for channel in self._channels]
        if not others and not any(found):
            return found
        for channel in self._channels:
            channel.look_at_once()
        return [channel.poll() for channel in self._channels]

    def _heed(
        self, start: Offset, end: str, state: IncrementalState, polled: Sequence[Sequence[Signal]] = ()
    ) -> dict[str, Any]:
        """Apply the signals of a micro-batch; return the fields of the offset that they determine."""
        signals = in_order_of_time([*polled, self._log.signals(start.log, end)])
        blocking = self._control.apply(state, signals, end, len(start.blocking))
        return {"incremental": None if state.empty else state, "blocking": (*start.blocking, *blocking)}

    def _resume(self, start: Offset) -> IncrementalState:
        return self._incremental.resume(start.incremental or IncrementalState(), self._last.reports)

    def _acknowledge(self, start: Offset) -> tuple[str, ...]:
        """Acknowledge the signals that the offset took; return the receipts that must still be remembered."""
        kept = {receipt for channel in self._channels for receipt in channel.acknowledge(start.taken)}
        return tuple(receipt for receipt in start.taken if receipt in kept)

    def _without_chunks(self, after: str, rows: int | None, wait_s: float = IDLE_WAIT_S) -> str:
        target = self._connector.current_position() if rows is None else self._target
        if target is None:
            return self._log.wait_briefly(after, rows, wait_s)
        return after if after >= target else self._log.wait_for(after, target, rows)

    def _with_chunks_in_time(
        self, after: str, state: IncrementalState, rows: int | None
    ) -> tuple[str, IncrementalState]:
        """Plan chunks of incremental snapshots, or postpone them if the source keeps them waiting for too long."""
        before, told = state.copy(), len(self._told)
        try:
            return self._with_chunks(after, state, rows), state
        except StatementTimeoutError as exc:
            del self._told[told:]
            self._incremental.release()
            self._incremental.put_off(exc)
            return self._without_chunks(after, rows), before

    def _with_chunks(self, after: str, state: IncrementalState, rows: int | None) -> str:
        """Plan chunks of incremental snapshots, if the log can be delivered up to their read point."""
        end = after
        tries = 0
        # With availableNow, an empty micro-batch would end the query.
        patient_until = time.monotonic() + (UNSETTLED_PATIENCE_S if self._ending else 0)
        while True:
            first, point = self._incremental.reach(state, after)
            end = max(after, point) if after >= point else self._log.wait_for(after, point, rows)
            if after < end < point and after < first:
                return min(end, first)
            if end < point:
                end = self._log.wait_for(after, point, None)
            if end >= point and self._incremental.plan(state, after):
                break
            tries += 1
            if tries >= READ_POINTS:
                if time.monotonic() > patient_until:
                    break
                time.sleep(UNSETTLED_WAIT_S)
        return max(end, self._log.bounded(after, rows))
