"""Plans what each micro-batch holds.

The planner lives in Spark's only long-lived source process, and knows connectors only by their protocols.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Collection
from dataclasses import replace
from functools import partial

from floodmark.capture.gaps import Gap
from floodmark.capture.retry import RetryPolicy
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.source import Source
from floodmark.errors import (
    CheckpointError,
    FloodmarkError,
    LockTimeoutError,
    StatementTimeoutError,
)
from floodmark.extensions.snapshotter import Snapshotter
from floodmark.json_data import Json
from floodmark.logger import get_logger
from floodmark.notifications.channels import notification_channels
from floodmark.notifications.records import IncrementalSnapshotNotifications, InitialSnapshotNotifications
from floodmark.snapshots.context import SnapshotContext
from floodmark.snapshots.control import SignalControl
from floodmark.snapshots.excluded_tables import ExcludedTable, ExcludedTables
from floodmark.snapshots.incremental.batch_sizing import BatchSizing
from floodmark.snapshots.incremental.state import IncrementalState
from floodmark.snapshots.incremental.windows import make_engine
from floodmark.snapshots.initial.read_ahead import make_snapshot_engine
from floodmark.snapshots.patience import PutOff
from floodmark.snapshots.reports import LastReports, ReportBox
from floodmark.spark.stream.captured_log import CapturedLog
from floodmark.spark.stream.catch_up import CatchUp, CatchUpState
from floodmark.spark.stream.gaps import with_gaps
from floodmark.spark.stream.offsets import Offset, following
from floodmark.spark.stream.partitions import ChunkPartition, LogPartition, WindowPartition
from floodmark.spark.stream.planning.ending import Ending
from floodmark.spark.stream.planning.heartbeats import Heartbeats
from floodmark.spark.stream.planning.log_part import UNSETTLED_PATIENCE_S, UNSETTLED_WAIT_S, LogPart
from floodmark.spark.stream.planning.new_tables import NewTables
from floodmark.spark.stream.planning.notices import Notices
from floodmark.spark.stream.planning.opening import Opening
from floodmark.spark.stream.planning.phases import Phase, phase_of
from floodmark.spark.stream.planning.signal_intake import SignalIntake
from floodmark.spark.stream.planning.startup import Start, refuse_to_go_back
from floodmark.spark.stream.row_schema import RowSchema
from floodmark.spark.stream.tasks import MicroBatchTasks, Task

log = get_logger(__name__)

WAITING_TARGET_S = 4.0
TASKS_A_CPU = 2
NO_WAIT_S = 0.01
ENDING_PATIENCE_S = 30.0
SHOWN_EXCLUDED = 20
"""How many excluded tables a report names; the offset has all of them."""


class Planner:
    """Plans the micro-batches of one query.

    Args:
        options: the source's options.
        source: the source.
        retry: the reconnect policy of capture.
        owner: the name of the source's directory below ``state.dir``.
        snapshotter: decides when a snapshot is taken and whether the log follows.
        row_schema: verifies that the tables of typed rows still have the query's columns.
    """

    def __init__(
        self,
        options: CommonOptions,
        source: Source,
        retry: RetryPolicy,
        owner: str,
        snapshotter: Snapshotter,
        row_schema: RowSchema,
    ) -> None:
        self._options = options
        self._source = source
        self._retry = retry
        self._log = CapturedLog(options, source, retry, owner)
        sizing = BatchSizing(
            options.snapshot_batch_target_ms / 1000,
            options.incremental_snapshot_chunk_size,
            options.max_batch_rows,
            TASKS_A_CPU * (os.cpu_count() or 1),
        )
        self._notices = Notices()
        self._excluded_tables = ExcludedTables()
        self._last = LastReports(ReportBox(options.state_dir, owner))
        self._initial = InitialSnapshotNotifications(options.topic_prefix)
        context = SnapshotContext(source, self._notices.add, self._excluded_tables, options.table_names)
        waiting_s = max(sizing.target_s, WAITING_TARGET_S)
        store = self._log.store
        self._engine = make_snapshot_engine(context, self._initial, "consistent", waiting_s, options, store)
        engine = make_snapshot_engine(context, self._initial, "lane", sizing.target_s, options, store)
        self._catch_up = CatchUp(source.tables, self._log, engine)
        notifications = IncrementalSnapshotNotifications(options.topic_prefix)
        self._incremental = make_engine(context, notifications, sizing, options, store)
        self._tasks = MicroBatchTasks(
            options, owner, source, self._log, self._engine, self._catch_up, self._incremental
        )
        self._control = SignalControl(self._incremental, notifications, self._notices.add)
        self._signals = SignalIntake(options, owner, self._log, self._control)
        self._listeners = notification_channels(options)
        self._snapshotter = snapshotter
        self._row_schema = row_schema
        self._opening = Opening(options, source, self._log, snapshotter)
        self._ending = Ending(source.log)
        self._new_tables = NewTables(options, source.tables)
        self._part = LogPart(self._log, source.log, self._incremental, self._ending, self._notices)
        self._blocking_put_off = PutOff()
        self._stream_at = 0.0
        self._planned: Offset | None = None
        self._heartbeats = Heartbeats(options, source, lambda: self._log.started)

    def fix_target(self) -> None:
        """End the query where the log ends when the next micro-batch is planned, as ``availableNow`` requires."""
        self._ending.ask()

    def withdraw_target(self) -> None:
        """Let the query go on beyond the end that :meth:`fix_target` asked for."""
        self._ending.withdraw()

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
        end = self._retry.run(action, "planning a micro-batch", partial(self._opening.is_final, start.new))
        if self._options.format != "events" and not end.reads_tables:
            self._excluded_tables.prove_any_left(self._tables_shown)
        heartbeat = self._heartbeats.due(alone=end is start, ending=self._ending.wanted)
        gaps = with_gaps(start, end, (*start.accepted, *self._source.gaps.all()))
        if end is start:
            if not start.ended and self._source.completeness is not None:
                # A change that the source left out of its log never arrives, so check for that while nothing does.
                self._source.completeness.prove_complete(start.oldest, self._ending.wanted)
            if heartbeat is None and all(gap in start.gaps for gap in gaps):
                self._ending.reached()
                return start
            # Keep the receipts, which are acknowledged when the next micro-batch is planned.
            end = following(start, taken=start.taken)
        # Only now, since planning may have been repeated, and listeners are notified once.
        for notification in self._notices.all():
            for listener in self._listeners:
                listener.notify(notification)
        events = self._notices.all() if "sink" in self._options.notification_enabled_channels else ()
        return replace(
            end,
            batch=uuid.uuid4().hex,
            after=start.batch,
            notifications=events,
            read=self._notices.read(),
            excluded=self._excluded_tables.tables,
            heartbeat=heartbeat,
            gaps=gaps,
            context=self._source.log.decode_context(),
            bookmark=self._source.log.bookmark(end.oldest),
        )

    def _next_in_time(self, start: Offset, rows: int | None) -> Offset:
        """Return where the next micro-batch ends: where it begins, if the source keeps planning waiting for too long.

        A query that ends by itself (``availableNow``) retries instead, since an empty micro-batch would end it before
        it has delivered everything.

        Raises:
            StatementTimeoutError: the source keeps such a query, or one that is being opened, waiting for too long.
        """
        patient_until = self._ending.patience(ENDING_PATIENCE_S)
        while True:
            late = False
            try:
                end = self._next_offset(start, rows)
            except StatementTimeoutError as exc:
                impatient = time.monotonic() > patient_until
                if not self._opening.is_open or (self._ending.wanted and impatient):
                    raise
                # Nothing else can go on meanwhile; otherwise this would have been postponed where it happened.
                self._notices.clear()
                if isinstance(exc, LockTimeoutError):
                    self._engine.give_way()
                log.warning("planning_waits", error=str(exc))
                end, late = start, self._ending.wanted
            if end is not start or not (late or self._anything_put_off(start)):
                return end
            if not late and time.monotonic() > patient_until:
                return end
            time.sleep(UNSETTLED_WAIT_S)

    def _anything_put_off(self, start: Offset) -> bool:
        state = start.incremental
        waits = state is not None and state.active and not self._incremental.ready(state)
        return bool(self._blocking_put_off or self._catch_up.put_off or waits)

    def _next_offset(self, start: Offset, rows: int | None) -> Offset:
        # Planning may be repeated, and then collects its notifications again.
        self._notices.clear()
        self._excluded_tables.begin(start.excluded)
        self._opening.open(start)
        self._ending.fix()
        for failure in self._last.read(start.batch).log_failures:
            self._excluded_tables.add(ExcludedTable(failure.table, failure.oid, "log", failure.error))
        remembered = self._signals.acknowledge(start)
        decision = self._opening.decide(start)
        # A catch-up stream has to end before a snapshot begins; until then that stays to be decided.
        waits = decision is Start.SNAPSHOT and start.catch_up is not None
        # A snapshot that replaces a lost log includes the tables that exist then.
        begun = start if self._opening.lost is not None else self._with_new_tables(start)
        end = self._carry_out(Start.GO_ON if waits else decision, begun, rows)
        if not waits:
            self._opening.decided()
        if end is begun:
            if begun == start and self._excluded_tables.tables == start.excluded:
                return start
            end = following(begun)
        return replace(end, taken=(*remembered, *end.taken))

    def _with_new_tables(self, start: Offset) -> Offset:
        """Return the offset, with snapshots added for tables that the filters didn't match before."""
        found = self._new_tables.find(start.known, self._opening.is_decided)
        if found is None:
            return start
        known = replace(start, known=found.names)
        action = found.action
        if action is None:
            return known
        if self._options.snapshot_new_tables == "parallel":
            # Further new tables wait until those that are catching up have finished.
            return start if start.catch_up is not None else replace(known, catch_up=CatchUpState(action))
        if action.blocking:
            return replace(known, blocking=(*start.blocking, action))
        state = self._resume(start)
        self._control.execute(state, action)
        return replace(known, incremental=state)

    def _carry_out(self, decision: Start, start: Offset, rows: int | None) -> Offset:
        if decision is Start.GIVE_UP_SNAPSHOT:
            start = self._without_snapshot(start)
        phase = phase_of(start, decision, self._snapshotter.should_stream(), bool(self._blocking_put_off))
        match phase:
            case Phase.START_OVER:
                return self._start_over(start, rows is None)
            case Phase.BEGIN_SNAPSHOT:
                return self._during_snapshot(self._with_new_snapshot(start), rows)
            case Phase.SNAPSHOT:
                return self._during_snapshot(start, rows)
            case Phase.ENDED:
                return start if start.ended else replace(start, ended=True)
            case Phase.BEGIN_BLOCKING:
                try:
                    with self._notices.attempt():
                        return self._begin_blocking(start, rows)
                except StatementTimeoutError as exc:
                    self._engine.release()
                    self._blocking_put_off.now("a blocking snapshot", exc)
                return self._stream(start, rows)
            case Phase.CATCH_UP:
                return self._beside_catch_up(start, rows)
            case Phase.STREAM:
                return self._stream(start, rows)

    def _without_snapshot(self, start: Offset) -> Offset:
        """Return the offset without its snapshot, which ``snapshot.mode`` gives up."""
        log.warning("snapshot_is_given_up", snapshotter=self._snapshotter.name)
        self._snapshotter.snapshot_aborted()
        assert start.snapshot is not None
        self._engine.give_up(start.snapshot)
        return replace(start, snapshot=None)

    def partitions(self, start: Offset, end: Offset) -> list[Task]:
        """Return the tasks of a micro-batch, even if an earlier process planned it.

        Raises:
            CheckpointError: it was planned to begin elsewhere.
        """
        if end.after is not None and end.after != start.batch:
            raise CheckpointError(
                "Spark runs a micro-batch that does not begin where it was planned to begin, so changes could be "
                "missing. Nothing was released at the source.",
                "Start the query again. If the error comes again, the checkpoint holds offsets of different queries: "
                "use a new checkpoint location.",
            )
        self._planned = end
        self._incremental.wait()
        planned_before = not self._opening.is_open
        # A first micro-batch, or one after a gap, delivers no log: the log is needed only from its end on.
        whole = start.new or end.gap
        opening = partial(self._opening.open, end if whole else start)
        self._retry.run(opening, "opening the source", partial(self._opening.is_final, False))
        if planned_before and not whole and self._opening.lost is None:
            self._retry.run(partial(self._opening.prove_planned, start, end), "proving a planned micro-batch")
        if self._opening.lost is not None:
            # What an earlier process planned can't be delivered any more; a new snapshot covers all of it.
            return []
        making = partial(self._tasks_of, start, end)
        tasks = self._retry.run(making, "planning the tasks of a micro-batch")
        if end.incremental is not None and end.incremental.batch and end.catch_up is None and not end.blocking:
            self._incremental.read_ahead(end.incremental, end.log)
        return tasks

    def _tables_shown(self) -> Collection[str]:
        return self._row_schema.tables if self._options.fixed_tables else self._source.tables.names()

    def _tasks_of(self, start: Offset, end: Offset) -> list[Task]:
        tasks = self._tasks.of(start, end)
        if not self._options.fixed_tables:
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

    def report(self) -> dict[str, Json] | None:
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
            end = self._source.log.end()
            # All positions of a transaction are at its commit, so of a large one only what has been captured counts.
            lag = max(self._source.log.lag_bytes(reached), self._log.waiting_bytes(reached)) if reached else 0
        except FloodmarkError:
            # The source is unavailable, or too slow to answer. Capture reconnects; a report must not end the query.
            return None
        seconds: float | None = 0.0
        if lag:
            # How old the lag is isn't known before this process has delivered a transaction.
            seconds = round(max(time.time() - commit_s, 0.0), 3) if commit_s else None
        excluded = planned.excluded if planned is not None else ()
        return {
            "log": end,
            "lag_bytes": (lag or None) if waits else lag,
            "lag_seconds": None if waits else seconds,
            "phase": "streaming" if self._log.started else "snapshot",
            "capture_paused": self._log.paused,
            "tables_set_aside": len(excluded),
            "set_aside": [table.name for table in excluded[:SHOWN_EXCLUDED]],
        }

    def stop(self) -> None:
        """Release everything."""
        self._signals.close()
        self._engine.release()
        self._catch_up.release()
        self._incremental.release()
        self._log.stop()
        self._source.close()

    def _first_offset(self, everything: bool) -> Offset:
        # Planning may be repeated, and then collects its notifications again.
        self._notices.clear()
        source, log_position, point = self._opening.create()
        self._ending.fix()
        known = self._new_tables.names
        if point is None:
            self._notices.add(self._initial.skipped())
            ended = not self._snapshotter.should_stream()
            return Offset(source, log_position, ended=ended, known=known())
        state = self._engine.begin(point)
        self._engine.plan(state, everything)
        return Offset(source, log_position, state, known=known())

    def _with_new_snapshot(self, start: Offset) -> Offset:
        """Return the offset with a snapshot at a new read point; the log up to there is delivered first."""
        self._engine.release()
        self._opening.delay_snapshot()
        return replace(start, snapshot=self._engine.begin(self._source.snapshots.open(begins=True)))

    def _start_over(self, start: Offset, everything: bool) -> Offset:
        """Begin a snapshot and leave out the log before it."""
        refuse_to_go_back(start.log, self._source.log.end())
        self._engine.release()
        if start.snapshot is not None:
            self._snapshotter.snapshot_aborted()
        self._opening.delay_snapshot()
        lost = self._opening.lost
        if lost is not None:
            self._source.log.discard_lost()
            log_position, point = self._source.log.create(True)
            assert point is not None
            option = f"snapshot.mode={self._options.snapshot_mode}"
            self._source.gaps.add(Gap(lost.after, log_position, lost.error.what, option))
        else:
            point = self._source.snapshots.open(begins=True)
            log_position = point.position
        state = self._engine.begin(point)
        self._engine.plan(state, everything)
        self._opening.lost = None
        return Offset(start.source, log_position, state, gap=True, known=self._new_tables.names())

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
            heeded = self._signals.heed(start, end, incremental)
            return following(start, log=end, snapshot=state, incremental=heeded.incremental, blocking=heeded.blocking)
        self._engine.plan(state, rows is None)
        return following(start, snapshot=state, incremental=None if incremental.empty else incremental)

    def _end_snapshot(self, start: Offset) -> Offset:
        self._engine.release()
        log.info("snapshot_ends", position=start.log)
        self._snapshotter.snapshot_completed()
        self._heartbeats.after_snapshot()
        self._stream_at = time.monotonic() + self._options.streaming_delay_ms / 1000
        ended = not self._snapshotter.should_stream()
        self._notices.add(self._initial.completed())
        return following(start, snapshot=None, ended=ended)

    def _stream(self, start: Offset, rows: int | None) -> Offset:
        """Deliver the log, with chunks of incremental snapshots if there are any."""
        state = self._begin_streaming(start)
        if self._incremental.ready(state):
            end, state = self._part.with_chunks(start.log, state, rows)
        else:
            self._incremental.idle()
            end = self._part.without_chunks(start.log, rows)
        return self._heeding(start, end, state, None)

    def _beside_catch_up(self, start: Offset, rows: int | None) -> Offset:
        """Deliver the log, and the rows or the log of new tables beside it."""
        catch_up = start.catch_up
        assert catch_up is not None
        state = self._begin_streaming(start)
        # One read point at a time: incremental snapshots go on when the catch-up stream has ended.
        self._incremental.release()
        if not catch_up.position:
            end, begun = self._catch_up.begin(catch_up, start.log, rows)
            return self._heeding(start, end, state, begun)
        end = self._part.without_chunks(start.log, rows, NO_WAIT_S)
        return self._heeding(start, end, state, self._catch_up.step(catch_up, end, rows, self._last.reports))

    def _begin_streaming(self, start: Offset) -> IncrementalState:
        time.sleep(max(self._stream_at - time.monotonic(), 0))
        self._log.start(start.oldest)
        return self._resume(start)

    def _heeding(self, start: Offset, end: str, state: IncrementalState, catch_up: CatchUpState | None) -> Offset:
        """Return the offset at the end of a micro-batch's log, after its signals and those of all channels."""
        heeded = self._signals.heed_polled(start, end, state)
        result = following(
            start,
            log=end,
            catch_up=catch_up,
            taken=heeded.receipts,
            incremental=heeded.incremental,
            blocking=heeded.blocking,
        )
        return start if result == following(start) and not self._notices else result

    def _begin_blocking(self, start: Offset, rows: int | None) -> Offset:
        """Deliver the log up to a read point and begin the snapshot there; the rest of the log waits for it."""
        self._log.start(start.oldest)
        incremental = self._resume(start)
        self._incremental.release()
        patient_until = self._ending.patience(UNSETTLED_PATIENCE_S)
        while True:
            end, point = self._log.reach_fresh_point(start.log, rows)
            if point is not None:
                break
            if end > start.log or time.monotonic() > patient_until:
                heeded = self._signals.heed(start, end, incremental)
                result = following(start, log=end, incremental=heeded.incremental, blocking=heeded.blocking)
                return start if result == following(start) and not self._notices else result
            time.sleep(UNSETTLED_WAIT_S)
        self._engine.release()
        state = self._engine.begin_blocking(point, start.blocking[0])
        heeded = self._signals.heed(start, end, incremental)
        return following(start, log=end, snapshot=state, incremental=heeded.incremental, blocking=heeded.blocking[1:])

    def _resume(self, start: Offset) -> IncrementalState:
        return self._incremental.resume(start.incremental or IncrementalState(), self._last.reports)
