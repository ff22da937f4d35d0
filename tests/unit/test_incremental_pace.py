"""How many rows of an incremental snapshot a micro-batch reads."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from floodmark.capture.store import SegmentStore
from floodmark.connectors.contract.source import Source
from floodmark.connectors.contract.table_key import TableKey
from floodmark.notifications.records import IncrementalSnapshotNotifications
from floodmark.snapshots.context import SnapshotContext
from floodmark.snapshots.excluded_tables import ExcludedTables
from floodmark.snapshots.incremental.batch_sizing import LONGEST, MARGIN, BatchSizing
from floodmark.snapshots.incremental.engine import IncrementalEngine
from floodmark.snapshots.incremental.state import IncrementalState, TableRun
from floodmark.snapshots.incremental.windows import WindowEngine
from floodmark.snapshots.reports import Report, TaskReports
from tests.support.window_source import Clock, WindowSource

FIXED_S = 0.3
READS_ROWS_S = (600_000.0, 200_000.0)
TASK_ROWS_S = 400_000.0
TARGET_S = 1.0
MOST = 10_000_000


@dataclass
class Query:
    """An incremental snapshot of one table, micro-batch by micro-batch."""

    engine: IncrementalEngine
    source: WindowSource
    fixed_s: float = FIXED_S
    trigger_s: float = 0.0
    tells: bool = True
    task_s: float = 0.0
    state: IncrementalState = field(
        default_factory=lambda: IncrementalState(runs=[TableRun("t", 1, "", TableKey(("id",), False), None, "", 0)])
    )

    def micro_batch(self) -> tuple[int, float]:
        """Run a micro-batch; return how many rows it had and how long it took, in seconds."""
        began_at, before = self.source.clock.now, self.state.runs[0].rows
        self.engine.wait()
        self.state = self.engine.resume(self.state, self._reports())
        self.engine.reach(self.state, "")
        assert self.engine.plan(self.state, "")
        taken = self.state.runs[0].rows - before
        self.task_s = taken / TASK_ROWS_S
        tasks_end = self.source.clock.now + self.fixed_s + self.task_s
        self.engine.read_ahead(self.state, "")
        self.engine.wait()
        self.source.clock.now = max(self.source.clock.now, tasks_end, began_at + self.trigger_s)
        return taken, self.source.clock.now - began_at

    def _reports(self) -> TaskReports:
        time = Report("time", (), "complete", began=0.0, ended=self.task_s)
        chunks: dict[tuple[int, ...], int] = {(number,): 0 for number in range(len(self.state.batch))}
        return TaskReports([time] if self.tells else []).with_complete("incremental", chunks)


@pytest.fixture(params=["read points", *READS_ROWS_S])
def query(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Query:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    source = WindowSource(clock, request.param if request.param in READS_ROWS_S else 0.0)
    context = SnapshotContext(cast(Source, source), lambda _: None, ExcludedTables())
    notifications, pace = IncrementalSnapshotNotifications("p"), BatchSizing(TARGET_S, 1000, MOST, 4)
    if request.param == "read points":
        return Query(IncrementalEngine(context, notifications, pace, False), source)
    store = SegmentStore(str(tmp_path), "owner", "run")
    store.create()
    return Query(WindowEngine(context, source.windows, notifications, pace, False, store, 1 << 40), source)


def test_the_number_of_rows_settles(query: Query) -> None:
    """It grows fast, and then stays where a micro-batch takes the time that it may take."""
    taken, times = zip(*(query.micro_batch() for _ in range(14)), strict=True)
    assert max(times) < 1.05 * MARGIN * TARGET_S
    assert min(times[6:]) > 0.9 * MARGIN * TARGET_S
    assert sum(taken[:6]) > taken[-1]
    if isinstance(query.engine, WindowEngine):
        # The last one is read ahead.
        assert query.source.reads[:-1] == list(taken)
    else:
        assert min(times[3:]) > 0.9 * MARGIN * TARGET_S


def test_tasks_that_tell_nothing_change_nothing(query: Query) -> None:
    query.tells = False
    rows = [query.micro_batch()[0] for _ in range(4)]
    assert rows[1:] == rows[:-1]


@pytest.mark.parametrize("trigger_s", [3.0, 60.0])
def test_waiting_for_a_trigger_costs_no_rows(query: Query, trigger_s: float) -> None:
    """Fewer rows would make nothing shorter, and more of them fit into the time that passes anyway."""
    query.trigger_s = trigger_s
    rows, times = zip(*(query.micro_batch() for _ in range(10)), strict=True)
    assert max(times) <= trigger_s * 1.1
    slowest = min([TASK_ROWS_S, *([query.source.rows_s] if query.source.rows_s else [])])
    assert min(rows[6:]) > min(0.4 * trigger_s, 0.9 * LONGEST * MARGIN * TARGET_S) * slowest
    assert rows[4] > 8 * rows[0]


def test_a_fixed_cost_of_each_micro_batch_costs_no_rows(query: Query) -> None:
    query.fixed_s = 2.0
    rows, times = zip(*(query.micro_batch() for _ in range(12)), strict=True)
    assert min(rows[6:]) > 0.8 * query.fixed_s * TASK_ROWS_S / 2
    assert max(times) < 2.2 * query.fixed_s
