"""A second lane: tables that are new get a consistent snapshot while the stream of the others goes on (DBZ-175).

The tables of the lane are read at one read point. Their changes wait meanwhile; when all is read the lane
delivers them from the read point on, until it is where the main lane is, which then takes the tables over. The
source keeps the log from where the lane is, so each phase survives a crash.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from floodmark.connectors.contract.base import Connector
from floodmark.errors import LockTimeoutError, StatementTimeoutError
from floodmark.signals.records import ExecuteSnapshot
from floodmark.snapshots.initial.engine import SnapshotEngine
from floodmark.snapshots.patience import PutOff
from floodmark.snapshots.reports import TaskReports
from floodmark.snapshots.state import SnapshotState, defer_batch
from floodmark.spark.stream.captured_log import IDLE_WAIT_S, CapturedLog


@dataclass(frozen=True)
class Lane:
    """A second lane, as the offset holds it.

    Attributes:
        action: which tables it is for.
        position: up to where the log of its tables has been delivered; empty: it hasn't begun.
        tables: its tables, as the log numbers them.
        snapshot: their snapshot; None: it is over, and the lane catches up.
    """

    action: ExecuteSnapshot
    position: str = ""
    tables: tuple[int, ...] = ()
    snapshot: SnapshotState | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the lane as JSON data."""
        return {
            "action": self.action.to_json(),
            "position": self.position,
            "tables": list(self.tables),
            "snapshot": self.snapshot.to_json() if self.snapshot else None,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the lane that ``to_json`` described."""
        snapshot = SnapshotState.from_json(data["snapshot"]) if data["snapshot"] else None
        return cls(ExecuteSnapshot.from_json(data["action"]), data["position"], tuple(data["tables"]), snapshot)


class SecondLane:
    """Plans a second lane.

    Args:
        connector: the source.
        log: what capture has received.
        engine: of the lane's snapshot, and of no other.

    Attributes:
        put_off: whether its snapshot is left alone for a while.
    """

    def __init__(self, connector: Connector, log: CapturedLog, engine: SnapshotEngine) -> None:
        self._connector = connector
        self._log = log
        self.engine = engine
        self.put_off = PutOff()

    def begin(self, lane: Lane, after: str, rows: int | None) -> tuple[str, Lane]:
        """Open the lane's read point, if the main lane can be delivered up to it.

        Args:
            lane: that hasn't begun.
            after: where the main lane is.
            rows: most log records in the micro-batch; None: all there is.

        Returns:
            Where the main lane's micro-batch ends, and the lane: there, or not begun yet.
        """
        if self.put_off:
            return self._log.wait_briefly(after, rows, IDLE_WAIT_S), lane
        end, point = self._log.reach_fresh_point(after, rows)
        if point is None:
            return end, lane
        self.engine.release()
        try:
            state = self.engine.begin_blocking(point, lane.action)
        except StatementTimeoutError as exc:
            self.engine.release()
            self.put_off.now("the snapshot of new tables", exc)
            return end, lane
        oids = {table.oid for table in state.tables}
        numbers = {table["logged"] for table in self._connector.tables() if table["oid"] in oids}
        return end, replace(lane, position=point.position, tables=tuple(sorted(numbers)), snapshot=state)

    def step(self, lane: Lane, main: str, rows: int | None, reports: TaskReports) -> Lane | None:
        """Return the lane at the end of the next micro-batch; None: it ends where the main lane does.

        Args:
            lane: that has begun.
            main: where the main lane's micro-batch ends.
            rows: most log records in the micro-batch; None: all there is.
            reports: of the last micro-batch's tasks.
        """
        if lane.snapshot is not None:
            state = lane.snapshot.copy()
            self.engine.settle(state, reports)
            usable = self._usable(state, reports)
            if usable is None:
                defer_batch(state)
                return replace(lane, snapshot=state)
            if not usable:
                reached, point = self._log.reach_fresh_point(lane.position, rows)
                if point is None:
                    defer_batch(state)
                    return replace(lane, position=reached, snapshot=state)
                state = self.engine.move(state, point)
            if state.pending:
                state.batch = []
                if lane.position < state.position:
                    reached = self._log.wait_for(lane.position, state.position, rows)
                    return replace(lane, position=reached, snapshot=state)
                self.engine.plan(state, rows is None)
                return replace(lane, snapshot=state)
            self.engine.complete()
        if main < lane.position:
            # After a restart the lane's read point may lie where the main lane has not been yet. It must not take the
            # tables over before, or it would deliver changes that the rows hold already.
            return replace(lane, snapshot=None)
        reached = self._log.bounded(lane.position, rows)
        if reached >= self._log.captured(lane.position) or reached >= main:
            return None
        return replace(lane, position=reached, snapshot=None)

    def _usable(self, state: SnapshotState, reports: TaskReports) -> bool | None:
        """Return whether the snapshot can go on at its read point; None: the source lets it wait for too long."""
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
        """Let go of the read point."""
        self.engine.release()
