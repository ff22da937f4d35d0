"""Applies signals to snapshots."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from floodmark.errors import SignalError
from floodmark.logger import get_logger
from floodmark.notifications.records import IncrementalSnapshotNotifications, Notification
from floodmark.signals.records import (
    SHOWN,
    Action,
    ExecuteSnapshot,
    LogMessage,
    PauseSnapshot,
    ResumeSnapshot,
    Signal,
    StopSnapshot,
    WindowClosed,
    WindowOpened,
    asked_tables,
    expand,
    parse_signal,
    report_unknown,
)
from floodmark.snapshots.excluded_tables import absent
from floodmark.snapshots.incremental.engine import IncrementalEngine
from floodmark.snapshots.incremental.state import IncrementalState, TableRun

log = get_logger(__name__)

# What waits is stored in every offset.
MOST_BLOCKING = 100
MOST_RUNS = 50_000
CLOCKS_MS = 2000
"""Times of different channels that lie closer together don't show which signal was sent first."""


class SignalControl:
    """Applies signals to the state of the snapshots; an invalid signal never stops the stream.

    Args:
        engine: the engine of the incremental snapshots.
        notifications: creates their notifications.
        notify: receives notifications.
    """

    def __init__(
        self,
        engine: IncrementalEngine,
        notifications: IncrementalSnapshotNotifications,
        notify: Callable[[Notification], None],
    ) -> None:
        self._engine = engine
        self._notifications = notifications
        self._notify = notify

    def apply(
        self, state: IncrementalState, signals: Iterable[Signal], position: str, waiting: int = 0
    ) -> list[ExecuteSnapshot]:
        """Apply signals in their order.

        Args:
            state: the state of the incremental snapshots; is changed.
            signals: as the channels delivered them.
            position: the log position, for messages.
            waiting: how many blocking snapshots wait already.

        Returns:
            The blocking snapshots that are requested.
        """
        blocking: list[ExecuteSnapshot] = []
        for signal in signals:
            try:
                action = parse_signal(signal)
            except SignalError as exc:
                log.warning("signal_refused", signal=signal.id[:SHOWN], error=str(exc))
                continue
            if isinstance(action, WindowOpened | WindowClosed):
                continue  # watermarks, perhaps this query's own, request nothing
            if isinstance(action, PauseSnapshot | ResumeSnapshot) and not self._switches(state, signal):
                continue
            log.info("signal_received", signal=signal.id, type=signal.type)
            if isinstance(action, ExecuteSnapshot) and action.blocking:
                if len(blocking) + waiting >= MOST_BLOCKING:
                    error = f"{MOST_BLOCKING} blocking snapshots wait already"
                    log.warning("signal_refused", signal=signal.id, error=error)
                    continue
                blocking.append(action)
            else:
                self._act(state, action, position)
        return blocking

    def _switches(self, state: IncrementalState, signal: Signal) -> bool:
        """Return whether a pause or resume signal is the newest by its time, whenever its channel delivered it."""
        # A sender's fast clock must not outdate all later signals.
        sent_ms = min(signal.millis, time.time_ns() // 1_000_000)
        if sent_ms and sent_ms + CLOCKS_MS < state.switched_ms:
            log.warning(
                "signal_is_outdated",
                signal=signal.id,
                type=signal.type,
                sent_ms=sent_ms,
                last_ms=state.switched_ms,
                reason="another channel brought a pause or resume that was sent later",
            )
            return False
        if state.tables:
            state.switched_ms = max(state.switched_ms, sent_ms)
        return True

    def _act(self, state: IncrementalState, action: Action, position: str) -> None:
        if isinstance(action, ExecuteSnapshot):
            if len(state.runs) >= MOST_RUNS:
                log.warning("signal_refused", signal=action.id, error=f"{MOST_RUNS} tables wait already")
                return
            self.execute(state, action)
        elif isinstance(action, StopSnapshot):
            self._stop(state, action)
        elif isinstance(action, PauseSnapshot):
            self._pause(state, True)
        elif isinstance(action, ResumeSnapshot):
            self._pause(state, False)
        elif isinstance(action, LogMessage):
            log.info("signal_message", signal=action.id, message=action.text(position))

    def execute(self, state: IncrementalState, action: ExecuteSnapshot) -> None:
        """Queue the tables of an incremental snapshot."""
        begins = not state.runs
        state.name = action.id
        asked = asked_tables(action, self._engine.tables(), self._engine.names)
        for name, parts in asked.items():
            if not parts:
                unknown = TableRun(name, absent(name), "", None, None, "", 0, outcome="UNKNOWN_SCHEMA")
                state.runs.append(replace(unknown, signals=[action.id]))
            for part in parts:
                condition = action.filter_of(name, self._engine.names) or ""
                self._engine.queue(state, part, action.surrogate_key, condition, action.id)
        if action.owed:
            for run in state.runs:
                run.owed |= run.name in asked and not run.condition
        if begins:
            self._notify(self._notifications.started(action.id, list(asked)))

    def _stop(self, state: IncrementalState, action: StopSnapshot) -> None:
        stopped = self._named(state, action) if action.tables else None
        ended = [run for run in state.runs if (run.name in stopped if stopped is not None else not run.owed)]
        for run in ended:
            self._engine.leave_out(run, f"The signal '{action.id}' stopped the snapshot of this new table.")
        dropped = state.drop(lambda run: any(run is one for one in ended))
        if dropped:
            self._notify(self._notifications.aborted(state.name, dropped))
        if stopped is None:
            # The pause applied to what has been stopped.
            state.paused = False
            if state.tables:
                log.warning(
                    "snapshot_of_new_tables_goes_on",
                    signal=action.id,
                    tables=state.tables,
                    reason="without it their rows never come; name them in data-collections to stop it all the same",
                )
        if not state.tables:
            state.paused = False

    def _named(self, state: IncrementalState, action: StopSnapshot) -> set[str]:
        """Return the tables that a stop signal names; what matches none of those that are read is logged."""
        found = expand(action.tables, state.tables, self._engine.names)
        report_unknown(action.id, [name for name in found if name not in state.tables], self._engine.names)
        return set(found)

    def _pause(self, state: IncrementalState, paused: bool) -> None:
        if not state.tables or state.paused == paused:
            return
        state.paused = paused
        make = self._notifications.paused if paused else self._notifications.resumed
        self._notify(make(state.name, state.tables))
