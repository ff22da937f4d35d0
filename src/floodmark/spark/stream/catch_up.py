"""Catch-up snapshots: new tables get a consistent snapshot while the stream of the others goes on (DBZ-175).

The new tables are read at one read point, while their changes wait. When all rows are read, a catch-up stream delivers
these changes from the read point on, until it reaches the main stream, which then takes the tables over. The source
keeps the log from the position of the catch-up stream, so each phase survives a crash.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from floodmark.connectors.contract.tables import TableCatalog
from floodmark.errors import LockTimeoutError, StatementTimeoutError
from floodmark.json_data import Json, stored_object
from floodmark.signals.records import ExecuteSnapshot
from floodmark.snapshots.initial.engine import SnapshotEngine
from floodmark.snapshots.patience import PutOff
from floodmark.snapshots.reports import TaskReports
from floodmark.snapshots.state import SnapshotState, defer_batch
from floodmark.spark.stream.captured_log import IDLE_WAIT_S, CapturedLog


@dataclass(frozen=True)
class CatchUpState:
    """A catch-up snapshot and stream, as stored in the offset.

    Attributes:
        action: the request for its tables.
        position: up to where the log of its tables has been delivered; empty: it hasn't begun.
        tables: its tables, as the log numbers them.
        snapshot: the snapshot of its tables; None: it is finished, and the stream catches up.
    """

    action: ExecuteSnapshot
    position: str = ""
    tables: tuple[int, ...] = ()
    snapshot: SnapshotState | None = None

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON data."""
        return {
            "action": self.action.to_json(),
            "position": self.position,
            "tables": list(self.tables),
            "snapshot": self.snapshot.to_json() if self.snapshot else None,
        }

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the state that ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        stored = stored_object(data, "A catch-up snapshot")
        snapshot = SnapshotState.from_json(stored.value("snapshot")) if stored.value("snapshot") else None
        action = ExecuteSnapshot.from_json(stored.value("action"))
        return cls(action, stored.text("position"), stored.integers("tables"), snapshot)


class CatchUp:
    """Plans the catch-up snapshot and stream of new tables.

    Args:
        tables: the source's tables.
        log: what capture has received.
        engine: the engine of the catch-up snapshot, used for no other.

    Attributes:
        put_off: true while the snapshot is postponed.
    """

    def __init__(self, tables: TableCatalog, log: CapturedLog, engine: SnapshotEngine) -> None:
        self._tables = tables
        self._log = log
        self.engine = engine
        self.put_off = PutOff()

    def begin(self, catch_up: CatchUpState, after: str, rows: int | None) -> tuple[str, CatchUpState]:
        """Open the read point, if the main stream can be delivered up to it.

        Args:
            catch_up: one that hasn't begun.
            after: the position of the main stream.
            rows: maximum number of log records in the micro-batch; None: no limit.

        Returns:
            The position at which the main stream's micro-batch ends, and the catch-up: begun there, or not begun yet.
        """
        if self.put_off:
            return self._log.wait_briefly(after, rows, IDLE_WAIT_S), catch_up
        end, point = self._log.reach_fresh_point(after, rows)
        if point is None:
            return end, catch_up
        self.engine.release()
        try:
            state = self.engine.begin_blocking(point, catch_up.action)
        except StatementTimeoutError as exc:
            self.engine.release()
            self.put_off.now("the snapshot of new tables", exc)
            return end, catch_up
        oids = {table.oid for table in state.tables}
        numbers = {table.logged for table in self._tables.captured() if table.oid in oids}
        return end, replace(catch_up, position=point.position, tables=tuple(sorted(numbers)), snapshot=state)

    def step(self, catch_up: CatchUpState, main: str, rows: int | None, reports: TaskReports) -> CatchUpState | None:
        """Return the catch-up at the end of the next micro-batch; None: it ends where the main stream does.

        Args:
            catch_up: one that has begun.
            main: the position at which the main stream's micro-batch ends.
            rows: maximum number of log records in the micro-batch; None: no limit.
            reports: the reports of the last micro-batch's tasks.
        """
        if catch_up.snapshot is not None:
            state = catch_up.snapshot.copy()
            self.engine.settle(state, reports)
            usable = self._usable(state, reports)
            if usable is None:
                defer_batch(state)
                return replace(catch_up, snapshot=state)
            if not usable:
                reached, point = self._log.reach_fresh_point(catch_up.position, rows)
                if point is None:
                    defer_batch(state)
                    return replace(catch_up, position=reached, snapshot=state)
                state = self.engine.move(state, point)
            if state.pending:
                state.batch = []
                if catch_up.position < state.position:
                    reached = self._log.wait_for(catch_up.position, state.position, rows)
                    return replace(catch_up, position=reached, snapshot=state)
                self.engine.plan(state, rows is None)
                return replace(catch_up, snapshot=state)
            self.engine.complete()
        if main < catch_up.position:
            # After a restart the read point may lie ahead of the main stream, which must not take the tables over
            # before it gets there: it would deliver changes that the rows already contain.
            return replace(catch_up, snapshot=None)
        reached = self._log.bounded(catch_up.position, rows)
        if reached >= self._log.captured(catch_up.position) or reached >= main:
            return None
        return replace(catch_up, position=reached, snapshot=None)

    def _usable(self, state: SnapshotState, reports: TaskReports) -> bool | None:
        """Return whether the snapshot can go on at its read point; None: the source keeps it waiting for too long."""
        locked = reports.locked("lane")
        if locked is not None and not self.put_off:
            self.put_off.now(f"the snapshot of new tables, such as {locked.table}", LockTimeoutError(locked.error))
        if not state.pending and not state.batch:
            return True
        if self.put_off:
            return None
        try:
            return self.engine.usable(state)
        except StatementTimeoutError as exc:
            if isinstance(exc, LockTimeoutError):
                self.engine.give_way()
            self.put_off.now("the snapshot of new tables", exc)
            return None

    def release(self) -> None:
        """Release the read point."""
        self.engine.release()
