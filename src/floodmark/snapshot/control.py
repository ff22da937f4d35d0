"""What signals do to snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from floodmark.errors import SignalError
from floodmark.log import get_logger
from floodmark.snapshot.incremental import IncrementalState, TableRun
from floodmark.snapshot.incremental_engine import IncrementalEngine
from floodmark.snapshot.notifications import IncrementalSnapshotNotifications, Notification
from floodmark.snapshot.signals import (
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
)

log = get_logger(__name__)


class SignalControl:
    """Applies signals to the state of the snapshots; what is wrong with a signal never stops the stream.

    Args:
        engine: of the incremental snapshots.
        notifications: makes what is told of them.
        tell: takes what is told.
    """

    def __init__(
        self,
        engine: IncrementalEngine,
        notifications: IncrementalSnapshotNotifications,
        tell: Callable[[Notification], None],
    ) -> None:
        self._engine = engine
        self._notifications = notifications
        self._tell = tell

    def apply(self, state: IncrementalState, signals: Iterable[Signal], position: str) -> list[ExecuteSnapshot]:
        """Apply signals in their order.

        Args:
            state: of the incremental snapshots; is changed.
            signals: as the channels delivered them.
            position: of the log.

        Returns:
            The blocking snapshots that are asked for.
        """
        blocking = []
        for signal in signals:
            try:
                action = parse_signal(signal)
            except SignalError as exc:
                log.warning("signal_refused", signal=signal.id, error=str(exc))
                continue
            if isinstance(action, WindowOpened | WindowClosed):
                continue  # somebody's marks, perhaps this query's own: they ask for nothing
            log.info("signal_received", signal=signal.id, type=signal.type)
            if isinstance(action, ExecuteSnapshot) and action.blocking:
                blocking.append(action)
            else:
                self._act(state, action, position)
        return blocking

    def _act(self, state: IncrementalState, action: Action, position: str) -> None:
        if isinstance(action, ExecuteSnapshot):
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
        asked = asked_tables(action, self._engine.tables())
        for name, parts in asked.items():
            if not parts:
                state.runs.append(TableRun(name, 0, "", {}, None, "", 0, outcome="UNKNOWN_SCHEMA"))
            for part in parts:
                self._engine.queue(state, part, action.surrogate_key, action.filter_of(name) or "")
        if begins:
            self._tell(self._notifications.started(action.id, list(asked)))

    def _stop(self, state: IncrementalState, action: StopSnapshot) -> None:
        stopped = set(expand(action.tables, state.tables)) if action.tables else None
        dropped = state.drop(lambda run: stopped is None or run.name in stopped)
        if dropped:
            self._tell(self._notifications.aborted(state.name, dropped))
        if not state.tables:
            state.paused = False

    def _pause(self, state: IncrementalState, paused: bool) -> None:
        if not state.tables or state.paused == paused:
            return
        state.paused = paused
        make = self._notifications.paused if paused else self._notifications.resumed
        self._tell(make(state.name, state.tables))
