"""The window that is read while the tasks of the one before run."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from floodmark.capture.segment import SegmentData
from floodmark.capture.store import SegmentStore
from floodmark.connectors.contract.source import Source
from floodmark.connectors.contract.table_key import TableKey
from floodmark.errors import ConnectError, SourceStateError
from floodmark.notifications.records import IncrementalSnapshotNotifications
from floodmark.snapshots.context import SnapshotContext
from floodmark.snapshots.excluded_tables import ExcludedTables
from floodmark.snapshots.incremental.batch_sizing import BatchSizing
from floodmark.snapshots.incremental.state import IncrementalState, TableRun
from floodmark.snapshots.incremental.windows import WindowEngine
from floodmark.snapshots.reports import Report, TaskReports
from tests.support.patience import within
from tests.support.window_source import Clock, WindowSource


@dataclass
class Planned:
    """An engine whose first micro-batch has been planned, and what it works with."""

    engine: WindowEngine
    source: WindowSource
    directory: Path
    state: IncrementalState

    def next(self, reports: TaskReports | None = None) -> IncrementalState:
        """Plan the next micro-batch."""
        self.engine.wait()
        state = self.engine.resume(self.state, reports or TaskReports())
        return self.plan(state)

    def plan(self, state: IncrementalState) -> IncrementalState:
        """Plan a micro-batch as the planner does: a window that can't be used is read again."""
        for _ in range(2):
            self.engine.reach(state, "")
            if self.engine.plan(state, ""):
                return state
        raise AssertionError("no window could be used")

    @property
    def files(self) -> int:
        """How many files of rows there are."""
        return len(list(self.directory.glob("*/*/rows-*")))


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    source = WindowSource(Clock(), 1e6)
    context = SnapshotContext(cast(Source, source), lambda _: None, ExcludedTables())
    store = SegmentStore(str(tmp_path), "owner", "run")
    store.create()
    pace = BatchSizing(1.0, 1000, 10_000_000, 4)
    engine = WindowEngine(context, source.windows, IncrementalSnapshotNotifications("p"), pace, True, store, 1 << 40)
    made = Planned(engine, source, tmp_path, IncrementalState(runs=[_run(1)]))
    made.state = made.plan(copy.deepcopy(made.state))
    return made


def test_it_is_what_the_next_micro_batch_holds(planned: Planned) -> None:
    planned.engine.read_ahead(planned.state, "")
    planned.engine.wait()
    assert len(planned.source.reads) == 2
    assert planned.files == 2
    state = planned.next()
    assert len(planned.source.reads) == 2
    assert planned.files == 1
    assert state.batch[0].range.after == planned.state.batch[-1].range.upto
    assert [chunk.files for chunk in planned.engine.chunks(state)] == [("rows-00000002.seg",)]


def test_it_is_read_once(planned: Planned) -> None:
    for _ in range(3):
        planned.engine.read_ahead(planned.state, "")
        planned.engine.wait()
    assert len(planned.source.reads) == 2


def test_it_is_thrown_away_when_something_else_is_wanted(planned: Planned) -> None:
    """A task failed, so that its rows are to be read again before others."""
    planned.engine.read_ahead(planned.state, "")
    failed = [Report("incremental", (number,), "failed") for number in range(len(planned.state.batch))]
    state = planned.next(TaskReports([*failed, Report("time", (), "complete", began=1.0, ended=1.001)]))
    first, thrown_away, again, more = planned.source.reads
    assert first == thrown_away == again < more
    assert planned.files == 2
    assert state.batch[0].range.after is None


@pytest.mark.parametrize("paused", [False, True])
def test_nothing_is_read_when_nothing_is_left(planned: Planned, paused: bool) -> None:
    planned.state.paused = paused
    if not paused:
        planned.state.runs[0].top = planned.state.runs[0].after
    planned.engine.read_ahead(planned.state, "")
    planned.engine.wait()
    assert len(planned.source.reads) == 1


def test_nothing_is_read_for_a_micro_batch_of_another_process(planned: Planned) -> None:
    planned.engine.release()
    planned.engine.read_ahead(planned.state, "")
    planned.engine.wait()
    assert len(planned.source.reads) == 1


def test_a_snapshot_that_is_paused_meanwhile_leaves_no_files(planned: Planned) -> None:
    planned.engine.read_ahead(planned.state, "")
    planned.engine.wait()
    planned.state.paused = True
    planned.engine.resume(planned.state, TaskReports())
    assert planned.files == 0


@pytest.mark.parametrize("error", [ConnectError("The server is away."), SourceStateError("The table is gone.")])
def test_an_error_is_left_to_planning(planned: Planned, error: Exception) -> None:
    planned.source.failure = error
    planned.engine.read_ahead(planned.state, "")
    planned.engine.wait()
    assert planned.files == 1
    state = planned.next()
    assert len(planned.source.reads) == 2
    assert state.runs[0].failures == 0
    planned.engine.release()
    assert planned.files == 0


def test_release_does_not_wait_for_all_rows(planned: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = threading.Event()

    def endless(*_: object) -> Iterator[SegmentData]:
        while True:
            yield SegmentData(np.zeros(1, np.uint8), np.zeros(1, np.uint32))
            reading.set()

    monkeypatch.setattr(planned.source, "_rows", endless)
    planned.engine.read_ahead(planned.state, "")
    assert reading.wait(within(10))
    planned.engine.release()
    assert planned.files == 0


def _run(oid: int) -> TableRun:
    return TableRun("t", oid, "", TableKey(("id",), False), None, "", 0)
